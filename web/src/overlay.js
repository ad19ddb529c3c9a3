// What the colour and the bar of boxes mean: the size of gradients, or something else that the page has numbers for.
// Knows nothing of the screen.
import { number } from "./format.js";
import { ClassScale, Scale, SpreadScale } from "./scale.js";
import { told } from "./words.js";

/** Where an overlay has nothing to say. */
const NOTHING = { state: "none", norm: null, words: "" };

/** The gradients of the pass that is looked at. */
export class Gradients {
  name = "‖gradient‖";

  constructor(model) {
    this.model = model;
  }

  get scale() {
    const { model } = this;
    if (model.isSpread) return new SpreadScale([...model.source.keys()].map((edge) => model.onEdge(edge).norm));
    const { edges, norm } = model.pass ?? { edges: [], norm: [] };
    const seen = new Uint8Array(norm.length);
    return new Scale(edges.filter((entry) => !seen[entry] && (seen[entry] = 1)).map((entry) => norm[entry]));
  }

  /** What is shown of a box or a round, as a gradient is told; on a line where that is something else. */
  of(box) {
    return this.model.arriving(box);
  }

  /** What arrives at the values of a line. */
  ofAll(each) {
    return this.of(each.length > 1 ? { each } : each[0]);
  }

  /** The same of all bars of a box's strip; null where one is of nothing. */
  bars(box) {
    return this.model.bars(box);
  }

  /** The same in every pass that strips tell of, a list for each. */
  grid(box) {
    return this.model.grid(box);
  }

  onLine() {
    return null;
  }
}

/** One of the overlays of render/drawing/overlay.py. */
export class Overlay {
  constructor(model, data) {
    this.model = model;
    this.data = data;
    this.forget();
  }

  get name() {
    return this.data.isRatio && !this.data.apart ? this._names.reverse().join(" ÷ ") : this.data.name;
  }

  /** What the two passes of a ratio are called. */
  get _names() {
    return this._pair.map(({ number }, i) => (number ? `call ${number}` : "AB"[i]));
  }

  /** The first pass, and the one that is looked at or else the second. */
  get _pair() {
    const { passNumber, data: { passes } } = this.model;
    return [passes[0], passes[passNumber || 1]];
  }

  /** Another pass is looked at. */
  forget() {
    this.known = new Map();
  }

  get scale() {
    const { model, data, name } = this;
    const each = [...Array(model.size).keys()].map((node) => this._node(node).norm);
    if (data.apart) return (this._shade = Object.assign(new Scale(each, true), { title: name, classes: data.classes, known: true, meaning: data.meaning, tell: (x) => `${number(100 * x)}%` }));
    if (data.isRatio || data.classes.length) return new ClassScale(name, data.classes, data.isRatio ? each : null);
    if (!data.bytes) return Object.assign(new Scale(each, true), { title: name, meaning: "smaller – larger" });
    const groups = [...model.parent.keys()].slice(1).map((group) => this.of({ group }).norm);
    return Object.assign(new Scale([...each, ...groups], true), { title: name, meaning: "fewer – more", tell: bytes });
  }

  of({ node, group, each }) {
    if (each?.length > 1) return this._among(each);
    if (group === undefined) return node === undefined ? NOTHING : this._node(node);
    if (!this.known.has(group)) this.known.set(group, this._group(group));
    return this.known.get(group);
  }

  /** Whether it is about all that a line made, and not about its values alone. */
  get isOfAll() {
    return !this.data.isRatio;
  }

  ofAll(each) {
    return this.data.bytes ? this._bytes(each.map(({ node }) => node)) : this.of(each.length > 1 ? { each } : each[0]);
  }

  _bytes(nodes) {
    return amount(nodes.reduce((sum, node) => sum + (this.data.bytes[node] ?? 0), 0));
  }

  bars({ bars, group }) {
    return Array.from(bars ?? this.model.rounds(group), (one) => (one ? this.of(one) : null));
  }

  grid(box) {
    return [this.bars(box)];
  }

  onLine(bundle) {
    const { apart, isRatio } = this.data;
    const info = apart && this._apart(bundle.edges);
    if (info?.words) return { ...info, color: this._shade.color(info.norm) };
    const ratio = isRatio ? this._ratio((pass) => this.model.flowingIn(pass, bundle)) : null;
    return apart && ratio.state === "finite" ? { ...NOTHING, words: "=" } : ratio;
  }

  /** By how much gradients on these edges differ at most. */
  _apart(edges) {
    const [most, ...others] = Array.from(edges, (edge) => this.data.apart[edge]).filter(Boolean).sort(([a], [b]) => b - a);
    return most ? { state: "finite", norm: most[0], words: (others.length ? "max " : "") + most[1] } : NOTHING;
  }

  _node(node) {
    const { model, data } = this;
    const mark = data.marks[node];
    if (mark !== undefined) return this._class(mark);
    if (data.apart) return this._apart(model.into(node));
    if (data.isRatio) return this._ratio((pass) => model.upstreamIn(pass, node));
    if (data.bytes) return amount(data.bytes[node]);
    const weight = data.weights?.[node];
    const info = weight && model.upstream(node);
    return info?.norm > 0 ? { state: "finite", norm: info.norm / weight, words: number(info.norm / weight) } : NOTHING;
  }

  /** Of a box that stands for several what matters most of them, with the range of their words. */
  _among(each) {
    if (!this.known.has(each)) {
      const found = each.map((one) => this.of(one)).filter((info) => info.words).sort((a, b) => weight(a) - weight(b));
      const words = this.data.apart ? found.at(-1)?.words.replace(/^(?!max|only|=)/, "max ") : [...new Set([found[0]?.words, found.at(-1)?.words])].join("–");
      this.known.set(each, found.length ? { ...found.at(-1), words } : NOTHING);
    }
    return this.known.get(each);
  }

  /** Bytes add up; of gradients what enters counts; else what matters most of what is inside. */
  _group(group) {
    const { model, data } = this;
    const nodes = model.inside(group);
    const marks = nodes.map((node) => data.marks[node] ?? -1);
    const mark = marks.reduce((most, one) => Math.max(most, one), -1);
    if (mark >= 0 && (!data.isRatio || marks.every((one) => one === mark))) return this._class(mark);
    if (data.apart) return this._apart(nodes.flatMap((node) => [...model.into(node)]).filter((edge) => !model.isInside(model.source[edge], group)));
    if (data.isRatio) return this._ratio((pass) => model.enteringIn(pass, group));
    if (data.bytes) return this._bytes(nodes);
    return nodes.map((node) => this._node(node)).reduce((most, info) => (info.norm > (most.norm ?? 0) ? info : most), NOTHING);
  }

  _class(mark) {
    return { state: "finite", norm: -1 - mark, words: this.data.classes[mark][0] };
  }

  _ratio(read) {
    const pair = this._pair.map(read);
    const [a, b] = pair.map((info) => Number(info?.norm ?? NaN));
    if (a > 0 && b > 0 && Number.isFinite(b / a)) return { state: "finite", norm: b / a, words: `${number(b / a)}×` };
    const words = pair.map((info) => told(info));
    if (words[0] === words[1]) return NOTHING;
    const lone = pair.findIndex((info, i) => pair[1 - i]?.state === "not reached");
    const said = lone < 0 ? words.join(" → ") : `only in ${this._names[lone]}`;
    return { ...NOTHING, words: said, color: this.data.classes.find(([name]) => name === said)?.[1] };
  }
}

/** How much something matters: classes more than any number, and the later ones of them more. */
const weight = ({ norm }) => (norm < 0 ? 1e300 : 1) * Math.abs(norm ?? 0);

const amount = (size) => (size ? { state: "finite", norm: size, words: bytes(size) } : NOTHING);

/** `1.5 KiB`, as render/words/numbers.py writes sizes. */
function bytes(size) {
  let unit = "B";
  for (const larger of ["KiB", "MiB", "GiB", "TiB"]) if (size >= 1000) [size, unit] = [size / 1024, larger];
  return `${Number(size.toPrecision(3))} ${unit}`;
}
