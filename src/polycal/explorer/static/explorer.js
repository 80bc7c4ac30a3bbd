// Text from the data (class names, group names, file names) goes into the page as text only, never as markup.
"use strict";

const byId = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");
const percent = (value) => `${(100 * value).toFixed(value > 0.0995 ? 1 : 2)}%`;
const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);
const titles = { "as given": "", before: "As given", after: "Recalibrated" };

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

// --- The server. The token comes in the address's fragment, which is sent to nobody, and stays with this tab.

function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("polycal-token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("polycal-token");
}

const token = takeToken();

function trouble(words) {
  byId("trouble").textContent = words;
  byId("trouble").hidden = false;
}

async function call(path, body, signal) {
  const headers = { Authorization: `Bearer ${token}` };
  if (body) headers["Content-Type"] = "application/json";
  const request = { method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The explorer has ended. Start polycal explore again, and open the address it prints.");
  }
  if (response.status === 403) {
    throw new Error("This page has no valid token. Open the whole address that polycal explore printed.");
  }
  if (!response.ok) throw new Error((await response.json()).error);
  byId("trouble").hidden = true;
  return response.json();
}

// --- What is asked: the classes picked, and the rows.

let sample;
let found = [];
const picked = new Set();
let rank = 1; // of how many most likely classes, where none is picked
let boxes = [];
let items = [];

const rowsAsked = () => document.querySelector("input[name=rows]:checked").value;
const isPicked = (classes) => classes.length === picked.size && classes.every((c) => picked.has(c));

function pick(classes, rows) {
  picked.clear();
  rank = 1;
  for (const c of classes) picked.add(c);
  if (rows) document.querySelector(`input[name=rows][value=${rows}]`).checked = true;
  changed();
}

function changed() {
  boxes.forEach((box, c) => { box.checked = picked.has(c); });
  showPicked();
  ask();
}

function showPicked() {
  for (const button of document.querySelectorAll("button[data-classes]")) {
    const same = Number(button.dataset.size) === picked.size && isPicked(JSON.parse(button.dataset.classes));
    button.setAttribute("aria-pressed", String(same));
  }
  byId("matches").textContent = picked.size ? `${number(picked.size)} of ${number(items.length)}` : `${number(items.length)} classes`;
  for (const button of byId("ranks").querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.dataset.rank) === rank));
  byId("lead").textContent = picked.size || rank > 1 ? "You ask" : "Nothing is picked, so this is the question everybody asks";
  byId("members").hidden = picked.size < 2;
  byId("members").querySelector("summary").textContent = `${number(picked.size)} classes count as yes`;
  byId("members").querySelector("p").textContent = Array.from(picked).sort((a, b) => a - b).map((c) => sample.classes[c]).join(", ");
  showHonesty();
}

function showHonesty() {
  const wasFound = found.some((one) => isPicked(one.classes));
  const unseen = rowsAsked() === "unseen";
  const searched = number(sample.n_rows - (sample.n_unseen || 0));
  let words = "";
  if (wasFound && unseen) words = `Found by a search on ${searched} rows; shown on the ${number(sample.n_unseen)} others, which it never saw.`;
  else if (wasFound) words = `A search found this set on ${searched} of these rows, so here it looks worse than it is. Better use the rows it never saw.`;
  byId("honesty").textContent = words;
  byId("honesty").classList.toggle("warn", wasFound && !unseen);
}

// --- Asking: first what is quick, then the noise floor. Only the last question counts.

let asking = new AbortController();

async function ask() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const body = { classes: Array.from(picked), rows: rowsAsked(), top: rank };
  if (byId("slice").value) body.slice = byId("slice").value;
  byId("series").setAttribute("aria-busy", "true");
  delete root.dataset.drawn;
  delete root.dataset.judged;
  try {
    const answer = await call("/api/question", body, signal);
    await showAnswer(answer, signal);
    root.dataset.drawn = "yes";
    // Who clicks on quickly does not want to know how each set on the way compares with chance.
    await new Promise((resume) => setTimeout(resume, 120));
    if (signal.aborted) return;
    showFloors(answer, await call("/api/floor", body, signal));
    root.dataset.judged = "yes";
  } catch (error) {
    if (error.name !== "AbortError") trouble(error.message);
  }
}

function seriesElements(answer) {
  const holder = byId("series");
  if (holder.childElementCount !== answer.series.length) {
    holder.classList.toggle("two", answer.series.length > 1);
    holder.replaceChildren(...answer.series.map(() => byId("series-template").content.firstElementChild.cloneNode(true)));
  }
  return Array.from(holder.children);
}

async function showAnswer(answer, signal) {
  byId("question").textContent = sentence(answer.question);
  const elements = seriesElements(answer);
  const largest = Math.max(...answer.series.map((one) => one.smooth_error));
  answer.series.forEach((one, i) => showNumbers(elements[i], one, answer, largest));
  showExamples(answer);
  for (const [i, one] of answer.series.entries()) {
    for (const [kind, spec] of Object.entries(one.charts)) {
      if (signal.aborted) throw new DOMException("superseded", "AbortError");
      await drawChart(elements[i].querySelector(`.${kind}`), spec);
    }
  }
  byId("series").setAttribute("aria-busy", "false");
  byId("peek").textContent = `Error ${answer.series.map((one) => one.smooth_error.toFixed(4)).join(" → ")}: see the answer ↓`;
}

function setMeter(element, selector, share) {
  element.querySelector(selector).style.width = `${100 * Math.min(1, share)}%`;
}

function showNumbers(element, one, answer, largest) {
  const difference = 100 * (one.observed - one.predicted);
  const values = {
    h2: titles[one.series],
    ".said": percent(one.predicted),
    ".happens": percent(one.observed),
    ".difference": `${difference < 0 ? "−" : "+"}${Math.abs(difference).toFixed(2)} points`,
    ".error": one.smooth_error.toFixed(4),
    ".floor": "…",
    ".ratio": "…",
    ".chance": "…",
    ".count": `${number(one.n_yes)} of ${number(answer.n_rows)}`,
    ".badge": "… comparing with chance",
  };
  for (const [selector, text] of Object.entries(values)) element.querySelector(selector).textContent = text;
  element.querySelector("h2").hidden = !titles[one.series];
  element.className = "one";
  setMeter(element, ".predicted", one.predicted);
  setMeter(element, ".observed", one.observed);
  setMeter(element, ".wrong", largest ? one.smooth_error / largest : 0);
  setMeter(element, ".noise", 0);
}

function showFloors(answer, floors) {
  const largest = Math.max(...answer.series.map((one) => one.smooth_error), ...floors.series.map((one) => one.noise_floor));
  floors.series.forEach((one, i) => {
    const element = byId("series").children[i];
    const ratio = answer.series[i].smooth_error / one.noise_floor;
    const values = {
      ".floor": one.noise_floor.toFixed(4),
      ".ratio": one.noise_floor ? `${ratio.toFixed(1)} times` : "–",
      ".chance": one.p_value < 0.095 ? one.p_value.toPrecision(1) : one.p_value.toFixed(2),
      ".badge": one.shown ? "✕ More than chance" : "○ No more than chance would show",
    };
    for (const [selector, text] of Object.entries(values)) element.querySelector(selector).textContent = text;
    element.classList.add(one.shown ? "shown" : "calm");
    setMeter(element, ".noise", largest ? one.noise_floor / largest : 0);
    setMeter(element, ".wrong", largest ? answer.series[i].smooth_error / largest : 0);
  });
}

function showExamples(answer) {
  const two = answer.series.length > 1;
  const said = two ? ["It says", "Recalibrated"] : ["It says"];
  const heads = [["Row", "n"], ...said.map((words) => [words, "n"]), ["It happened"], ["True label"], ["Most likely class"], ["with", "n"]];
  byId("examples-of").textContent = two ? " of the predictions as given" : "";
  byId("examples-head").replaceChildren(...heads.map(([words, className]) => {
    const head = make("th", words, className);
    head.scope = "col";
    return head;
  }));
  byId("examples").replaceChildren(...answer.examples.map((one) => {
    const row = make("tr");
    row.append(make("td", number(one.row), "n"), ...one.predicted.map((value) => make("td", percent(value), "n")));
    row.append(make("td", one.outcome ? "yes" : "no", one.outcome ? "yes" : ""), make("td", one.label, "class"), make("td", one.top, "class"), make("td", percent(one.confidence), "n"));
    return row;
  }));
}

// --- Picking: classes one by one or by search, saved groups, the worst found.

function listClasses() {
  items = sample.classes.map((name, c) => {
    const [item, label, box] = [make("li"), make("label"), make("input")];
    box.type = "checkbox";
    box.addEventListener("change", () => {
      rank = 1;
      if (box.checked) picked.add(c);
      else picked.delete(c);
      changed();
    });
    label.append(box, make("span", name, "name"), make("span", number(sample.counts[c]), "count"));
    label.title = `${number(sample.counts[c])} rows have this label`;
    item.append(label);
    return item;
  });
  boxes = items.map((item) => item.querySelector("input"));
  byId("classes").append(...items);
}

function classButton(classes, rows) {
  const button = make("button");
  button.type = "button";
  button.dataset.classes = JSON.stringify(classes);
  button.dataset.size = classes.length;
  button.addEventListener("click", () => pick(isPicked(classes) ? [] : classes, rows));
  return button;
}

function listGroups() {
  byId("saved").hidden = sample.groups.length === 0;
  for (const group of sample.groups) {
    const [item, button] = [make("li"), classButton(group.classes)];
    button.textContent = group.name;
    button.title = group.name;
    item.append(button);
    byId("groups").append(item);
  }
}

// --- What acting costs: it does not depend on what is picked.

async function showCosts() {
  byId("costs").hidden = sample.costs.length === 0;
  for (const cost of sample.costs) {
    const [card, about, chart, scroll, table] = ["article", "div", "div", "div", "table"].map((tag) => make(tag));
    [card.className, about.className, chart.className, scroll.className] = ["card cost", "about", "chart", "scroll"];
    about.append(make("h3", cost.name), ...cost.words.map((words) => make("p", words)), chart);
    const head = table.createTHead().insertRow();
    sample.action_columns.forEach((words, i) => {
      const cell = make("th", sentence(words), i > 0 && i < 4 ? "n" : "");
      cell.scope = "col";
      head.append(cell);
    });
    const body = table.createTBody();
    for (const row of cost.rows) body.insertRow().append(...row.map((words, i) => make("td", words, i > 0 && i < 4 ? "n" : "")));
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", `Actions of ${cost.name}, table`);
    scroll.append(table);
    card.append(about, scroll);
    byId("cost-cards").append(card);
    await drawChart(chart, cost.chart);
  }
}

// --- The tree of classes: a click on a node asks about the classes below it. What all rows show of it comes later.

let treeItems = [];

function listTree() {
  byId("tree").hidden = sample.nodes.length === 0;
  const parents = new Set(sample.nodes.map((node) => node.parent));
  const lists = [];
  treeItems = sample.nodes.map((node, i) => {
    const [item, line, button] = [make("li"), make("div"), classButton(node.classes)];
    button.append(make("span", node.name, "name"));
    line.append(make("span", "○", "tag"), button, make("span", number(node.classes.length), "count"));
    item.append(line);
    if (parents.has(i)) {
      const [details, summary] = [make("details"), make("summary")];
      summary.setAttribute("aria-label", `Nodes below ${node.name}`);
      lists[i] = make("ul");
      details.append(summary, lists[i]);
      item.append(details);
    }
    (node.parent < 0 ? byId("tree-nodes") : lists[node.parent]).append(item);
    return { item, line };
  });
  byId("tree-matches").textContent = `${number(treeItems.length)} nodes`;
  const tool = (name) => byId(`tree-${name}`);
  treeOf(byId("tree-nodes"), { search: tool("search"), wrong: tool("wrong"), fold: tool("fold"), matches: tool("matches") });
}

async function markTree() {
  if (treeItems.length === 0) return;
  const { nodes } = await call("/api/nodes");
  const signs = { worse: "✕", better: "✓", same: "○" };
  nodes.forEach(({ mark, words }, i) => {
    const { item, line } = treeItems[i];
    item.classList.add(mark);
    line.title = words;
    line.firstChild.textContent = signs[mark];
    line.firstChild.classList.add(mark);
  });
  root.dataset.marked = "yes";
}

function listRanks() {
  byId("most-likely").hidden = sample.ranks.length === 0;
  for (const m of sample.ranks) {
    const [item, button] = [make("li"), make("button", `top ${m}`)];
    button.type = "button";
    button.dataset.rank = m;
    button.addEventListener("click", () => {
      const asked = rank === m ? 1 : m;
      picked.clear();
      rank = asked;
      changed();
    });
    item.append(button);
    byId("ranks").append(item);
  }
}

function findingItem(one) {
  const [item, button] = [make("li"), classButton(one.classes, "unseen")];
  button.append(make("strong", sentence(one.question)));
  const size = one.significant
    ? `Off by at least ${Math.max(0, one.lower_bound).toFixed(4)} (proven on held-out rows)`
    : "Nothing proven on held-out rows";
  button.append(make("span", sample.series.length > 1 ? `${titles[one.series]}: ${size.toLowerCase()}` : size));
  const { predicted, observed, share } = one.reading;
  if (one.significant && predicted !== null) {
    button.append(make("span", `Says ${percent(predicted)}, happens ${percent(observed)}, in ${percent(share)} of rows`));
  }
  item.append(button);
  return item;
}

const stateWords = {
  waiting: "The search has not begun.",
  searching: "Searching half of the rows …",
  "too few rows": "There are too few rows to search.",
  failed: "The search failed.",
};

async function watchSearch() {
  try {
    const { state, found: now, chart } = await call("/api/worst");
    if (now.length !== found.length) {
      found = now;
      byId("worst").replaceChildren(...found.map(findingItem));
      showPicked();
      byId("path").hidden = chart === null;
      if (chart) await drawChart(byId("path").querySelector(".chart"), chart);
    }
    byId("searching").textContent = stateWords[state] || "";
    byId("searching").hidden = state === "done";
    if (state === "searching" || state === "waiting") setTimeout(watchSearch, 500);
    else await markTree();
  } catch (error) {
    trouble(error.message);
  }
}

// --- Slices: rows to choose, and a table whose cells ask.

function listSlices() {
  byId("where").hidden = sample.slices.length === 0;
  const all = make("option", "(all rows)");
  all.value = "";
  byId("slice").append(all, ...sample.slices.map((one) => {
    const option = make("option", `${one.name} (${number(one.n_rows)} rows)`);
    option.value = one.name;
    return option;
  }));
  byId("slice").addEventListener("change", changed);
  if (sample.heat) showHeat(sample.heat);
}

function classesOf(column) {
  if (column.kind === "group") return sample.groups.find((group) => group.name === column.name).classes;
  if (column.kind === "class") return [sample.classes.indexOf(column.name)];
  return column.name === "confidence" ? [] : null;
}

function heatCell(cell, column, slice) {
  const element = make("td", undefined, `cell ${cell.mark}`);
  element.style.setProperty("--heat", `${cell.heat}%`);
  element.title = cell.words;
  const words = `${cell.error.toFixed(3).replace(/^0/, "")}${{ off: " ✕", right: " ✓", open: "" }[cell.mark]}`;
  const classes = classesOf(column);
  if (classes === null) {
    element.textContent = words;
    return element;
  }
  const button = make("button", words);
  button.type = "button";
  button.setAttribute("aria-label", `${column.name}, where ${slice}: ${words}`);
  button.addEventListener("click", () => {
    byId("slice").value = slice;
    pick(classes, "all");
    byId("answer").scrollIntoView();
  });
  element.append(button);
  return element;
}

function showHeat(heat) {
  byId("slices").hidden = false;
  byId("heat-head").append(make("th", "Slice"), make("th", "Rows", "n"), ...heat.columns.map((column) => {
    const head = make("th");
    head.append(make("span", column.name));
    return head;
  }));
  for (const head of byId("heat-head").children) head.scope = "col";
  byId("heat").append(...heat.rows.map((one) => {
    const [row, head] = [make("tr"), make("th", one.name)];
    head.scope = "row";
    row.append(head, make("td", number(one.n_rows), "n"), ...one.cells.map((cell, i) => heatCell(cell, heat.columns[i], one.name)));
    return row;
  }));
}

const shownClasses = () => items.flatMap((item, c) => (item.hidden ? [] : [c]));

byId("search").addEventListener("input", () => {
  const wanted = byId("search").value.trim().toLowerCase();
  items.forEach((item, c) => { item.hidden = !sample.classes[c].toLowerCase().includes(wanted); });
  byId("pick-shown").textContent = wanted ? `Pick these ${number(shownClasses().length)}` : "Pick all";
});
byId("pick-shown").addEventListener("click", () => pick([...new Set([...picked, ...shownClasses()])]));
byId("invert").addEventListener("click", () => pick(items.flatMap((_, c) => (picked.has(c) ? [] : [c]))));
byId("clear").addEventListener("click", () => pick([]));
for (const radio of document.querySelectorAll("input[name=rows]")) radio.addEventListener("change", changed);

// --- Begin.

async function begin() {
  try {
    sample = await call("/api/sample");
  } catch (error) {
    trouble(error.message);
    return;
  }
  document.title = `${sample.title}: polycal explorer`;
  byId("source").textContent = `${sample.title}: ${number(sample.n_rows)} rows, ${number(sample.classes.length)} classes`;
  byId("rows").hidden = sample.n_unseen === null;
  const [all, unseen] = byId("rows").querySelectorAll("span");
  all.textContent = `all ${number(sample.n_rows)} rows`;
  unseen.textContent = `the ${number(sample.n_unseen || 0)} rows no search has seen`;
  listClasses();
  listRanks();
  listGroups();
  listTree();
  listSlices();
  byId("explorer").hidden = false;
  changed();
  watchSearch();
  showCosts();
}

begin();
