// The order of the boxes of each rank: operands from left to right as in the expression, as far as that makes no more lines cross.

/** Sweeps in a row that find nothing better, after which the best is taken. */
const ENOUGH = 5;

/** Give each node its place in its rank.  Lines are only from one rank to the next, and those of a node in the order of its operands. */
export function orderAll(graph) {
  const ends = new Map(graph.nodes().map((v) => [v, graph.successors(v)]));
  const layers = searched(graph, ends);
  layers.forEach((layer) => put(graph, layer));
  let best = null;
  for (let sweep = 0, since = 0; since < ENOUGH; sweep++, since++) {
    const found = { layers: layers.slice(), crossings: crossings(graph, layers), turned: turned(graph, [...ends.values()]) };
    if (!best || found.crossings < best.crossings || (found.crossings === best.crossings && found.turned < best.turned)) [best, since] = [found, 0];
    // Down and up by turns; what hangs on the same stays as it is at first, and is turned round then.
    const isDown = sweep % 2 === 0;
    for (const rank of isDown ? layers.keys() : [...layers.keys()].reverse()) put(graph, (layers[rank] = swept(graph, layers[rank], isDown, sweep % 4 >= 2)));
  }
  best.layers.forEach((layer) => put(graph, layer));
}

/** The nodes of each rank as a search from the top meets them, operands in their order. */
function searched(graph, ends) {
  const [layers, met] = [[], new Set()];
  const visit = (v) => {
    if (met.has(v)) return;
    met.add(v);
    (layers[graph.node(v).rank] ??= []).push(v);
    ends.get(v).forEach(visit);
  };
  [...ends.keys()].sort((a, b) => graph.node(a).rank - graph.node(b).rank).forEach(visit);
  return layers;
}

const put = (graph, layer) => layer.forEach((v, i) => (graph.node(v).order = i));

const pairs = (all) => all.flatMap((one, i) => all.slice(i + 1).map((other) => [one, other]));

/** The weights of lines that cross. */
function crossings(graph, layers) {
  const lines = (layer) => layer.flatMap((v) => graph.outEdges(v).map((edge) => [graph.node(v).order, graph.node(edge.w).order, graph.edge(edge).weight]));
  return layers.flatMap((layer) => pairs(lines(layer))).reduce((sum, [a, b]) => sum + ((a[0] - b[0]) * (a[1] - b[1]) < 0 ? a[2] * b[2] : 0), 0);
}

/** How many pairs of operands are the wrong way round. */
const turned = (graph, ends) => ends.flatMap(pairs).filter(([a, b]) => graph.node(b).order < graph.node(a).order).length;

/** A rank by the places of what its nodes hang on; what hangs on nothing keeps its place. */
function swept(graph, layer, isDown, isTurned) {
  const all = layer.map((v, i) => ({ v, i, middle: middle(graph, v, isDown) }));
  const found = all.filter(({ middle }) => middle !== null).sort((a, b) => a.middle - b.middle || (isTurned ? b.i - a.i : a.i - b.i));
  for (const one of all.filter(({ middle }) => middle === null)) found.splice(one.i, 0, one);
  return found.map(({ v }) => v);
}

function middle(graph, v, isDown) {
  const edges = isDown ? graph.inEdges(v) : graph.outEdges(v);
  const [sum, all] = edges.reduce(([sum, all], edge) => [sum + graph.edge(edge).weight * graph.node(isDown ? edge.v : edge.w).order, all + graph.edge(edge).weight], [0, 0]);
  return all ? sum / all : null;
}
