// A tree of lists: searching, folding, and showing only what is marked. Shared by the report and the explorer.
"use strict";

function treeOf(list, tools) {
  const nodes = Array.from(list.querySelectorAll("li"), (item) => ({
    item,
    details: item.querySelector(":scope > details"),
    name: item.querySelector(".name").textContent.toLowerCase(),
    wanted: true,
  }));
  const place = new Map(nodes.map((node, i) => [node.item, i]));
  // Parents stand before their children.
  for (const node of nodes) node.parent = place.get(node.item.parentElement.closest("li"));
  let opened = new Set();
  const words = tools.matches ? tools.matches.textContent : "";
  let shownAll = true;

  // A node is shown if it matches, or anything above or below it does; what leads to a match is unfolded.
  function show() {
    const text = tools.search.value.trim().toLowerCase();
    const onlyWrong = tools.wrong.getAttribute("aria-pressed") === "true";
    const all = !text && !onlyWrong;
    if (all && shownAll) return;
    // What the reader unfolded is there again when the search is over.
    if (shownAll) opened = new Set(nodes.filter((node) => node.details && node.details.open));
    let count = 0;
    for (const node of nodes) {
      node.matches = node.name.includes(text) && (!onlyWrong || node.item.classList.contains("worse"));
      node.leads = false;
      node.under = node.parent !== undefined && (nodes[node.parent].matches || nodes[node.parent].under);
      count += node.matches ? 1 : 0;
    }
    for (let i = nodes.length - 1; i >= 0; i -= 1) {
      const { parent, matches, leads } = nodes[i];
      if (parent !== undefined && (matches || leads)) nodes[parent].leads = true;
    }
    for (const node of nodes) {
      const wanted = all || node.matches || node.leads || (node.under && !onlyWrong);
      if (wanted !== node.wanted) node.item.hidden = !wanted;
      node.wanted = wanted;
      if (!node.details) continue;
      const open = all ? opened.has(node) : node.leads;
      if (open !== node.details.open) node.details.open = open;
    }
    shownAll = all;
    if (tools.matches) {
      const number = (value) => value.toLocaleString("en");
      tools.matches.textContent = all ? words : `${number(count)} of ${number(nodes.length)} nodes`;
    }
  }

  tools.search.addEventListener("input", show);
  tools.wrong.addEventListener("click", () => {
    tools.wrong.setAttribute("aria-pressed", String(tools.wrong.getAttribute("aria-pressed") !== "true"));
    show();
  });
  tools.fold.addEventListener("click", () => {
    const unfold = tools.fold.getAttribute("aria-pressed") !== "true";
    tools.fold.setAttribute("aria-pressed", String(unfold));
    tools.fold.textContent = unfold ? "Fold all" : "Unfold all";
    opened = new Set(unfold ? nodes : []);
    for (const node of nodes) if (node.details) node.details.open = unfold;
  });
  return { nodes, show };
}
