// The colour scale with its two ends, which can be dragged or moved by keys, and the signs of the drawing.
import { element } from "./element.js";
import { number } from "./format.js";

/** Decades that an arrow key moves an end. */
const STEP = 0.25;
const NARROWEST = 0.5;

const SIGNS = [
  ["output", "output"],
  ["leaf", "leaf"],
  ["closed", "▸ closed, ▾ open"],
  ["none", "dashed: no gradient"],
  ["bad", "⚠ finding, or not finite"],
];

export class Legend {
  /** @param changed called when the scale was moved */
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
  }

  show(scale) {
    this.scale = scale;
    this.first = { from: scale.from, to: scale.to };
    this.root.replaceChildren(scale.known ? this._scale() : element("span", { text: "no gradients in this report" }), ...SIGNS.map(sign));
    if (scale.known) this._update();
  }

  _scale() {
    // A wedge, because the colours of the two ends are equally dark.
    const steps = this.scale.steps.map((color, i, { length }) => {
      const step = element("i", {});
      step.style.background = color;
      step.style.height = `${Math.round(4 + (9 * (i + 1)) / length)}px`;
      return step;
    });
    this.track = element("span", { class: "steps", title: "drag to move the range, double-click to reset" }, ...steps);
    this.track.addEventListener("pointerdown", (event) => this._drag(event, ["from", "to"]));
    this.track.addEventListener("dblclick", () => this._set(this.first.from, this.first.to));
    this.ends = { from: this._end("from", "smallest gradient with a colour of its own"), to: this._end("to", "largest gradient with a colour of its own") };
    return element(
      "span", { class: "scale" },
      element("b", { text: this.scale.title }), this.ends.from, this.track, this.ends.to,
      element("span", { class: "faint", text: this.scale.meaning }),
    );
  }

  _end(end, name) {
    return element("span", {
      class: "end", role: "slider", tabindex: "0", "aria-label": name, title: `${name}: drag, or use the arrow keys`,
      on: { pointerdown: (event) => this._drag(event, [end]), keydown: (event) => this._key(event, end) },
    });
  }

  _drag(down, ends) {
    down.preventDefault();
    const { from, to } = this.scale;
    const decades = (to - from) / this.track.clientWidth;
    const move = (event) => {
      // The colours go along with the pointer, so the range goes against it.
      const shift = (event.clientX - down.clientX) * decades * (ends.length > 1 ? -1 : 1);
      this._set(ends.includes("from") ? from + shift : from, ends.includes("to") ? to + shift : to);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", () => removeEventListener("pointermove", move), { once: true });
  }

  _key(event, end) {
    const by = { ArrowRight: STEP, ArrowUp: STEP, ArrowLeft: -STEP, ArrowDown: -STEP }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const { from, to } = this.scale;
    this._set(end === "from" ? from + by : from, end === "to" ? to + by : to);
  }

  _set(from, to) {
    if (to - from < NARROWEST) return;
    Object.assign(this.scale, { from, to });
    this._update();
    this.changed();
  }

  _update() {
    for (const [end, shown] of Object.entries(this.ends)) {
      const text = `${number(Number((10 ** this.scale[end]).toPrecision(2)))}${this.scale.unit}`;
      shown.textContent = text;
      shown.setAttribute("aria-valuetext", text);
      shown.setAttribute("aria-valuenow", this.scale[end].toFixed(2));
    }
  }
}

const sign = ([kind, words]) => element("span", { class: "sign" }, element("i", { class: kind }), element("span", { class: "faint", text: words }));
