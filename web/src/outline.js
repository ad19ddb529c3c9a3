// What is drawn, as a tree of words: for those who do not see the canvas, and whoever prefers a list.
import { append } from "./bucket.js";
import { element, faint, taken } from "./element.js";
import { count } from "./format.js";
import { described } from "./words.js";

/** More rows than this nobody walks through; the groups that hold them can be opened one by one. */
const MOST = 1000;

export class Outline {
  constructor(root, viewer) {
    this.root = root;
    this.viewer = viewer;
    root.addEventListener("keydown", (event) => this._key(event));
  }

  /** The list is made when there is time, or somebody comes to it. */
  show(boxes) {
    this.boxes = boxes;
    setTimeout(() => this._make());
  }

  _make() {
    if (!this.boxes) return;
    this.rows = inOrder(this.viewer.model, this.boxes).slice(0, MOST);
    const isHeld = this.root.contains(document.activeElement);
    const items = this.rows.map((box) => this._item(box));
    const more = this.boxes.length - MOST;
    if (more > 0) items.push(faint("li", `… ${count(more)} more: search for them, or close groups`));
    this.root.replaceChildren(...items);
    this.items = new Map(this.rows.map((box, i) => [box.key, items[i]]));
    this.boxes = null;
    this.mark(this.viewer.selected);
    if (isHeld) this.reachable?.focus();
  }

  _item(box) {
    const opens = box.group !== undefined;
    const sign = opens ? (box.open ? "▾ " : "▸ ") : "";
    const item = element("li", {
      role: "treeitem", "aria-level": String(box.depth + 1), "aria-expanded": opens ? String(box.open) : null, "aria-selected": "false", tabindex: "-1",
      text: `${sign}${described(this.viewer, box)}`,
      on: { click: () => this._take(box), dblclick: () => this.viewer.toggle(box.key) },
    });
    item.style.paddingLeft = `${8 + 14 * box.depth}px`;
    return item;
  }

  /** Say which row is selected; it is the one that the Tab key comes to. */
  mark(key) {
    if (this.boxes) return; // it is done when the list is made
    for (const item of [this.marked, this.reachable]) if (item) item.tabIndex = -1;
    if (this.marked) this.marked.ariaSelected = false;
    this.marked = this.items.get(key) ?? null;
    if (this.marked) this.marked.ariaSelected = true;
    this.reachable = this.marked ?? this.items.values().next().value;
    if (this.reachable) this.reachable.tabIndex = 0;
  }

  focus() {
    this._make();
    this.reachable?.focus();
  }

  _take(box) {
    this.viewer.select(box.key);
    this.viewer.keepInSight(this.viewer.boxes.get(box.key));
  }

  _key(event) {
    const at = this.rows.findIndex((box) => this.items.get(box.key) === document.activeElement);
    const box = this.rows[at];
    if (!box || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowDown: () => this._go(at + 1),
      ArrowUp: () => this._go(at - 1),
      ArrowRight: () => (box.group !== undefined && !box.open ? this._toggle(box) : this._go(at + 1)),
      ArrowLeft: () => (box.open ? this._toggle(box) : this._go(this.rows.findIndex((one) => one.key === box.around))),
      Enter: () => this._toggle(box),
      " ": () => this._toggle(box),
    };
    if (!actions[event.key]) return;
    taken(event);
    actions[event.key]();
  }

  _go(row) {
    const box = this.rows[row];
    if (!box) return;
    this._take(box);
    this.focus();
  }

  _toggle(box) {
    this.viewer.toggle(box.key);
    this.focus();
  }
}

/** Depth first, each level in the order of backward. */
function inOrder(model, boxes) {
  const first = (box) => box.node ?? model.first[box.group] ?? (box.wall === undefined ? -1 : model.size);
  const within = new Map();
  for (const box of boxes) append(within, box.around, box);
  for (const level of within.values()) level.sort((a, b) => first(b) - first(a));
  const found = [];
  const waiting = [...(within.get(null) ?? [])];
  while (waiting.length) {
    const box = waiting.pop();
    found.push(box);
    waiting.push(...(within.get(box.key) ?? []));
  }
  return found;
}
