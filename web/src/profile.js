// The gradients of the whole graph along the order of backward, in as many rows as there are pixels.  Pure: numbers in, numbers out.
import { append } from "./bucket.js";
import { STATES } from "./model.js";

/** Shares of the norms of a row between which its stream flows. */
const [LOW, HIGH] = [0.05, 0.95];
const [ZERO, FINITE, BAD] = ["zero", "finite", "non-finite"].map((name) => STATES.indexOf(name));

/**
 * Rows from the loss down.  Norms as log10, NaN where a row has none.
 * @typedef {{rows: number, low: Float64Array, mid: Float64Array, high: Float64Array, leaf: Float64Array,
 *   bad: Uint32Array, zero: Uint32Array, finite: Uint32Array}} Profile
 * @returns {Profile} low, mid and high of what enters operations; the median of the leaves; how many nodes are in which state
 */
export function profileOf(model, most) {
  const rows = Math.max(Math.min(most, model.size), 1);
  const columns = ["low", "mid", "high", "leaf"].map((name) => [name, new Float64Array(rows).fill(NaN)]);
  const counts = ["bad", "zero", "finite"].map((name) => [name, new Uint32Array(rows)]);
  const found = { rows, ...Object.fromEntries([...columns, ...counts]) };
  if (!model.pass) return found;
  const read = reader(model);
  for (let row = 0; row < rows; row++) fill(found, row, firstOf(row, rows, model.size), firstOf(row + 1, rows, model.size), model, read);
  return found;
}

/** The row of a node, and the first node of a row. */
export const rowOf = (node, rows, size) => Math.min(Math.floor(((node + 0.5) * rows) / size), rows - 1);
export const firstOf = (row, rows, size) => Math.max(Math.ceil((row * size) / rows - 0.5), 0);

/** State and norm of what enters a node.  Straight from the columns: an object for each of 100,000 nodes would be felt. */
function reader(model) {
  if (model.isSpread) {
    return (node) => {
      const info = model.upstream(node);
      return [STATES.indexOf(info.state), info.norm];
    };
  }
  const { upstream, state, norm } = model.pass;
  return (node) => {
    const [entry] = upstream[node];
    return upstream[node].length > 1 ? loudest(upstream[node], state, norm) : [state[entry], norm[entry]];
  };
}

/** Of an operation with several outputs the one that says most. */
function loudest(entries, state, norm) {
  const best = entries.reduce((a, b) => (state[b] > state[a] || (state[b] === state[a] && Number(norm[b]) > Number(norm[a])) ? b : a));
  return [state[best], norm[best]];
}

function fill(found, row, from, to, model, read) {
  const [ops, leaves] = [[], []];
  let hasOps = false;
  for (let node = from; node < to; node++) {
    const [state, norm] = read(node);
    hasOps ||= !model.isLeaf(node);
    if (state === BAD) found.bad[row] += 1;
    else if (state === ZERO) found.zero[row] += 1;
    else if (state === FINITE && norm !== null) {
      found.finite[row] += 1;
      // A ratio of ranks may be infinite: it stands at the end of every scale.
      (model.isLeaf(node) ? leaves : ops).push(Math.min(Math.log10(Number(norm)), 400));
    }
  }
  const streams = [found.low, found.mid, found.high];
  if (!hasOps && row) return flowOn(streams, row, found.leaf, leaves);
  ops.sort((a, b) => a - b);
  [LOW, 0.5, HIGH].forEach((share, i) => (streams[i][row] = at(ops, share)));
  found.leaf[row] = middle(leaves);
}

const at = (sorted, share) => (sorted.length ? sorted[Math.round(share * (sorted.length - 1))] : NaN);
const middle = (list) => at(list.sort((a, b) => a - b), 0.5);

/** Past leaves the stream flows on as it was: a gap would say that nothing came. */
function flowOn(streams, row, leaf, leaves) {
  for (const stream of streams) stream[row] = stream[row - 1];
  leaf[row] = middle(leaves);
}

/**
 * Groups that divide the graph, in backward order: always the largest is divided further, but no module beside which are others with the same
 * name but for a number, for what is in those has the same names.
 * @param least nodes that a part must have on average, so that it can be named
 * @returns {{group: number, from: number, to: number}[]} with the first node and the one behind the last
 */
export function brackets(model, least) {
  const behind = lastOf(model);
  const span = (g) => behind[g] - model.first[g];
  const inside = insides(model);
  let cut = inside[0];
  for (;;) {
    const kinds = new Map();
    for (const g of cut) append(kinds, model.group(g).kind === "module" ? model.group(g).title.replace(/\d+/g, "*") : g, g);
    const alone = [...kinds.values()].filter(([g, other]) => other === undefined && inside[g].length).flat();
    const first = alone.reduce((best, g) => (model.ops[g] > model.ops[best] ? g : best), alone[0]);
    if (first === undefined || span(first) < least * inside[first].length) break;
    cut = [...cut.filter((g) => g !== first), ...inside[first]];
  }
  return cut.map((group) => ({ group, from: model.first[group], to: behind[group] })).filter(({ group }) => model.ops[group]).sort((a, b) => a.from - b.from);
}

/** For every group what it holds.  Parts are ours: what the program calls things is around and inside them. */
function insides(model) {
  const found = model.children.map(() => []);
  // Those inside come later than those around them, so a part is complete before what it is in.
  for (let g = found.length - 1; g > 0; g--) {
    const here = found[model.parent[g]];
    if (model.group(g).kind === "part") for (const inner of found[g]) here.push(inner);
    else here.push(g);
  }
  return found;
}

/** At most so many rows; of them equal blocks that are most of the graph get as many each, or where rows begin would show as a pattern. */
export function evenRows({ ops, data }, most) {
  for (const [group, rounds] of data.groups.count.entries()) {
    const share = ops[group] / ops[0];
    const each = Math.floor((most * share) / rounds);
    if (each && rounds > 1 && share >= 0.5) return Math.round((each * rounds) / share);
  }
  return most;
}

/** For every group the number behind its highest node. */
export function lastOf(model) {
  const behind = new Int32Array(model.parent.length);
  for (let node = 0; node < model.size; node++) behind[model.owner[node]] = node + 1;
  for (let g = behind.length - 1; g > 0; g--) behind[model.parent[g]] = Math.max(behind[model.parent[g]], behind[g]);
  return behind;
}
