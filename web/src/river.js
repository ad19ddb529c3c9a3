// The river: the gradients of the whole graph beside the canvas, the loss on top, smaller to the left.  It is also the map:
// a lens shows what is in sight, dragging scrolls, a click opens what is there.
import { element, span, svg, taken } from "./element.js";
import { count, number, plural, visible } from "./format.js";
import { HALF } from "./labels.js";
import { brackets, evenRows, firstOf, lastOf, profileOf, rowOf } from "./profile.js";
import { LABEL } from "./sizes.js";
import { widthOf } from "./text.js";
import { groupWords, nodeName } from "./words.js";

/** Pixels for the brackets, and between two streams. */
const BRACKET = 14;
const GAP = 3;
/** Pixels that a pointer may move and still be a click. */
const STILL = 4;
/** A lens that is thinner could not be seen. */
const THINNEST = 6;
/** Rows that are told of, and that are drawn: in more of them what is inside of a layer hides how layers differ. */
const MOST_ROWS = 800;
const DRAWN = 24;
/** Pixels of a bracket that has room for a name, between the numbers of blocks, and between the first of them and the next. */
const [NAMED_FROM, APART, NEXT] = [34, 100, 30];
/** Nodes of a graph that is seen as a whole without a map. */
const FEW = 30;

export class River {
  constructor(viewer, tip) {
    this.viewer = viewer;
    this.tip = tip;
    this.model = viewer.model;
    this.behind = lastOf(this.model);
    this.lens = svg("rect", { class: "lens", rx: 2 });
    this.cursor = svg("path", { class: "cursor" });
    this.stream = svg("g", {});
    this.svg = svg("svg", { "aria-hidden": "true" }, hatching(), this.stream, this.lens, this.cursor);
    this.element = element("div", {
      class: "river", role: "slider", tabindex: "0", "aria-orientation": "vertical", "aria-valuemin": "0", "aria-label": "Gradients from the loss down. Arrow keys go along it, Enter opens what is there",
      on: { pointerdown: (event) => this._press(event), pointermove: (event) => this._hover(event), pointerup: (event) => this._release(event), pointercancel: (event) => this._release(event), pointerleave: () => this._leave(), keydown: (event) => this._key(event), blur: () => this._leave() },
    }, this.svg);
    this.axis = element("div", { class: "axis", "aria-hidden": "true" });
    this.whole = element(
      "div", { class: "profile", hidden: this.model.data.passes.length && this.model.size >= FEW ? null : "" },
      element("div", { class: "caption", text: "loss ↓ ‖g‖ →", title: "Rows are parts of the graph, from the loss down; further right is larger" }), this.element, this.axis, element("div", { class: "caption key" }, span("middle", "median"), span("dot", "leaf")),
    );
    this.at = 0;
    new ResizeObserver(() => this.show()).observe(this.element);
  }

  /** Draw it anew: another size, other gradients or other colours. */
  show() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height || !this.viewer.isSeen) return;
    Object.assign(this, { width, height, left: BRACKET + GAP });
    this.profile = profileOf(this.model, Math.min(height, MOST_ROWS));
    this.drawn = profileOf(this.model, evenRows(this.model, DRAWN));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.stream.replaceChildren(...this._brackets(), ...this._flow(), ...this._marks());
    const { scale } = this.viewer;
    this.axis.replaceChildren(...["from", "to"].map((end) => element("span", { text: scale.end(end) })));
    this.element.ariaValueMax = this.profile.rows - 1;
    this._go(this.at);
    this.look();
  }

  _y(row, rows = this.drawn.rows) {
    return (row * this.height) / rows;
  }

  _x(log) {
    const { scale } = this.viewer;
    const share = Math.min(Math.max((log - scale.from) / (scale.to - scale.from), 0), 1);
    return this.left + Math.max(share * (this.width - this.left - 1), 1);
  }

  // ------------------------------------------------------------------ what is drawn

  /** What flows, without the colours of boxes, which are of what enters them alone; and its median, which is a line. */
  _flow() {
    const { rows, low, mid, high } = this.drawn;
    let [stream, line] = ["", ""];
    for (let row = 0; row < rows; row++) {
      if (Number.isNaN(mid[row])) continue;
      const [a, b, c] = [low[row], mid[row], high[row]].map((log) => this._x(log));
      const from = round(Math.min(a, c - 2));
      stream += `M${from} ${round(this._y(row))}H${round(c)}V${round(this._y(row + 1))}H${from}Z`;
      const joins = row > 0 && !Number.isNaN(mid[row - 1]);
      line += `${joins ? "L" : "M"}${round(b)} ${round(this._y(row + 0.5))}${joins ? "" : "h.01"}`;
    }
    const bed = svg("rect", { class: "bed", x: this.left, y: 0, width: this.width - this.left, height: this.height });
    return [bed, svg("path", { class: "stream", d: stream }), svg("path", { class: "median", d: line })];
  }

  /** What has no size: not finite over the whole width, zero hatched; and the leaves as dots. */
  _marks() {
    const { rows, bad, zero, finite, leaf } = this.drawn;
    const [marks, wide] = [{ bad: "", zero: "", dots: "" }, this.width - this.left];
    const tall = this.height / rows;
    for (let row = 0; row < rows; row++) {
      const y = round(this._y(row));
      const bar = (width) => `M${this.left} ${y}h${round(width)}v${round(tall)}h${round(-width)}Z`;
      if (bad[row]) marks.bad += bar(wide);
      // Beside gradients that flow, zeros take the share of the width that they have of the nodes.
      else if (zero[row]) marks.zero += bar((wide * zero[row]) / (zero[row] + finite[row]));
      if (!Number.isNaN(leaf[row])) marks.dots += `M${round(this._x(leaf[row]))} ${round(this._y(row + 0.5))}h.01`;
    }
    return Object.entries(marks).filter(([, d]) => d).map(([kind, d]) => svg("path", { class: kind, d }));
  }

  _brackets() {
    const { model } = this;
    let end = 0;
    return brackets(model, (NAMED_FROM * model.size) / this.height).flatMap(({ group, from, to }, i) => {
      const [top, bottom] = [Math.max((from * this.height) / model.size, end), (to * this.height) / model.size];
      if (bottom - top < 1) return [];
      end = bottom;
      const bar = svg("rect", { class: `bracket ${i % 2 ? "odd" : ""}`, x: 0.5, y: round(top + 0.5), width: BRACKET - 1, height: round(Math.max(bottom - top - 1, 0.5)), rx: 2 });
      return bottom - top < NAMED_FROM ? [bar] : [bar, ...this._names(group, top, bottom)];
    });
  }

  /** The name of a bracket, and of blocks that have no room for theirs the numbers of some, where they stand. */
  _names(group, top, bottom) {
    const { model } = this;
    const numbers = model.once.has(group) ? model.rounds(group).map((one) => [/\d+$/.exec(model.group(one.group).title)?.[0], ((model.first[one.group] + this.behind[one.group]) * this.height) / 2 / model.size]) : [];
    let step = 1;
    while ((step * (bottom - top)) / numbers.length < APART) step *= 2;
    const shown = numbers.filter(([number, y], i) => number && (!i || (number % step === 0 && y - numbers[0][1] >= NEXT)));
    // The name stands in the widest gap.
    const ends = [top, ...shown.map(([, y]) => y), bottom];
    const gaps = ends.slice(1).map((end, i) => [ends[i], end]);
    const [from, to] = gaps.reduce((a, b) => (b[1] - b[0] > a[1] - a[0] ? b : a));
    return [...shown, [this._name(group, to - from - (shown.length ? 2 * HALF : 3)), (from + to) / 2]].filter(([words]) => words).map(([words, y]) => {
      const turned = widthOf(words, LABEL) > BRACKET ? "rotate(-90)" : "translate(2)";
      const text = svg("text", { transform: `translate(${BRACKET / 2} ${round(Math.min(Math.max(y, HALF), this.height - HALF))})${turned}`, "text-anchor": "middle", dy: 4 });
      text.textContent = words;
      return text;
    });
  }

  /** As much of the path of a module as has room, at least what tells it from those beside it; else nothing. */
  _name(group, room) {
    const { title, kind } = this.model.group(group);
    const { name, times } = groupWords(this.model, group);
    const ends = title.split(".").map((_, i, parts) => parts.slice(i).join("."));
    const known = kind === "module" ? [...ends.filter((end) => end.length > name.length), name] : [`${name}${times}`, name, times.trim()];
    return known.find((words) => widthOf(words, LABEL) <= room);
  }

  /** Mark what is in sight on the canvas. */
  look() {
    if (!this.profile) return;
    const { model, viewer } = this;
    let [from, to] = [model.size, 0];
    for (const box of viewer.inSight()) {
      if (box.open || box.isEnd) continue;
      for (const { node, group } of box.each ?? [box]) {
        from = Math.min(from, node ?? model.first[group]);
        to = Math.max(to, node === undefined ? this.behind[group] : node + 1);
      }
    }
    const tall = Math.max(((to - from) * this.height) / model.size, THINNEST);
    const y = Math.min((from * this.height) / model.size, this.height - tall);
    for (const [name, value] of Object.entries({ x: 1, y: round(y), width: this.width - 2, height: round(tall) })) this.lens.setAttribute(name, value);
    this.lens.toggleAttribute("hidden", to <= from);
  }

  // ------------------------------------------------------------------ what is said

  nodesOf(row) {
    const { rows } = this.profile;
    return [firstOf(row, rows, this.model.size), firstOf(row + 1, rows, this.model.size)];
  }

  /** The layer of a row, and what flows there, in lines. */
  _words(row) {
    const { model } = this;
    const { low, mid, high, leaf, bad, zero } = this.profile;
    const [from, to] = this.nodesOf(row);
    const node = this._chosen(row);
    const size = (log) => number(Number((10 ** log).toPrecision(3)));
    const unit = model.isSpread ? "largest ÷ smallest" : "‖g‖";
    const spread = to - from > 1 && high[row] > low[row] ? ` (${size(low[row])} to ${size(high[row])})` : "";
    return [
      model.module(node) || nodeName(model, node),
      Number.isNaN(mid[row]) ? "" : `${unit} ${size(mid[row])}${spread}`,
      Number.isNaN(leaf[row]) ? "" : `leaves ${size(leaf[row])}`,
      bad[row] ? `✖ not finite at ${plural(bad[row], "node")}` : "",
      zero[row] ? `zero at ${plural(zero[row], "node")}` : "",
      `${to - from > 1 ? `nodes ${count(from)} to ${count(to - 1)}` : `node ${count(from)}`} of ${count(model.size)}`,
    ].filter(Boolean);
  }

  /** The node that a row stands for: what is not finite before the one whose gradient is nearest to a place. */
  _chosen(row, x = null) {
    const { model } = this;
    const [from, to] = this.nodesOf(row);
    let best = { node: from, cost: Infinity };
    for (let node = from; node < to; node++) {
      const { state, norm } = model.upstream(node) ?? { state: "none", norm: null };
      const where = this._x(Math.log10(Number(norm ?? 0)));
      const cost = state === "non-finite" ? -1 : model.isLeaf(node) ? 1e4 : x === null ? node - from : Math.abs(where - x);
      if (cost < best.cost) best = { node, cost };
    }
    return best.node;
  }

  // ------------------------------------------------------------------ events

  _rowAt(event) {
    const { top } = this.element.getBoundingClientRect();
    return Math.min(Math.max(Math.floor(((event.clientY - top) * this.profile.rows) / this.height), 0), this.profile.rows - 1);
  }

  _go(row) {
    this.at = Math.min(Math.max(row, 0), this.profile.rows - 1);
    this.element.ariaValueNow = this.at;
    this.element.ariaValueText = this._words(this.at).join(", ");
  }

  _hover(event) {
    const { pressed } = this;
    if (pressed) pressed.moved ||= Math.abs(event.clientY - pressed.y) > STILL;
    if (pressed?.moved) this._scroll(this._rowAt(event));
    else if (this.profile && !pressed) this._point(this._rowAt(event));
  }

  _point(row) {
    const { left, top, width } = this.element.getBoundingClientRect();
    const y = round(this._y(row + 0.5, this.profile.rows));
    this.cursor.setAttribute("d", `M0 ${y}H${this.width}`);
    this.tip.show(this._words(row), left + width + 6, top + Number(y));
  }

  _leave() {
    this.cursor.setAttribute("d", "");
    this.tip.hide();
  }

  _press(down) {
    if (down.button !== 0 || !this.profile) return;
    this.element.setPointerCapture(down.pointerId);
    this.pressed = { row: this._rowAt(down), x: down.clientX - this.element.getBoundingClientRect().left, y: down.clientY, moved: false };
  }

  _release({ type }) {
    const { pressed } = this;
    this.pressed = null;
    if (pressed && !pressed.moved && type === "pointerup") this._open(pressed.row, pressed.x);
  }

  _open(row, x) {
    this._go(row);
    this.viewer.reveal({ node: this._chosen(row, x) });
  }

  /** Bring what is drawn of a row to the middle, as it is drawn now. */
  _scroll(row) {
    this._go(row);
    this._point(row);
    const [from, to] = this.nodesOf(row);
    this.viewer.centre((from + to - 1) >> 1);
  }

  _key(event) {
    if (!this.profile) return;
    const page = Math.ceil(this.profile.rows / 12);
    const line = Math.ceil(this.profile.rows / 100);
    const to = { ArrowDown: this.at + line, ArrowUp: this.at - line, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: this.profile.rows - 1 }[event.key];
    if (event.key === "Enter") this._open(this.at, null);
    else if (to !== undefined) this._scroll(Math.min(Math.max(to, 0), this.profile.rows - 1));
    else return;
    taken(event);
  }

  /** Follow what was selected elsewhere. */
  mark(node) {
    if (this.profile) this._go(rowOf(node, this.profile.rows, this.model.size));
  }
}

const round = (x) => Math.round(x * 100) / 100;

function hatching() {
  const pattern = svg("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("path", { class: "hatch", d: "M0 0V5" }));
  return svg("defs", {}, pattern);
}
