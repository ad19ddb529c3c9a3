// Which boxes lines connect.

/** The keys of the boxes that edges lead to from a box, or come from; `keyOf` gives that of a node. */
export function linked(model, keyOf, box, forward) {
  if (box.seed !== undefined) return new Set([keyOf(model.data.roots[box.seed].node)]);
  if (box.wall !== undefined) return new Set(model.walls[box.wall].nodes.map((node) => keyOf(node)));
  const nodes = box.node === undefined ? model.inside(box.group) : [box.node];
  const found = new Set();
  for (const node of nodes) {
    for (const edge of forward ? model.from(node) : model.into(node)) {
      found.add(keyOf(forward ? model.target[edge] : model.source[edge]));
    }
  }
  found.delete(box.key);
  return found;
}
