// What is inside one open group: its boxes, and the bundles of edges between them and across its border.
// Pure: model in, plain objects out.  Knows nothing of places on the screen.

/**
 * @typedef {{key: string, node?: number, group?: number}} Box  a node, or a group
 * @typedef {{from: string, to: string, edges: number[]}} Bundle  ends are keys of boxes, or IN or OUT
 */
export const IN = "in";
export const OUT = "out";

export const nodeKey = (node) => `n${node}`;
export const groupKey = (group) => `g${group}`;

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
  const boxes = [];
  const keyOf = new Map();
  for (const child of model.children[group]) {
    const shown = lone(model, child);
    const box = shown.node === undefined ? { key: groupKey(shown.group), group: shown.group } : { key: nodeKey(shown.node), node: shown.node };
    keyOf.set(child, box.key);
    boxes.push(box);
  }
  for (const node of model.members[group]) boxes.push({ key: nodeKey(node), node });
  const child = model.childrenAround(group);
  const boxOf = (node) => {
    const owner = model.owner[node];
    if (owner === group) return nodeKey(node);
    return child[owner] < 0 ? null : keyOf.get(child[owner]);
  };
  const bundles = new Map();
  const note = (from, to, edge) => {
    if (from === to) return;
    const key = `${from}>${to}`;
    if (!bundles.has(key)) bundles.set(key, { from, to, edges: [] });
    bundles.get(key).edges.push(edge);
  };
  for (const node of model.inside(group)) {
    const here = boxOf(node);
    for (const edge of model.outgoing(node)) note(here, boxOf(model.target[edge]) ?? OUT, edge);
    for (const edge of model.incoming(node)) if (boxOf(model.source[edge]) === null) note(IN, here, edge);
  }
  return { boxes, bundles: [...bundles.values()] };
}
