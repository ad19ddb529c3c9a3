// The order of the boxes of each rank: operands from left to right as in the expression, as far as that makes no more lines cross.

/** Sweeps in a row that find nothing better, after which the best is taken. */
const ENOUGH = 5;

/** Give each node its place in its rank.  Lines are only from one rank to the next, and those of a node in the order of its operands. */
export function orderAll(graph) {
  // By numbers, for each sweep asks all lines again.
  const names = graph.nodes();
  const at = new Map(names.map((v, i) => [v, i]));
  const lines = (edges, end) => edges.map((edge) => [at.get(edge[end]), graph.edge(edge).weight]);
  const below = names.map((v) => lines(graph.outEdges(v), "w"));
  const above = names.map((v) => lines(graph.inEdges(v), "v"));
  const ends = names.map((v) => graph.successors(v).map((w) => at.get(w)));
  const layers = searched(names.map((v) => graph.node(v).rank), ends);
  const order = new Int32Array(names.length);
  const put = (layer) => layer.forEach((v, i) => (order[v] = i));
  layers.forEach(put);
  let best = null;
  for (let sweep = 0, since = 0; since < ENOUGH; sweep++, since++) {
    const found = { layers: layers.slice(), crossings: crossings(layers, below, order), turned: turned(ends, order) };
    if (!best || found.crossings < best.crossings || (found.crossings === best.crossings && found.turned < best.turned)) [best, since] = [found, 0];
    // Down and up by turns; what hangs on the same stays as it is at first, and is turned round then.
    const isDown = sweep % 2 === 0;
    for (const rank of isDown ? layers.keys() : [...layers.keys()].reverse()) put((layers[rank] = swept(layers[rank], isDown ? above : below, order, sweep % 4 >= 2)));
  }
  best.layers.forEach(put);
  names.forEach((v, i) => (graph.node(v).order = order[i]));
}

/** The nodes of each rank as a search from the top meets them, operands in their order. */
function searched(ranks, ends) {
  const [layers, met] = [[], new Set()];
  const waiting = [...ranks.keys()].sort((a, b) => ranks[b] - ranks[a] || b - a);
  while (waiting.length) {
    const v = waiting.pop();
    if (met.has(v)) continue;
    met.add(v);
    (layers[ranks[v]] ??= []).push(v);
    waiting.push(...[...ends[v]].reverse());
  }
  return layers;
}

/** The weights of lines that cross. */
function crossings(layers, below, order) {
  let sum = 0;
  for (const layer of layers) {
    const lines = layer.flatMap((v) => below[v].map(([end, weight]) => [order[v], order[end], weight]));
    lines.forEach(([from, to, weight], i) => {
      for (const other of lines.slice(i + 1)) if ((from - other[0]) * (to - other[1]) < 0) sum += weight * other[2];
    });
  }
  return sum;
}

/** How many pairs of operands are the wrong way round. */
function turned(ends, order) {
  let count = 0;
  for (const some of ends) some.forEach((a, i) => some.slice(i + 1).forEach((b) => (count += order[b] < order[a])));
  return count;
}

/** A rank by the places of what its nodes hang on; what hangs on nothing keeps its place. */
function swept(layer, lines, order, isTurned) {
  const all = layer.map((v, i) => ({ v, i, middle: middle(lines[v], order) }));
  const found = all.filter(({ middle }) => middle !== null).sort((a, b) => a.middle - b.middle || (isTurned ? b.i - a.i : a.i - b.i));
  for (const one of all.filter(({ middle }) => middle === null)) found.splice(one.i, 0, one);
  return found.map(({ v }) => v);
}

function middle(lines, order) {
  let [sum, all] = [0, 0];
  for (const [end, weight] of lines) {
    sum += weight * order[end];
    all += weight;
  }
  return all ? sum / all : null;
}
