// The tree of groups as it is drawn while some repeats are drawn once.  Pure: knows nothing of what is selected or of the screen.
import { append, bucket } from "./bucket.js";
import { groupKey, nodeKey } from "./level.js";

export class Cast {
  /** @param templates of the repeats that are drawn once, those around others first */
  constructor(model, templates) {
    this.model = model;
    this.templates = templates;
    this.owner = model.owner;
    this.parent = model.parent;
    /** For repeats that are drawn once their template, and of each the round of every node, -1 outside. */
    this.at = new Map();
    this.rounds = new Map();
    if (templates.length) this._join();
  }

  _join() {
    const { model } = this;
    Object.assign(this, { owner: model.owner.slice(), parent: model.parent.slice(), node: Int32Array.from(model.owner.keys()), children: new Map(), members: new Map(), stoodGroups: new Map() });
    const outer = [];
    for (const template of this.templates) {
      const { repeat, rounds } = template;
      this.at.set(repeat, template);
      this.rounds.set(repeat, new Int32Array(model.size).fill(-1));
      for (const child of model.children[rounds[0]]) this.parent[child] = repeat;
      this.children.set(repeat, model.children[rounds[0]]);
      if (!outer.some((one) => model.before[repeat] >= model.before[one] && model.before[repeat] < model.behind[one])) outer.push(repeat);
    }
    const nodes = Int32Array.from(outer.flatMap((repeat) => model.inside(repeat))).sort();
    for (const template of this.templates) this._stand(template, nodes);
    for (const node of nodes) if (this.node[node] === node) append(this.members, this.owner[node], node);
    /** For a node all that it stands for, itself included. */
    this.stood = bucket(this.node, model.size);
    const { before, behind } = model;
    for (let g = 1; g < model.parent.length; g++) {
      if (outer.some((repeat) => before[g] > before[repeat] && before[g] < behind[repeat])) append(this.stoodGroups, this.groupOf(g), g);
    }
  }

  _stand(template, nodes) {
    const rounds = this.rounds.get(template.repeat);
    for (const node of nodes) {
      const at = this.node[node] - template.first;
      const owner = template.group.get(this.owner[node]);
      if (owner !== undefined) this.owner[node] = owner;
      if (!(template.round[at] >= 0)) continue;
      rounds[node] = template.round[at];
      this.node[node] = template.node[at];
    }
  }

  // ---------------------------------------------------------------- what is drawn where

  /** The group that stands for a group. */
  groupOf(group) {
    return this.templates.reduce((drawn, template) => template.group.get(drawn) ?? drawn, group);
  }

  /** The round of a repeat that a group is, or is in; null where it is in none. */
  roundIn(group, repeat) {
    for (const template of this.templates) {
      if (template.repeat === repeat) return template.groupRound.get(group) ?? null;
      group = template.group.get(group) ?? group;
    }
    return null;
  }

  nodeOf(node) {
    return this.node ? this.node[node] : node;
  }

  childrenOf(group) {
    return this.children?.get(group) ?? this.model.children[group];
  }

  membersOf(group) {
    return this.members?.get(group) ?? (this.at.has(group) ? [] : this.model.members[group]);
  }

  /** The groups around a node or group as drawn, innermost first. */
  around(group) {
    const found = [];
    for (let g = group; g >= 0; g = this.parent[g]) found.push(g);
    return found;
  }

  /** For every group the child of `group` that it is drawn in, -1 elsewhere. */
  childrenAround(group) {
    const found = new Int32Array(this.parent.length).fill(-1);
    // Parents come before their children.
    for (let g = 1; g < found.length; g++) found[g] = this.parent[g] === group ? g : found[this.parent[g]];
    return found;
  }

  /** A group with a single member hides nothing: the member is shown as itself. */
  lone(group) {
    while (group >= 0) {
      const [children, members] = [this.childrenOf(group), this.membersOf(group)];
      if (children.length + members.length !== 1) return { group };
      if (members.length) return { node: members[0] };
      [group] = children;
    }
    return { group };
  }

  /** The key of the box in which a node is drawn where it is not in the innermost of these nested groups. */
  keyBeside(around, node) {
    let inner = null;
    for (let g = this.owner[node]; !around.has(g); g = this.parent[g]) inner = g;
    return keyed(inner === null ? { node: this.nodeOf(node) } : this.lone(inner));
  }

  /** The key of the box in which a node or group is drawn while these groups are open. */
  keyOf(open, { node, group }) {
    const drawn = node === undefined ? { group: this.groupOf(group) } : { node: this.nodeOf(node) };
    const chain = this.around(drawn.group ?? this.owner[drawn.node]).reverse();
    for (const g of chain.slice(1)) if (!open.has(g)) return keyed(this.lone(g));
    return keyed(drawn);
  }

  // ---------------------------------------------------------------- rounds

  /** The repeats around a group, itself included, that are drawn once; the outermost first. */
  repeats(group) {
    return this.at.size ? this.around(group).filter((g) => this.at.has(g)).reverse() : [];
  }

  /** The number of a node among those for which a box in these repeats stands; null where it is outside of one. */
  ordinal(repeats, node) {
    let number = 0;
    for (const repeat of repeats) {
      const round = this.rounds.get(repeat)[node];
      if (round < 0) return null;
      number = number * this.at.get(repeat).rounds.length + round;
    }
    return number;
  }

  /** Whether an edge leads from one round of one of these repeats to another. */
  isCarried(repeats, edge) {
    const { source, target } = this.model;
    return repeats.some((repeat) => {
      const rounds = this.rounds.get(repeat);
      const [from, to] = [rounds[source[edge]], rounds[target[edge]]];
      return from !== to && from >= 0 && to >= 0;
    });
  }

  /** What a drawn node or group stands for, by the number of the round; those that lack it are left out. */
  standing(repeats, { node, group }) {
    const found = [];
    if (!repeats.length) return found;
    const note = (number, thing) => number !== null && (found[number] = thing);
    if (node !== undefined) for (const one of this.stood(node)) note(this.ordinal(repeats, one), { node: one });
    else for (const one of this.stoodGroups.get(group) ?? []) note(this._groupOrdinal(repeats, one), { group: one });
    return found;
  }

  _groupOrdinal(repeats, group) {
    let number = 0;
    for (const repeat of repeats) {
      const round = this.roundIn(group, repeat);
      if (round === null) return null;
      number = number * this.at.get(repeat).rounds.length + round;
    }
    return number;
  }
}

const keyed = ({ node, group }) => (node === undefined ? groupKey(group) : nodeKey(node));
