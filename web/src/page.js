// The elements around the canvas.
import { Code } from "./code.js";
import { element, span } from "./element.js";
import { Finder } from "./finder.js";
import { count, plural, targetName } from "./format.js";
import { showHelp } from "./keys.js";
import { Legend } from "./legend.js";
import { rankSwitch } from "./rank_panel.js";
import { River } from "./river.js";
import { Tip } from "./tip.js";
import { Crumbs, Status, toolbar } from "./toolbar.js";
import { callName, severitySign } from "./words.js";

/** Build the page; returns the elements and parts that a viewer fills, and `showTroubles`. */
export function buildPage(viewer) {
  const canvas = element("canvas", { tabindex: "0", role: "application", "aria-label": "Graph. Arrow keys follow it, Enter opens and closes, slash searches, L goes to the list." });
  const list = element("ul", { class: "list", role: "tree", "aria-label": "What is drawn, as a list", id: "list" });
  const said = element("div", { class: "said", "aria-live": "polite" });
  const aside = element("aside", { "aria-label": "Details" });
  const legend = element("div", { class: "legend" });
  const above = element("button", { class: "above", hidden: "", on: { click: () => viewer.goHome() } });
  const passes = passSwitch(viewer);
  const ranks = rankSwitch(viewer);
  const troubles = troubleButtons(viewer);
  const finder = new Finder(viewer, canvas);
  const [crumbs, status, tip] = [new Crumbs(viewer), new Status(), new Tip()];
  const river = new River(viewer, tip);
  const code = new Code(viewer);
  const verdict = element("p", { class: "verdict" });
  const facts = element("button", { class: "facts", text: "Facts", title: "the facts beside the graph (D)", on: { click: () => viewer.toggleFacts() } });
  const parts = [
    element("header", {},
      element("h1", { text: "gradscope" }),
      span("about faint", about(viewer.model)),
      troubles.element, ranks, passes, code.button, facts,
      element("button", { text: "List", "aria-controls": "list", "aria-pressed": "false", title: "what is drawn, as a list (L)", on: { click: (event) => toggleList(event.currentTarget, list) } }),
      element("button", { text: "Reset", title: "close all, back to the output (Home)", on: { click: () => viewer.closeAll() } }),
      finder.element,
      element("button", { class: "step", text: "?", "aria-label": "Keys", title: "the keys (?)", on: { click: () => showHelp(viewer) } }),
      verdict),
    element("main", {}, river.whole, code.element, element("div", { class: "stage" }, canvas, crumbs.element, status.element), list, said),
    aside,
    element("footer", { "aria-label": "Legend" }, legend, toolbar(viewer, above)),
    tip.element,
  ];
  document.body.append(...parts);
  return { parts, canvas, list, said, aside, legend: new Legend(legend, viewer), above, passes, ranks, finder, crumbs, status, tip, river, code, facts, verdict, showTroubles: troubles.show };
}

function about({ data, size }) {
  const direction = data.passes.length ? " · gradients flow along the arrows" : "";
  return `${targetName(data.meta.target)} · ${plural(size, "node")}${direction}`;
}

function toggleList(button, list) {
  const shown = list.classList.toggle("shown");
  button.ariaPressed = shown;
}

/** A switch between the backward calls of the run, whatever graphs they walk. */
function passSwitch(viewer) {
  const { calls } = viewer.model.data;
  if (calls.length < 2) return null;
  const options = calls.map((call, i) => element("option", { value: i, text: `${callName(call)}${call[4] ? " ✖" : ""}` }));
  const change = (event) => viewer.chooseCall(Number(event.target.value));
  return element("select", { "aria-label": "Backward pass", title: "[ and ] go to the one before and after", on: { change } }, ...options);
}

/** `‹ ✖ 2 of 3 findings ›`. */
function troubleButtons(viewer) {
  const words = element("span", {});
  const step = (sign, by, name) => element("button", { class: "step", text: sign, "aria-label": name, title: name, on: { click: () => viewer.nextTrouble(by) } });
  const all = element("span", { class: "alarm", role: "group", "aria-label": "Findings" }, step("‹", -1, "previous finding (P)"), words, step("›", 1, "next finding (N)"));
  const show = () => {
    const { places, findingsAt } = viewer.model.troubles;
    all.hidden = !places.length;
    const what = findingsAt.size ? ["finding"] : ["place where gradients stop being finite", "places where gradients stop being finite"];
    const severity = viewer.model.troubles.atNode(places[Math.max(viewer.trouble, 0)]);
    all.className = `alarm ${severity}`;
    words.textContent = `${severitySign(severity)}${viewer.trouble >= 0 ? `${count(viewer.trouble + 1)} of ` : ""}${plural(places.length, ...what)}`;
  };
  return { element: all, show };
}
