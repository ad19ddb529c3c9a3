// The report in memory: columns decoded, groups linked, and every number that is drawn.
// Knows nothing of layout or of the screen.  The other side of this form is render/drawing/pack.py.

import { append, bucket } from "./bucket.js";
import { among, combine, placesEntered } from "./gradients.js";
import { Ranks, SPREAD, apart } from "./ranks.js";
import { Templates } from "./template.js";
import { Troubles } from "./trouble.js";

export const STATES = ["not reached", "none", "zero", "finite", "non-finite"];
const KINDS = ["op", "leaf", "custom", "opaque"];
/** Cells of a strip that may tell of all passes. */
const MOST_CELLS = 20_000;

export class Model {
  /** @param {object} data what `pack` of render/_pack.py made */
  constructor(data) {
    this.data = data;
    this.strings = data.strings;
    this.size = data.nodes.op.length;
    this.owner = Int32Array.from(data.nodes.group);
    this.parent = Int32Array.from(data.groups.parent);
    this._link(data.edges);
    this._nest();
    this._rounds = new Map();
    this._called = new Map();
    this._places = new Map();
    this._met = new WeakMap();
    this._sums = new WeakMap();
    /** The nodes at which gradients that meet are told by their shares, in any pass. */
    this.meets = new Set(data.passes.flatMap(({ skip, cancelled }) => [skip, cancelled].flatMap(Object.keys)).map(Number).map(Math.floor));
    /** Nodes that a backward pass made. */
    this.derived = new Set(data.nodes.backward);
    /** Places at which gradients oppose each other, in any pass, and the groups around these. */
    this._cancels = new Set(data.passes.flatMap(({ cancelled }) => Object.keys(cancelled)));
    this._cancelsIn = new Set();
    for (const place of this._cancels) for (let g = this.owner[Math.floor(place)]; g >= 0 && !this._cancelsIn.has(g); g = this.parent[g]) this._cancelsIn.add(g);
    /** Repeats whose rounds are equal, so that one can be drawn for all. */
    this.once = new Set(data.groups.once);
    this.templates = new Templates(this);
    this.leafOf = new Map(data.leaves.node.map((node, position) => [node, position]));
    this.rootNodes = new Set(data.roots.map((root) => root.node));
    /** Each place where the history was cut of what nodes took, and these. */
    this.walls = [];
    for (const { node, ...cut } of data.walls) {
      const same = this.walls.find((one) => one.function === cut.function && one.origin === cut.origin);
      if (same) same.nodes.push(node);
      else this.walls.push({ ...cut, nodes: [node] });
    }
    this.ranks = data.ranks ? new Ranks(data) : null;
    this.choose(0, this.ranks?.shown ?? null);
  }

  _link(edges) {
    const total = edges.slot.length;
    this.source = new Int32Array(total);
    this.target = new Int32Array(total);
    this.slot = edges.slot;
    this.output = edges.output;
    let source = 0;
    for (let i = 0; i < total; i++) {
      source += edges.source[i];
      this.source[i] = source;
      this.target[i] = source + edges.ahead[i];
    }
    this.from = bucket(this.source, this.size);
    this.into = bucket(this.target, this.size);
  }

  outgoing(node) {
    return [...this.from(node)];
  }

  incoming(node) {
    return [...this.into(node)];
  }

  _nest() {
    const groups = this.parent.length;
    this.children = Array.from({ length: groups }, () => []);
    for (let g = 1; g < groups; g++) this.children[this.parent[g]].push(g);
    this.members = Array.from({ length: groups }, () => []);
    for (let n = 0; n < this.size; n++) this.members[this.owner[n]].push(n);
    this._number();
    /** For every group its lowest node. */
    this.first = new Int32Array(groups).fill(this.size);
    for (let n = this.size - 1; n >= 0; n--) this.first[this.owner[n]] = n;
    for (let g = groups - 1; g > 0; g--) this.first[this.parent[g]] = Math.min(this.first[this.parent[g]], this.first[g]);
    this.ops = new Int32Array(groups);
    for (let n = 0; n < this.size; n++) if (!this.isLeaf(n)) this.ops[this.owner[n]] += 1;
    for (let g = groups - 1; g > 0; g--) this.ops[this.parent[g]] += this.ops[g];
  }

  /** Groups in the order of a walk through the tree: all inside group g are from before[g] to below behind[g]. */
  _number() {
    const groups = this.parent.length;
    this.before = new Int32Array(groups);
    this.behind = new Int32Array(groups).fill(1);
    for (let g = groups - 1; g > 0; g--) this.behind[this.parent[g]] += this.behind[g];
    const next = new Int32Array(groups).fill(1);
    for (let g = 1; g < groups; g++) {
      const [around, size] = [this.parent[g], this.behind[g]];
      this.before[g] = next[around];
      next[around] += size;
      next[g] = this.before[g] + 1;
      this.behind[g] = this.before[g] + size;
    }
  }

  /** For every node how many a walk along operands in their order comes by before it. */
  get met() {
    if (this._walked) return this._walked;
    const found = (this._walked = new Int32Array(this.size).fill(-1));
    const waiting = this.data.roots.map(({ node }) => node).reverse();
    for (let count = 0; waiting.length; ) {
      const node = waiting.pop();
      if (found[node] >= 0) continue;
      found[node] = count++;
      const edges = this.from(node);
      for (let i = edges.length - 1; i >= 0; i--) waiting.push(this.target[edges[i]]);
    }
    return found;
  }

  isInside(node, group) {
    const at = this.before[this.owner[node]];
    return at >= this.before[group] && at < this.behind[group];
  }

  /** Look at one of the report's backward passes, on one rank or on all; nothing where it has none. */
  choose(number, rank = this.rank) {
    this.rank = rank;
    this.passNumber = number;
    const one = this.ranks?.of(rank);
    this.pass = (one ?? this.data).passes[number] ?? null;
    this.histogramAt = rank === SPREAD ? null : (one?.start ?? 0) + number;
    this._entering = new Map();
    this._flowing = new WeakMap();
    this._bars = new WeakMap();
    this._meetings = new WeakMap();
    if (rank !== this._gridsOf) this._grids = new WeakMap();
    this._gridsOf = rank;
    this._among = new WeakMap();
    this.troubles = new Troubles(this);
  }

  // ---------------------------------------------------------------- nodes

  isLeaf(node) {
    return this.data.nodes.kind[node] === 1;
  }

  kind(node) {
    return KINDS[this.data.nodes.kind[node]];
  }

  names(node) {
    const position = this.leafOf.get(node);
    return position === undefined ? [] : this.data.leaves.names[position].map((i) => this.strings[i]);
  }

  /** What a node is called: a leaf's name, else its operation. */
  title(node) {
    if (this.isLeaf(node)) return this.names(node)[0] ?? `#${node}`;
    return this.strings[this.data.nodes.short[node]];
  }

  op(node) {
    return this.strings[this.data.nodes.op[node]];
  }

  module(node) {
    return this.strings[this.data.nodes.module[node]];
  }

  variable(node) {
    return this.strings[this.data.nodes.variable[node]];
  }

  /** `[2,3] float32` of an output. */
  shape(node, output = 0) {
    return this.strings[this.data.nodes.shape[node][output] ?? 0];
  }

  origin(node) {
    return this.place(this.data.nodes.origin[node]);
  }

  /** One of the places of the program; null for none. */
  place(at) {
    if (at === null || at < 0) return null;
    const origins = this.data.origins;
    return {
      file: this.strings[origins.file[at]],
      line: origins.line[at],
      expression: this.strings[origins.expression[at]],
      function: this.strings[origins.function[at]],
    };
  }

  /** The user's words for what a node computed; `∂ 3*a` for what backward made of it. */
  label(node) {
    if (this.isLeaf(node)) return "";
    const written = this.origin(node)?.expression ?? "";
    const expression = written && this.derived.has(node) ? `∂ ${written}` : written;
    const variable = this.variable(node);
    return variable && expression && this.title(node) !== "CopySlices" ? `${variable} = ${expression}` : expression || variable;
  }

  // ---------------------------------------------------------------- groups

  group(g) {
    const { kind, title, type, label, count } = this.data.groups;
    const at = (column) => this.strings[column[g]];
    return { kind: at(kind), title: at(title), type: at(type), label: at(label), count: count[g] };
  }

  /** The groups around a node or group, innermost first, the whole graph last. */
  around(group) {
    const found = [];
    for (let g = group; g >= 0; g = this.parent[g]) found.push(g);
    return found;
  }

  /** All nodes in a group at any depth. */
  inside(group) {
    const found = [];
    const waiting = [group];
    for (const g of waiting) {
      for (const node of this.members[g]) found.push(node);
      for (const child of this.children[g]) waiting.push(child);
    }
    return found;
  }

  /** The rounds of a repeat, or the parts of a module, in backward order, as groups or single nodes. */
  rounds(group) {
    if (!this._rounds.has(group)) this._rounds.set(group, this._roundsNow(group));
    return this._rounds.get(group);
  }

  _roundsNow(group) {
    if (this.once.has(group)) return this.templates.of(group).rounds.map((round) => this._calledBy({ group: round }));
    const found = [];
    const waiting = [group];
    for (const g of waiting) {
      for (const child of this.children[g]) {
        // A long repeat is in parts, and a repeat in a module stands for its rounds.
        if (["part", "repeat"].includes(this.group(child).kind)) waiting.push(child);
        else found.push({ group: child });
      }
    }
    if (found.length) return found.sort((a, b) => this.first[a.group] - this.first[b.group]).map((one) => this._calledBy(one));
    const nodes = waiting.flatMap((g) => this.members[g]).filter((node) => !this.isLeaf(node));
    return nodes.sort((a, b) => a - b).map((node) => ({ node }));
  }

  /** The module that a round is called by, whose gradient stands for it; itself where it is called by its number. */
  _calledBy(one) {
    const { kind, title } = this.group(one.group);
    const own = kind === "round" && this.children[one.group].find((child) => this.group(child).title === title);
    return own ? { group: own } : one;
  }

  /** What the bars of a box stand for: groups or nodes, null for rounds that lack it. */
  _bared({ key, group, bars, repeats }) {
    if (!bars) return this.rounds(group);
    if (key !== `g${repeats.at(-1)}`) return bars;
    if (!this._called.has(bars)) this._called.set(bars, Array.from(bars, (one) => one && this._calledBy(one)));
    return this._called.get(bars);
  }

  // ---------------------------------------------------------------- gradients

  get isSpread() {
    return this.rank === SPREAD;
  }

  /** The passes that are looked at: one, or that of every rank. */
  get passes() {
    if (!this.isSpread) return this.pass ? [this.pass] : [];
    return this.ranks.known.map((one) => one.passes[this.passNumber]);
  }

  /** What there is in each rank's pass: pairs of rank and gradient. */
  onRanks(read) {
    return this.ranks.known.map((one) => [one.rank, read(one.passes[this.passNumber])]);
  }

  /** What there is in the pass that is looked at, or how far it is apart over ranks. */
  _read(read) {
    if (!this.pass) return null;
    return this.isSpread ? apart(this.onRanks(read)) : read(this.pass);
  }

  /** One gradient of a pass's table. */
  gradient(entry, pass = this.pass) {
    return {
      entry,
      state: STATES[pass.state[entry]],
      norm: pass.norm[entry],
      absmax: pass.absmax[entry] ?? null,
      nan: pass.bad[entry]?.[0] ?? 0,
      inf: pass.bad[entry]?.[1] ?? 0,
      dtype: this.strings[pass.dtype[entry]],
      values: pass.values[entry] ?? null,
    };
  }

  onEdge(edge) {
    return this._read((pass) => this.gradient(pass.edges[edge], pass));
  }

  /** What arrives at a node; of one with several outputs, at one of them or at all. */
  upstream(node, output) {
    return this._read((pass) => this.upstreamIn(pass, node, output));
  }

  upstreamIn(pass, node, output) {
    const row = pass.upstream[node];
    return output === undefined && row.length > 1 ? combine(row.map((one) => this.gradient(one, pass))) : this.gradient(row[output ?? 0], pass);
  }

  /** What was given for a root. */
  seed(root) {
    return this._read((pass) => this.gradient(pass.seeds[root], pass));
  }

  /** How much of a gradient comes along an edge; of several ranks on the one that the report is of. */
  strength(edge) {
    return this.pass ? Number(this.pass.norm[this.pass.edges[edge]] ?? 0) : 1;
  }

  /** What enters a node or group, or the range of what enters those that it stands for. */
  arriving({ node, group, each }) {
    if (each?.length > 1) return this._amongAll(each, (one) => (one.node === undefined ? null : this.pass.upstream[one.node][0]), () => this._arrivingAll(each));
    return node === undefined ? this.entering(group) : this.upstream(node);
  }

  /** What enters each of the rounds that a box has a strip of; null for those that lack it. */
  bars(box) {
    return this._arrivingAll(this._bared(box));
  }

  /** The same of every pass on this graph: of several calls, or of both sides of a comparison; of this pass alone where they are too many. */
  grid(box) {
    const things = this._bared(box);
    const { passes } = this.ranks?.of(this.rank) ?? this.data;
    if (this.isSpread || passes.length < 2 || passes.length * things.length > MOST_CELLS) return [this.bars(box)];
    if (!this._grids.has(things)) this._grids.set(things, passes.map((pass) => Array.from(things, (one) => one && this.arrivingIn(pass, one))));
    return this._grids.get(things);
  }

  arrivingIn(pass, { node, group }) {
    return node === undefined ? this.enteringIn(pass, group) : this.upstreamIn(pass, node);
  }

  /** Whether the two passes are the sides of a comparison. */
  get isPair() {
    const { passes } = this.data;
    return passes.length === 2 && !passes[0].number;
  }

  /** What one bar of a box's strip stands for: a group or node, or null. */
  barOf(box, number) {
    return this._bared(box)[number];
  }

  _arrivingAll(things) {
    if (!this._bars.has(things)) this._bars.set(things, Array.from(things, (one) => (one ? this.arriving(one) : null)));
    return this._bars.get(things);
  }

  /**
   * Many at once, so what is found of a list is kept as long as the list.
   * @param entryOf the entry of the pass's table that each is, or null; where all are one no object is made for each
   */
  _amongAll(each, entryOf, infos) {
    if (!this.pass) return null;
    if (!this._among.has(each)) {
      const { state, norm } = this.pass;
      const entries = this.isSpread ? [null] : each.map(entryOf);
      const found = entries.includes(null)
        ? among(infos().filter(Boolean), (info) => info.state, (info) => info.norm, (info) => info)
        : among(entries, (entry) => STATES[state[entry]], (entry) => norm[entry], (entry) => this.gradient(entry));
      this._among.set(each, found);
    }
    return this._among.get(each);
  }

  /** What enters a group, or the module that a round is called by: the upstream gradients at all places where edges or seeds lead in, as one long vector. */
  entering(group) {
    if (!this.pass) return null;
    if (!this._entering.has(group)) this._entering.set(group, this._read((pass) => this.enteringIn(pass, group)));
    return this._entering.get(group);
  }

  enteringIn(pass, group) {
    return combine(this._entered(this._calledBy({ group }).group).map(([node, output, outside]) => (outside ? this.flowingIn(pass, outside) : this.upstreamIn(pass, node, output))));
  }

  /** At how many places gradients enter a group. */
  entrances(group) {
    return this.pass ? this._entered(this._calledBy({ group }).group).length : 0;
  }

  _entered(group) {
    if (!this._places.has(group)) this._places.set(group, placesEntered(this, group));
    return this._places.get(group);
  }

  /** The node at which all gradients that come to a node or group are added, if there is something to say of them; else null. */
  meetingAt({ node, group, seed }) {
    if (seed !== undefined) return null;
    const at = node ?? this.first[group];
    return this.meets.has(at) && (node !== undefined || this._entered(group).length === 1) ? at : null;
  }

  /** The places where edges lead into a group, if they are several, and gradients oppose each other at some. */
  _cancelling({ group }) {
    const places = !this._cancelsIn.has(group) ? [] : this._entered(group).map(([node, output]) => (output ? `${node}.${output}` : `${node}`));
    return places.length > 1 ? places.filter((place) => this._cancels.has(place)) : [];
  }

  /** Whether there is something to say of what is added at any of these. */
  isMeeting(things) {
    if (!this._met.has(things)) this._met.set(things, things.some((one) => one && (this.meetingAt(one) !== null || this._cancelling(one).length > 0)));
    return this._met.get(things);
  }

  /** Whether all that these lines bring to a box is added at one place, and is several. */
  isAdded(box, bundles) {
    const [place, ...others] = bundles.map((bundle) => (bundle.place ??= this._placeOf((bundle.each?.[0] ?? bundle).edges)));
    return place && others.every((other) => other === place) && (others.length > 0 || this.isMeeting(box.each ?? [box]));
  }

  /** Where all edges lead to, as text that can be compared; "" where that are several places. */
  _placeOf([first, ...others]) {
    const { target, output } = this;
    return others.every((edge) => target[edge] === target[first] && output[edge] === output[first]) ? `${target[first]} ${output[first]}` : "";
  }

  /** Which share of what is added there came through a skip, and which cancelled, of each that a box stands for; undefined where there is nothing to say. */
  meeting({ each, ...one }) {
    if (!each) return this._meeting([one]);
    if (!this._meetings.has(each)) this._meetings.set(each, this._meeting(each));
    return this._meetings.get(each);
  }

  _meeting(things) {
    const nodes = Array.from(things, (one) => (one && this.pass && !this.isSpread ? this.meetingAt(one) : null));
    const shares = (name) => nodes.map((node) => (node === null ? undefined : this.data.nodes.shape[node].map((_, output) => this.pass[name][output ? `${node}.${output}` : node]).find((share) => share !== undefined)));
    const places = Array.from(things, (one) => (one && this.pass && !this.isSpread ? this._cancelling(one).filter((place) => place in this.pass.cancelled) : []));
    const cancelled = shares("cancelled").map((share, i) => share ?? places[i].map((place) => this.pass.cancelled[place]).reduce((a, b) => (b < a ? a : b), undefined));
    return { skip: shares("skip"), cancelled, places: places[0] };
  }

  /** The gradients of a bundle of edges, and of seeds, as one. */
  flowing(bundle) {
    const { edges, each } = bundle;
    if (!this.pass) return null;
    if (each?.length > 1) return this._amongAll(each, (one) => (one.edges.length === 1 && !one.seeds.length ? this.pass.edges[one.edges[0]] : null), () => each.map((one) => this.flowing(one)));
    if (!this._flowing.has(edges)) this._flowing.set(edges, this._read((pass) => this.flowingIn(pass, bundle)));
    return this._flowing.get(edges);
  }

  /** As one long vector; where edges are all that comes to a place, what they are added to there. */
  flowingIn(pass, { edges, seeds }) {
    const at = new Map();
    for (const edge of edges) append(at, this.target[edge] + this.output[edge] / 1e6, edge);
    const along = [...at.values()].flatMap((some) => (this._isAll(some) ? this.upstreamIn(pass, this.target[some[0]], this.output[some[0]]) : some.map((edge) => this.gradient(pass.edges[edge], pass))));
    return combine([...along, ...seeds.map((root) => this.gradient(pass.seeds[root], pass))]);
  }

  /** Whether several edges are all that comes to one place, in each of the rounds that they stand for. */
  isSum({ edges, seeds, each }) {
    const one = each?.[0] ?? { edges, seeds };
    // A line may stand for very many, and asks whenever it is drawn.
    if (!this._sums.has(one.edges)) this._sums.set(one.edges, !one.seeds.length && this._placeOf(one.edges) && this._isAll(one.edges));
    return this._sums.get(one.edges);
  }

  /** Whether these edges to one place are several, and all that come there. */
  _isAll(edges) {
    const [node, output] = [this.target[edges[0]], this.output[edges[0]]];
    return edges.length > 1 && !this.rootNodes.has(node) && this.into(node).filter((edge) => this.output[edge] === output).length === edges.length;
  }
}
