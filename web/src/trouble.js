// Where something is wrong: findings, and gradients that stop being finite.  Knows nothing of the screen.
import { append } from "./bucket.js";
import { leavesOf } from "./format.js";
import { absentOf } from "./words.js";

const GRAVITY = { error: 3, warning: 2, information: 1 };
const LEVELS = ["", "information", "warning", "error"];

export class Troubles {
  /** For the pass that the model looks at now. */
  constructor(model) {
    this.model = model;
    this.findingsAt = new Map();
    for (const finding of model.data.findings) {
      if (finding.node) append(this.findingsAt, finding.node.id, finding);
    }
    this.births = [...new Set(model.passes.flatMap((pass) => births(model, pass)))].sort((a, b) => a - b);
    /** What the verdict is about, worst first: the node, or -1 where a line alone is meant, how bad it is, what happens there, the place of the line, or -1, and whether the round that begins there is meant. */
    const { calls, graph, ranks } = model.data;
    const isItsRank = model.rank === (ranks?.shown ?? null);
    this.marks = (isItsRank && calls?.find(([, of, pass]) => of === graph && pass === model.passNumber)?.[6]) || [];
    this.gravity = this._nodes(model);
    this.inGroup = enclosing(model, this.gravity);
    this.places = this._places();
  }

  /** The worst severity at a node: "error", "warning", "information" or "". */
  atNode(node) {
    return LEVELS[this.gravity[node]];
  }

  /** The worst at a box: at all that it stands for. What is only worth a look is said by the innermost box, and by that which lacks modules. */
  at(box) {
    const { group, each, open } = box;
    const of = (one) => (one.node === undefined ? this.inGroup[one.group] : this.gravity[one.node]);
    const inside = (each ?? [box]).reduce((most, one) => Math.max(most, of(one)), 0);
    const worst = Math.max(open && inside === GRAVITY.information ? 0 : inside, ...this._said(box).map(([, severity]) => GRAVITY[severity]));
    return LEVELS[worst] || (group !== undefined && absentOf(this.model, group, Boolean(box.bars)) ? "information" : "");
  }

  /** What gradients do in a box that is not open, or at one of those that are drawn as it; or in the rounds of what is drawn once. */
  words(box) {
    const said = this._said(box);
    const ofOps = said.filter(([, , , , , leaf]) => !leaf);
    // A leaf says itself who it is, and so does a group of leaves.
    if (this.model.ops[box.group] && !ofOps.length) return ofLeaves(said);
    return andMore(new Set((ofOps.length ? ofOps : said).map(([, , words]) => words)));
  }

  /** The marks that a box tells of: those of a round are told of what is drawn once for all rounds, rather than of what is in it. */
  _said(box) {
    const { key, each, bars, repeats, open } = box;
    const { model } = this;
    const isIn = (one, at) => one && (one.node === undefined ? model.isInside(at, one.group) : one.node === at);
    const isHere = (isRound) => (isRound && bars ? key === `g${repeats.at(-1)}` : !open);
    return this.marks.filter(([at, , , , isRound]) => at >= 0 && isHere(isRound) && (each ?? bars ?? [box]).some((one) => isIn(one, at)));
  }

  _nodes(model) {
    const gravity = new Uint8Array(model.size);
    for (const node of this.births) gravity[node] = GRAVITY.error;
    for (const [node, findings] of this.findingsAt) {
      for (const { severity } of findings) gravity[node] = Math.max(gravity[node], GRAVITY[severity] ?? 0);
    }
    return gravity;
  }

  /** Nodes to go to one after the other: the worst first, then in backward order. */
  _places() {
    const nodes = this.findingsAt.size ? [...this.findingsAt.keys()] : this.births;
    return [...nodes].sort((a, b) => this.gravity[b] - this.gravity[a] || a - b);
  }
}

/** Nodes that make a gradient that is not finite from one that is; where none does, those that were given one. */
function births(model, pass) {
  if (!pass.state.includes(4)) return [];
  const isBad = (entry) => pass.state[entry] === 4;
  const [born, given] = [[], []];
  for (let n = 0; n < model.size; n++) {
    const receives = pass.upstream[n].some(isBad);
    if (!receives && model.from(n).some((edge) => isBad(pass.edges[edge]))) born.push(n);
    else if (receives && model.rootNodes.has(n)) given.push(n);
  }
  return born.length ? born : given;
}

/** For every group the largest of the numbers of its nodes. */
function enclosing(model, gravity) {
  const found = new Uint8Array(model.parent.length);
  gravity.forEach((value, node) => {
    if (value > found[model.owner[node]]) found[model.owner[node]] = value;
  });
  // Parents come before their children.
  for (let g = found.length - 1; g > 0; g--) found[model.parent[g]] = Math.max(found[model.parent[g]], found[g]);
  return found;
}

/** What is said of some leaves as one: by the name that all have in their modules, or by how many they are. */
export function ofLeaves(marks) {
  const [said, names] = [2, 5].map((part) => new Set(marks.map((mark) => mark[part])));
  const [leaf] = names;
  const who = !marks[1] || said.size > 1 ? leaf : names.size > 1 ? leavesOf(marks.length) : `${leaf} ×${marks.length}`;
  return leaf ? `${who}: ${andMore(said)}` : "";
}

const andMore = ([first = "", ...others]) => first + (others.length ? ` and ${others.length} more` : "");
