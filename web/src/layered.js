// Ranks, order and places of one level: of dagre's steps those that a graph without cycles and without groups in groups needs.
import { Graph } from "dagre/lib/graph-lib";
import { run as cutLong, undo as joinLong } from "dagre/lib/normalize";
import { position } from "dagre/lib/position";
import rank from "dagre/lib/rank/network-simplex";
import { normalizeRanks } from "dagre/lib/util";
import { orderAll } from "./order.js";

/** Every other rank is for what stands beside the lines. */
const APART = 2;

const ROOT = "root";

/**
 * Give each node x and y, its middle, and each edge its points from middle to middle, and y where something stands beside it.
 * @param nodes {key, width, height}, and isFirst or isLast of what is above or below all others
 * @param edges {from, to, weight}, and {width, height} of what stands beside it
 * @returns what tells the node of a key, and the edge of a number
 */
export function layered(nodes, edges, { nodesep, ranksep }) {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ nodesep, edgesep: 20, ranksep: ranksep / APART });
  for (const { key, ...label } of nodes) graph.setNode(key, label);
  edges.forEach(({ from, to, ...label }, i) => graph.setEdge(from, to, { ...label, minlen: APART, labelpos: "r" }, String(i)));
  rankAll(graph);
  cutLong(graph);
  orderAll(graph);
  position(graph);
  joinLong(graph);
  for (const end of graph.edges()) {
    const { points } = graph.edge(end);
    points.unshift(graph.node(end.v));
    points.push(graph.node(end.w));
  }
  return { node: (key) => graph.node(key), edge: (i) => graph.edge(edges[i].from, edges[i].to, String(i)) };
}

/** The ranker wants one connected graph, so all hangs on one more node meanwhile. */
function rankAll(graph) {
  const nodes = graph.nodes();
  graph.setNode(ROOT, {});
  for (const node of nodes) graph.setEdge(ROOT, node, { weight: 0, minlen: 1 });
  rank(graph);
  graph.removeNode(ROOT);
  normalizeRanks(graph);
  const all = nodes.map((key) => graph.node(key));
  const last = Math.max(...all.map((node) => node.rank));
  for (const node of all) {
    if (node.isFirst) node.rank = 0;
    if (node.isLast) node.rank = last;
  }
  // Parts that come together far below begin beside each other: what has one line from above is as high as it can be, and so is
  // what makes no lines longer by that than others shorter.
  const weight = (ends) => ends.reduce((sum, end) => sum + graph.edge(end).weight, 0);
  for (const key of nodes.sort((a, b) => graph.node(a).rank - graph.node(b).rank)) {
    const [node, coming] = [graph.node(key), graph.inEdges(key)];
    if (coming.length && !node.isLast && (coming.length === 1 || weight(coming) >= weight(graph.outEdges(key)))) node.rank = Math.max(...coming.map(({ v }) => graph.node(v).rank + APART));
  }
  for (const end of graph.edges()) {
    const edge = graph.edge(end);
    if (edge.width) edge.labelRank = (graph.node(end.v).rank + graph.node(end.w).rank) / 2;
  }
}
