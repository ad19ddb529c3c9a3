// What is inside one open group: its boxes, and the bundles of edges between them and across its border.
// Pure: model in, plain objects out.  Knows nothing of places on the screen.

/**
 * @typedef {{key: string, node?: number, group?: number, seed?: number}} Box  a node, a group, or what is given for a root
 * @typedef {{from: string, to: string, edges: number[], seeds: number[]}} Bundle  ends are keys of boxes, or IN or OUT
 */
export const IN = "in";
export const OUT = "out";

export const nodeKey = (node) => `n${node}`;
export const groupKey = (group) => `g${group}`;
const seedKey = (root) => `s${root}`;

/** A group with a single member hides nothing: the member is shown as itself. */
export function lone(model, group) {
  while (group >= 0) {
    if (model.children[group].length + model.members[group].length !== 1) return { group };
    if (model.members[group].length) return { node: model.members[group][0] };
    group = model.children[group][0];
  }
  return { group };
}

/** @returns {{boxes: Box[], bundles: Bundle[]}} */
export function level(model, group) {
  const { boxes, boxOf } = boxesOf(model, group);
  const bundles = new Map();
  const between = (from, to) => {
    const pair = from * (boxes.length + 2) + to + boxes.length + 3;
    if (!bundles.has(pair)) bundles.set(pair, { from: boxes[from]?.key ?? IN, to: boxes[to]?.key ?? OUT, edges: [], seeds: [] });
    return bundles.get(pair);
  };
  // All edges are gone through, also those elsewhere: numbers side by side are faster than a list of each node's.
  for (let edge = 0; edge < model.source.length; edge++) {
    const from = boxOf[model.source[edge]];
    const to = boxOf[model.target[edge]];
    if (from !== to) between(from, to).edges.push(edge);
  }
  const seeds = [];
  model.data.roots.forEach((root, i) => {
    const here = boxOf[root.node];
    if (here < 0) return;
    // What is given for a root has a place in the whole drawing, and comes in from there elsewhere.
    if (group !== 0) return between(-1, here).seeds.push(i);
    seeds.push({ key: seedKey(i), seed: i });
    bundles.set(seedKey(i), { from: seedKey(i), to: boxes[here].key, edges: [], seeds: [i] });
  });
  return { boxes: [...seeds, ...boxes], bundles: [...bundles.values()] };
}

/** The boxes, and for every node of the graph the position of the box that it is in, or -1. */
function boxesOf(model, group) {
  const boxes = [];
  const ofChild = new Int32Array(model.parent.length).fill(-1);
  for (const child of model.children[group]) {
    const shown = lone(model, child);
    ofChild[child] = boxes.length;
    boxes.push(shown.node === undefined ? { key: groupKey(shown.group), group: shown.group } : { key: nodeKey(shown.node), node: shown.node });
  }
  const child = model.childrenAround(group);
  const boxOf = model.owner.map((owner) => (child[owner] < 0 ? -1 : ofChild[child[owner]]));
  for (const node of model.members[group]) {
    boxOf[node] = boxes.length;
    boxes.push({ key: nodeKey(node), node });
  }
  return { boxes, boxOf };
}
