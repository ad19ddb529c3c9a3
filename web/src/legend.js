// The colour scale with its two ends, which can be dragged or moved by keys, and the signs of the drawing.
import { element, faint, taken } from "./element.js";
import { severitySign } from "./words.js";

/** Decades that an arrow key moves an end. */
const STEP = 0.25;
const NARROWEST = 0.5;

const SIGNS = [
  ["output", "output", "where backward begins"],
  ["leaf", "leaf", "a tensor that gets .grad"],
  ["closed", "▸ closed, ▾ open", "a double-click opens it"],
  ["none", "no gradient", "none, or only zeros"],
];

export class Legend {
  constructor(root, viewer) {
    this.root = root;
    this.viewer = viewer;
  }

  show(scale) {
    this.scale = scale;
    this.first = { from: scale.from, to: scale.to };
    this.ends = null;
    const kinds = scale.classes?.map(([words, color]) => classOf(words, color)) ?? [];
    const parts = scale.known ? (scale.steps ? this._scale() : []) : [element("span", { text: "no gradients in this report" })];
    const { activeElement } = document;
    this.root.replaceChildren(element("span", { class: "scale" }, this._title(), ...parts), ...kinds, ...[...SIGNS, ...this._alarms()].map(sign));
    if (activeElement && !activeElement.isConnected) this.choice?.focus();
    if (this.ends) this._update();
  }

  /** What is marked on this page. */
  _alarms() {
    const { troubles, passes } = this.viewer.model;
    const { marks, findingsAt } = troubles;
    const words = { error: passes.some(({ state }) => state.includes(4)) ? "not finite" : "" };
    for (const [, severity] of marks) words[severity] ??= severity === "warning" ? severity : "worth a look";
    for (const findings of findingsAt.values()) for (const { severity } of findings) words[severity] = severity === "error" && words.error ? "finding, not finite" : "finding";
    return ["error", "warning", "information"].filter((severity) => words[severity]).map((severity) => [severity, severitySign(severity) + words[severity]]);
  }

  /** What is shown, which can be chosen where there are several things to show. */
  _title() {
    const { choices, choice } = this.viewer;
    if (choices.length < 2) return element("b", { text: this.scale.title ?? "" });
    const change = ({ target }) => this.viewer.chooseOverlay(Number(target.value));
    this.choice = element("select", { class: "shown", "aria-label": "What colours mean", title: "what the colour and the bar of boxes mean (O)", on: { change } }, ...choices.map((text, value) => element("option", { value, text })));
    this.choice.value = String(choice);
    return this.choice;
  }

  _scale() {
    // A wedge, because the colours of the two ends are equally dark.
    const steps = this.scale.steps.map((color, i, { length }) => {
      const step = element("i", {});
      step.style.background = color;
      step.style.height = `${Math.round(4 + (9 * (i + 1)) / length)}px`;
      return step;
    });
    this.track = element("span", { class: "steps", title: `${this.scale.meaning}; drag to move the range, double-click to reset` }, ...steps);
    this.track.addEventListener("pointerdown", (event) => this._drag(event, ["from", "to"]));
    this.track.addEventListener("dblclick", () => this._set(this.first.from, this.first.to));
    this.ends = { from: this._end("from", "smallest gradient with a colour of its own"), to: this._end("to", "largest gradient with a colour of its own") };
    return [this.ends.from, this.track, this.ends.to, ...this.scale.meaning.split(/; |(?<=larger), /).map((words) => faint("span", words))];
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
    taken(event);
    const { from, to } = this.scale;
    this._set(end === "from" ? from + by : from, end === "to" ? to + by : to);
  }

  _set(from, to) {
    if (to - from < NARROWEST) return;
    Object.assign(this.scale, { from, to });
    this._update();
    this.viewer._recolored();
  }

  _update() {
    for (const [end, shown] of Object.entries(this.ends)) {
      const text = this.scale.end(end);
      shown.textContent = text;
      shown.ariaValueText = text;
      shown.ariaValueNow = this.scale[end].toFixed(2);
    }
  }
}

const sign = ([kind, words, title = null]) => element("span", { class: "sign", title }, element("i", { class: kind }), faint("span", words));

function classOf(words, color) {
  const box = element("i", {});
  box.style.background = color;
  return element("span", { class: "sign class" }, box, element("span", { text: words }));
}
