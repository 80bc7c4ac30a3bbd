// The page works without scripts, except for pictures, sorting, searching and the theme button.
"use strict";

drawAll();

// --- Tables: a click on a heading sorts, a second one turns the order round.

function valueOf(row, column) {
  const text = row.cells[column].textContent.trim();
  const number = Number(text.replace(/,/g, ""));
  return text === "" || Number.isNaN(number) ? text : number;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? 1 : -1;
  return a.localeCompare(b, undefined, { numeric: true });
}

function sortBy(table, heading, direction) {
  const column = heading.cellIndex;
  const body = table.tBodies[0];
  const keyed = Array.from(body.rows, (row) => [valueOf(row, column), row]);
  keyed.sort((one, other) => direction * compare(one[0], other[0]));
  body.append(...keyed.map(([, row]) => row));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
}

function makeSortable(table) {
  for (const heading of table.tHead.rows[0].cells) {
    if (heading.classList.contains("bars")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const sorted = heading.getAttribute("aria-sort");
      const first = heading.classList.contains("n") ? -1 : 1;
      sortBy(table, heading, sorted ? (sorted === "ascending" ? -1 : 1) : first);
    });
  }
}

document.querySelectorAll("table.sortable").forEach(makeSortable);

// --- Searching classes by name.

const search = document.getElementById("search");
const matches = document.getElementById("matches");
const classRows = Array.from(document.getElementById("class-table").tBodies[0].rows);

search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  let shown = 0;
  for (const row of classRows) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    shown += row.hidden ? 0 : 1;
  }
  const all = classRows.length.toLocaleString("en");
  matches.textContent = wanted ? `${shown.toLocaleString("en")} of ${all} classes` : `${all} classes`;
});

// --- The tree of classes, if there is one.

const treeNodes = document.getElementById("tree-nodes");
if (treeNodes) {
  const tool = (name) => document.getElementById(`tree-${name}`);
  treeOf(treeNodes, { search: tool("search"), wrong: tool("wrong"), fold: tool("fold"), matches: tool("matches") });
}

// --- On paper nothing is folded up.

const folded = new Set();

window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details.fold:not([open])")) {
    folded.add(details);
    details.open = true;
  }
});

window.addEventListener("afterprint", () => {
  for (const details of folded) details.open = false;
  folded.clear();
});
