// What the keys do, wherever on the page the focus is.

export const HELP = [
  ["arrows", "follow the graph"],
  ["Enter", "open or close"],
  ["/", "search"],
  ["N  P", "next, previous finding"],
  ["+  -", "zoom"],
  ["Home", "to the output"],
  ["L", "to the list"],
  ["R", "next rank"],
  ["Esc", "select nothing"],
];

export function listenToKeys(viewer) {
  const half = () => [viewer.canvas.clientWidth / 2, viewer.canvas.clientHeight / 2];
  const actions = {
    "/": () => viewer.finder.focus(),
    Escape: () => viewer.select(null),
    Enter: () => viewer.toggle(viewer.selected),
    " ": () => viewer.toggle(viewer.selected),
    n: () => viewer.nextTrouble(1),
    p: () => viewer.nextTrouble(-1),
    l: () => viewer.outline.focus(),
    "+": () => viewer.zoomAt(1.25, ...half()),
    "-": () => viewer.zoomAt(0.8, ...half()),
    "[": () => viewer.passes && viewer.choosePass(viewer.model.passNumber - 1),
    "]": () => viewer.passes && viewer.choosePass(viewer.model.passNumber + 1),
    r: () => viewer.ranks && viewer.choosePass(viewer.model.passNumber, viewer.model.ranks.after(viewer.model.rank)),
    Home: () => viewer.goHome(),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // Controls have keys of their own.
    if (event.target.closest?.("select, button, summary, [role=slider], aside") && !["/", "Escape", "n", "p"].includes(event.key)) return;
    const action = event.key.startsWith("Arrow") ? () => viewer.follow(event.key) : actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
