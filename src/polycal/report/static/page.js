// What the report and the explorer share: light and dark, and how pictures are drawn.
"use strict";

const root = document.documentElement;

// --- Light and dark: the reader's system decides until the reader does.

const themeButton = document.getElementById("theme");
const systemDark = window.matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches;
}

function showTheme() {
  themeButton.setAttribute("aria-pressed", String(isDark()));
}

themeButton.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
});
systemDark.addEventListener("change", showTheme);
showTheme();

// --- Pictures.

const options = {
  mode: "vega-lite",
  renderer: "svg",
  actions: false,
  defaultStyle: false, // it is for the menu of actions
  ast: true, // expressions are interpreted: the page's policy forbids evaluating text as code
  tooltip: { theme: "plain", disableDefaultStyle: true },
};

function drawChart(element, spec) {
  return window.vegaEmbed(element, spec, options);
}

// All pictures of a page, one after the other, so that it can be read and scrolled meanwhile.
async function drawAll() {
  for (const { id, spec } of JSON.parse(document.getElementById("charts").textContent)) {
    await drawChart(`#${id}`, spec);
    await new Promise((resume) => setTimeout(resume));
  }
  root.dataset.drawn = "yes";
}
