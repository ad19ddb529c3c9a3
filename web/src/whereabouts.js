// Where things are drawn while some groups are open, and which boxes lines connect.
import { groupKey, lone, nodeKey } from "./level.js";

/** The key of the box in which a node or group is drawn. */
export function keyOf(model, open, { node, group }) {
  const chain = model.around(node === undefined ? group : model.owner[node]).reverse();
  for (const g of chain.slice(1)) {
    if (!open.has(g)) {
      const shown = lone(model, g);
      return shown.node === undefined ? groupKey(shown.group) : nodeKey(shown.node);
    }
  }
  return node === undefined ? groupKey(group) : nodeKey(node);
}

/** The keys of the boxes that edges lead to from a box, or come from. */
export function linked(model, open, box, forward) {
  if (box.seed !== undefined) return new Set([keyOf(model, open, { node: model.data.roots[box.seed].node })]);
  const nodes = box.node === undefined ? model.inside(box.group) : [box.node];
  const found = new Set();
  for (const node of nodes) {
    for (const edge of forward ? model.outgoing(node) : model.incoming(node)) {
      found.add(keyOf(model, open, { node: forward ? model.target[edge] : model.source[edge] }));
    }
  }
  found.delete(box.key);
  return found;
}
