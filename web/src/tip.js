// A few lines beside the pointer.  What they say stands in the panel as well, so nobody depends on them.
import { element } from "./element.js";

const AWAY = 12;

export class Tip {
  constructor() {
    this.element = element("div", { class: "tip", hidden: "", "aria-hidden": "true" });
  }

  /** Show lines, the first of which is a heading, at a place of the window. */
  show([head, ...lines], x, y) {
    const { element: tip } = this;
    tip.replaceChildren(element("b", { text: head }), ...lines.map((text) => element("div", { text })));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = x + AWAY + width > innerWidth ? x - AWAY - width : x + AWAY;
    tip.style.left = `${Math.max(left, 4)}px`;
    tip.style.top = `${Math.max(Math.min(y + AWAY, innerHeight - height - 4), 4)}px`;
  }

  hide() {
    this.element.hidden = true;
  }
}
