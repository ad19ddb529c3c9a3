// What the keys do, wherever on the page the focus is.

import { element, hear } from "./element.js";

const HELP = [
  ["arrows", "follow the graph"],
  ["Enter", "open or close"],
  ["/", "search"],
  ["N  P", "next, previous finding"],
  ["+  -", "zoom"],
  ["F  0", "all that is drawn"],
  ["E  C", "open, close everything, or all in what is selected"],
  ["Ctrl+Z", "undo opening and closing; Ctrl+Y does it again"],
  [",  .", "previous, next layer of what is drawn once"],
  ["Home", "to the output"],
  ["L", "to the list"],
  ["S", "the source beside the graph"],
  ["D", "the facts beside the graph"],
  ["O", "what colours mean"],
  ["[  ]", "previous, next backward call"],
  ["R", "next rank"],
  ["Esc", "select nothing"],
  ["?", "these keys"],
];

/** Say over the page what clicks and keys do. */
export function showHelp(viewer) {
  const keys = HELP.filter(([key]) => viewer.hasKey(key)).flatMap(([key, what]) => [element("dt", {}, element("kbd", { text: key })), element("dd", { text: what })]);
  const words = "Click a box or a line for its numbers. A double-click on a box, or a click on ▸ or ▾, opens and closes it.";
  const dialog = element("dialog", { "aria-label": "Keys", on: { close: () => dialog.remove() } }, element("p", { text: words }), element("dl", { class: "keys" }, ...keys), element("form", { method: "dialog" }, element("button", { text: "Close" })));
  document.body.append(dialog);
  dialog.showModal();
}

export function listenToKeys(viewer) {
  const actions = {
    "/": () => viewer.finder.focus(),
    Escape: () => viewer.select(null),
    Enter: () => viewer.toggle(viewer.selected),
    " ": () => viewer.toggle(viewer.selected),
    n: () => viewer.nextTrouble(1),
    p: () => viewer.nextTrouble(-1),
    l: () => viewer.outline.focus(),
    s: () => viewer.code.toggle(),
    d: () => viewer.toggleFacts(),
    "+": () => viewer.zoomAt(1.25),
    "-": () => viewer.zoomAt(0.8),
    f: () => viewer.fit(),
    0: () => viewer.fit(),
    e: () => viewer.openAll(),
    c: () => viewer.shutAll(),
    ",": () => viewer.nextLayer(-1),
    ".": () => viewer.nextLayer(1),
    "[": () => viewer.nextCall(-1),
    "]": () => viewer.nextCall(1),
    o: () => viewer.nextOverlay(),
    r: () => viewer.ranks && viewer.choosePass(viewer.model.passNumber, viewer.model.ranks.after(viewer.model.rank)),
    Home: () => viewer.goHome(),
    "?": () => showHelp(viewer),
  };
  hear(window, "keydown", (event) => {
    if (event.altKey || event.target.closest?.("input, dialog")) return;
    if (event.ctrlKey || event.metaKey) return undoing(viewer, event);
    if (isOwn(event)) return;
    const action = event.key.startsWith("Arrow") ? () => viewer.follow(event.key) : actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

/** Controls have keys of their own: a choice takes letters, all others what moves in them and what presses them. */
function isOwn({ target, key }) {
  if (["/", "Escape"].includes(key)) return false;
  if (target.closest?.("select")) return !["n", "p"].includes(key);
  return Boolean(target.closest?.("button, summary, [role=slider], aside")) && (key.length > 1 || key === " ");
}

function undoing(viewer, event) {
  const key = event.key.toLowerCase();
  if (key !== "z" && key !== "y") return;
  event.preventDefault();
  if (key === "y" || event.shiftKey) viewer.redo();
  else viewer.undo();
}
