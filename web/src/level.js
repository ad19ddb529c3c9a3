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
  const { boxes, keyOf } = boxesOf(model, group);
  const child = model.childrenAround(group);
  const boxOf = (node) => {
    const owner = model.owner[node];
    if (owner === group) return nodeKey(node);
    return child[owner] < 0 ? null : keyOf.get(child[owner]);
  };
  const bundles = new Map();
  const between = (from, to) => {
    const key = `${from}>${to}`;
    if (!bundles.has(key)) bundles.set(key, { from, to, edges: [], seeds: [] });
    return bundles.get(key);
  };
  for (const node of model.inside(group)) {
    const here = boxOf(node);
    for (const edge of model.outgoing(node)) {
      const there = boxOf(model.target[edge]) ?? OUT;
      if (there !== here) between(here, there).edges.push(edge);
    }
    for (const edge of model.incoming(node)) if (boxOf(model.source[edge]) === null) between(IN, here).edges.push(edge);
  }
  model.data.roots.forEach((root, i) => {
    const here = boxOf(root.node);
    if (here === null) return;
    // What is given for a root has a place in the whole drawing, and comes in from there elsewhere.
    if (group === 0) boxes.push({ key: seedKey(i), seed: i });
    between(group === 0 ? seedKey(i) : IN, here).seeds.push(i);
  });
  return { boxes, bundles: [...bundles.values()] };
}

function boxesOf(model, group) {
  const boxes = [];
  const keyOf = new Map();
  for (const child of model.children[group]) {
    const shown = lone(model, child);
    const box = shown.node === undefined ? { key: groupKey(shown.group), group: shown.group } : { key: nodeKey(shown.node), node: shown.node };
    keyOf.set(child, box.key);
    boxes.push(box);
  }
  for (const node of model.members[group]) boxes.push({ key: nodeKey(node), node });
  return { boxes, keyOf };
}
