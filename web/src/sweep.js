// The order of one rank's boxes by the places of those they hang on: dagre's step without groups in groups, which ours never are.
import barycenter from "dagre/lib/order/barycenter";

export default function sortSubgraph(graph, root, constraints, old, isRight) {
  const all = barycenter(graph, graph.children(root)).map((entry, i) => ({ ...entry, i }));
  const drawn = all.filter((one) => one.barycenter !== undefined);
  drawn.sort((a, b) => a.barycenter - b.barycenter || (isRight ? b.i - a.i : a.i - b.i));
  // What hangs on nothing keeps its place.
  const free = all.filter((one) => one.barycenter === undefined);
  const vs = [];
  const fill = () => {
    while (free.length && free[0].i <= vs.length) vs.push(free.shift().v);
  };
  fill();
  for (const { v } of drawn) {
    vs.push(v);
    fill();
  }
  const places = drawn.map((one) => one.barycenter).filter(Boolean);
  return { result: { vs }, usedBias: new Set(places).size < places.length };
}
