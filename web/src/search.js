// Finding nodes and groups by their words.
import { visible } from "./format.js";

const MOST = 60;

export class Search {
  constructor(model) {
    this.model = model;
    this.entries = null;
  }

  // Made when it is first asked for: a hundred thousand texts cost time that the first view needs.
  _all() {
    if (this.entries) return this.entries;
    const { model } = this;
    const entries = [];
    for (let g = 1; g < model.parent.length; g++) {
      const { kind, title, type, label } = model.group(g);
      entries.push({ group: g, text: `${title} ${type} ${label}`.toLowerCase(), shown: visible(kind === "repeat" && !type ? label || title : title || label), kind });
    }
    for (let node = 0; node < model.size; node++) {
      const origin = model.origin(node);
      const words = [...model.names(node), model.op(node), model.label(node), model.module(node), origin ? `${origin.file}:${origin.line}` : "", `#${node}`];
      entries.push({ node, text: words.join(" ").toLowerCase(), shown: visible(model.names(node)[0] ?? (model.label(node) || model.title(node))), kind: model.isLeaf(node) ? "leaf" : visible(model.title(node)) });
    }
    this.entries = entries;
    return entries;
  }

  /** The best matches, those whose shown name is or begins with the words first; and how many there are. */
  find(words) {
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    if (!parts.length) return { found: [], total: 0 };
    const whole = parts.join(" ");
    const matches = this._all().filter((entry) => parts.every((part) => entry.text.includes(part)));
    const rank = ({ shown }) => (shown.toLowerCase() === whole ? 0 : shown.toLowerCase().startsWith(whole) ? 1 : 2);
    const best = [0, 1, 2].flatMap((level) => matches.filter((entry) => rank(entry) === level).slice(0, MOST)).slice(0, MOST);
    return { found: best, total: matches.length };
  }
}
