// Finding nodes and groups by their words.
import { pause } from "./element.js";
import { visible } from "./format.js";
import { STATES } from "./model.js";
import { inside } from "./words.js";

const MOST = 60;

/** Milliseconds of work between two chances for the page to answer. */
const SLICE = 12;

const idle = window.requestIdleCallback ? () => new Promise((done) => requestIdleCallback(done, { timeout: 100 })) : pause;

export class Search {
  constructor(model) {
    this.model = model;
    this.entries = null;
    this.known = new Map();
  }

  /**
   * All that can be found.  A hundred thousand texts take time: they are put together in slices, while nothing else is done.
   * @param isAsked whether somebody waits for it
   */
  prepare(isAsked) {
    this.isAsked ||= isAsked;
    this.ready ??= this._all();
    return this.ready;
  }

  async _all() {
    const { model } = this;
    const entries = [];
    let since = performance.now();
    const breathe = async () => {
      if (performance.now() - since < SLICE) return;
      await (this.isAsked ? pause : idle)();
      since = performance.now();
    };
    for (let g = 1; g < model.parent.length; g++) {
      entries.push(this._group(g));
      if (g % 256 === 0) await breathe();
    }
    for (let node = 0; node < model.size; node++) {
      entries.push(this._node(node));
      if (node % 256 === 0) await breathe();
    }
    this.entries = entries;
  }

  _group(group) {
    const { kind, title, type, label } = this.model.group(group);
    return { group, text: `${title} ${type} ${label}`.toLowerCase(), shown: inside(visible(kind === "repeat" && !type ? label || title : title || label)), kind };
  }

  _node(node) {
    const { model: { data: { nodes: { op, module, origin, variable } } }, known } = this;
    // Rounds of a loop say the same.
    const key = this.model.isLeaf(node) ? node : `${op[node]} ${module[node]} ${origin[node]} ${variable[node]}`;
    if (!known.has(key)) known.set(key, this._words(node));
    const { text, ...rest } = known.get(key);
    return { node, text: `${text} #${node}`, ...rest };
  }

  _words(node) {
    const { model } = this;
    const origin = model.origin(node);
    const words = [...model.names(node), model.op(node), model.label(node), model.module(node), origin ? `${origin.file}:${origin.line}` : ""];
    const shown = inside(visible(model.names(node)[0] ?? (model.label(node) || model.title(node))));
    return { text: words.join(" ").toLowerCase(), shown, kind: model.isLeaf(node) ? "leaf" : visible(model.title(node)) };
  }

  /** The best matches: for "NaN" and "Inf" where a gradient becomes so, and is so; then names that are, end in, or begin with the words; and how many there are. */
  find(words) {
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    if (!parts.length || !this.entries) return { found: [], total: 0 };
    const whole = parts.join(" ");
    const { births } = this.model.troubles;
    const isBad = this._bad(whole);
    const isMatch = (entry) => parts.every((part) => entry.text.includes(part)) || isBad(entry);
    const rank = (entry) => {
      const [shown, kind] = [entry.shown, entry.kind].map((text) => text.toLowerCase());
      return [isBad(entry) && births.includes(entry.node), isBad(entry), shown === whole, shown.endsWith(`.${whole}`) || kind === whole, shown.startsWith(whole), true].indexOf(true);
    };
    const ranked = this.entries.filter(isMatch).map((entry) => [rank(entry), entry]);
    const found = ranked.sort(([a], [b]) => a - b).map(([, entry]) => entry);
    return { found: found.slice(0, MOST), total: found.length };
  }

  /** Whether a node makes or gets a gradient that is not finite, where these are asked for. */
  _bad(word) {
    const { model: { pass, troubles: { births } } } = this;
    if (!pass || !["nan", "inf"].includes(word)) return () => false;
    return ({ node }) => node !== undefined && (births.includes(node) || pass.upstream[node].some((entry) => STATES[pass.state[entry]] === "non-finite"));
  }
}
