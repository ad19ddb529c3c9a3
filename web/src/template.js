// Repeats that are drawn once for all their rounds: what stands for what.  Pure: knows nothing of places on the screen.
import { Cast } from "./cast.js";

/** A repeat with equal rounds (hierarchy.py compares them): its first round stands for all.  `Template` there does the same. */
class Template {
  constructor(model, repeat) {
    this.repeat = repeat;
    this.rounds = flat(model, repeat);
  }

  /** Which takes long where there are many rounds. */
  pair(model) {
    const { repeat, rounds } = this;
    if (this.group) return this;
    /** For groups and nodes of all rounds what stands for them, and the number of their round; nodes from `first` on. */
    this.group = new Map(partsAround(model, rounds[0], repeat).map((part) => [part, repeat]));
    this.groupRound = new Map();
    this.first = model.first[repeat];
    const nodes = model.inside(repeat);
    const size = nodes.reduce((most, node) => Math.max(most, node), 0) + 1 - this.first;
    this.node = new Int32Array(size).fill(-1);
    this.round = new Int32Array(size).fill(-1);
    rounds.forEach((round, number) => this._pair(model, round, number));
    this._addLeaves(model, nodes);
    return this;
  }

  _pair(model, round, number) {
    const ops = (g) => model.members[g].filter((node) => !model.isLeaf(node));
    const waiting = [[this.rounds[0], round]];
    for (const [drawn, group] of waiting) {
      this.group.set(group, group === round ? this.repeat : drawn);
      this.groupRound.set(group, number);
      const stand = ops(drawn);
      ops(group).forEach((node, i) => (this.node[node - this.first] = stand[i]));
      for (const node of model.members[group]) this.round[node - this.first] = number;
      model.children[drawn].forEach((child, i) => waiting.push([child, model.children[group][i]]));
    }
  }

  /** Leaves stand for each other where the same operation of their rounds uses them first. */
  _addLeaves(model, nodes) {
    const leaves = nodes.filter((node) => model.isLeaf(node) && this.round[node - this.first] >= 0).map((leaf) => [model.into(leaf)[0], leaf]);
    const drawn = new Map();
    for (const [edge, leaf] of leaves.sort(([a], [b]) => a - b)) {
      const place = `${this.node[model.source[edge] - this.first]} ${model.slot[edge]}`;
      if (!drawn.has(place)) drawn.set(place, leaf);
      this.node[leaf - this.first] = drawn.get(place);
    }
  }
}

/** The groups in a repeat in the order of backward, as if it were not divided into parts. */
function flat(model, repeat) {
  const found = [];
  const waiting = [repeat];
  while (waiting.length) {
    const g = waiting.pop();
    if (g === repeat || model.group(g).kind === "part") waiting.push(...[...model.children[g]].reverse());
    else found.push(g);
  }
  return found;
}

const partsAround = (model, round, repeat) => {
  const chain = model.around(model.parent[round]);
  return chain.slice(0, chain.indexOf(repeat));
};

export class Templates {
  constructor(model) {
    this.model = model;
    this.known = new Map();
    this.casts = new Map();
  }

  /** What a repeat is drawn as; null where its rounds differ. */
  of(repeat) {
    const { model, known } = this;
    if (!model.once.has(repeat)) return null;
    if (!known.has(repeat)) known.set(repeat, new Template(model, repeat));
    return known.get(repeat);
  }

  /** Whether an open repeat is drawn once: until more than one of its rounds are opened. */
  isOnce(repeat, open) {
    return this.model.once.has(repeat) && open.has(repeat) && this._opened(repeat, open).length < 2;
  }

  /** The number of the one round that a repeat shows; null where it shows all. */
  layer(repeat, open) {
    const [only] = this._opened(repeat, open);
    return only ?? null;
  }

  _opened(repeat, open) {
    const found = [];
    const { rounds } = this.of(repeat);
    for (let number = 0; number < rounds.length && found.length < 2; number++) if (open.has(rounds[number])) found.push(number);
    return found;
  }

  /** What is drawn in a repeat or other group that is opened. */
  contents(group) {
    const round = this.of(group)?.rounds[0] ?? group;
    return { children: this.model.children[round], members: this.model.members[round] };
  }

  /** How the graph is drawn with these groups open. */
  cast(open) {
    const active = [];
    const waiting = [0];
    for (const g of waiting) {
      const once = this.isOnce(g, open);
      if (once) active.push(g);
      for (const child of once ? this.contents(g).children : this.model.children[g]) if (open.has(child)) waiting.push(child);
    }
    const name = active.join();
    if (!this.casts.has(name)) this.casts.set(name, new Cast(this.model, active.map((g) => this.of(g).pair(this.model))));
    return this.casts.get(name);
  }

  /**
   * Open what is around a node or group: of a repeat that is drawn once the round that has it, and only this.
   * @returns what is open then
   */
  opened(open, inner) {
    const found = new Set(open);
    // From the outside in: which group is meant hangs on what is around it.
    for (const g of this.model.around(inner).reverse()) {
      const cast = this.cast(found);
      const drawn = cast.groupOf(g);
      const number = cast.roundIn(g, drawn);
      if (number === null) found.add(drawn);
      else this.single(found, drawn, number);
    }
    return found;
  }

  /** Show one round of a repeat, or all of them. */
  single(open, repeat, number) {
    const { rounds } = this.of(repeat);
    for (const round of rounds) open.delete(round);
    if (number !== null) open.add(rounds[number]);
  }
}
