// Places for the closed boxes of one level: with few crossings where that can be had at once, else in plain rows.
import { append } from "./bucket.js";
import { folded, inColumns } from "./lanes.js";
import { layered } from "./layered.js";
import { isIn, isOut, isPort } from "./level.js";
import { portsOf } from "./stretch.js";

const GAP = { nodesep: 22, ranksep: 20 };
const [LABEL_GAP, LABEL_HEIGHT] = [9, 12];
/** Pixels from the middle of one line to that of the next where they come to one box. */
const SIDE_BY_SIDE = 14;
/** Pixels above a box in which lines come together: more for each past three that one box sends to such places. */
const JOINING = { least: 14, each: 6, most: 48 };

/** dagre takes time by the boxes and by the ranks that lines pass; above this sum it takes too long. */
const MANY = 420;

/** Boxes with x, y (their top left corner), bundles with points and the height at which there is room beside them, and x of every port; those above in an order where that costs nothing. Flat: in lanes nowhere. */
export function arrange(boxes, bundles, order, isFlat) {
  const rank = ranks(boxes, bundles);
  const passed = bundles.reduce((sum, { from, to }) => sum + Math.abs((rank.get(to) ?? 0) - (rank.get(from) ?? 0)), boxes.length);
  // Not a number where lines go round.
  if (!(passed <= MANY)) return inRows(boxes, bundles, rank);
  const layers = (boxes, bundles) => inLayers(boxes, bundles, order);
  const u = isFlat ? null : folded(boxes, bundles, rank, layers);
  if (u) return u;
  const whole = layers(boxes, bundles);
  return inColumns(boxes, bundles, rank, layers, whole) ?? whole;
}

function inLayers(boxes, bundles, order) {
  const ends = [...new Set(bundles.flatMap(({ from, to }) => [from, to]).filter(isPort))].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const joins = ({ key }) => bundles.filter(({ to }) => to === key).length > 1;
  const joining = new Set(boxes.filter(joins).map(({ key }) => key));
  const crowd = Math.max(...boxes.map(({ key }) => bundles.filter(({ from, to }) => from === key && joining.has(to)).length));
  const above = ({ key }) => (joining.has(key) ? Math.min(JOINING.least + JOINING.each * Math.max(crowd - 3, 0), JOINING.most) : 0);
  const nodes = [...boxes.map((box) => ({ ...box, height: box.height + above(box) })), ...ends.map((key) => ({ key, width: 2, height: 2, isFirst: isIn(key), isLast: isOut(key) }))];
  const edges = bundles.map(({ from, to, room }) => ({
    from,
    to,
    weight: isPort(from) || isPort(to) ? 1 : 2,
    ...(room ? { width: room + LABEL_GAP, height: LABEL_HEIGHT } : {}),
  }));
  const { node, edge } = layered(nodes, edges, GAP);
  const lines = bundles.map((bundle, i) => ({ ...bundle, ...edge(i) }));
  const placed = boxes.map((box) => {
    const { x, y } = node(box.key);
    return { ...box, x: x - box.width / 2, y: y + (above(box) - box.height) / 2 };
  });
  for (const box of placed) attach(box, lines.filter(({ from }) => from === box.key), lines.filter(({ to }) => to === box.key));
  return {
    boxes: placed,
    ports: portsOf(lines),
    bundles: bundles.map((bundle, i) => ({ ...bundle, labelY: lines[i].y, points: lines[i].points })),
  };
}

/** Lines leave a box below, and come to it above; several side by side, where they may become one. */
function attach({ x, y, width, height }, leaving, coming) {
  const [middle, reach] = [x + width / 2, Math.max(width / 2 - 12, 0)];
  const near = (at) => Math.min(Math.max(at, middle - reach), middle + reach);
  for (const { points } of leaving) points[0] = { x: near(points[1].x), y: y + height };
  const step = Math.min(SIDE_BY_SIDE, (2 * reach) / Math.max(coming.length - 1, 1));
  coming.sort((a, b) => a.points.at(-2).x - b.points.at(-2).x);
  coming.forEach(({ points }, i) => {
    const at = coming.length > 1 ? middle + (i - (coming.length - 1) / 2) * step : near(points.at(-2).x);
    points[points.length - 1] = { x: at, y };
  });
}

/** For every box how many lines lead to it from the top at most; infinitely many where they go round. */
function ranks(boxes, bundles) {
  const rank = new Map(boxes.map((box) => [box.key, 0]));
  const waiting = new Map(boxes.map((box) => [box.key, 0]));
  const after = new Map();
  for (const { from, to } of bundles) {
    if (!rank.has(from) || !rank.has(to)) continue;
    append(after, from, to);
    waiting.set(to, waiting.get(to) + 1);
  }
  const ready = [...rank.keys()].filter((key) => !waiting.get(key));
  for (const key of ready) {
    for (const next of after.get(key) ?? []) {
      rank.set(next, Math.max(rank.get(next), rank.get(key) + 1));
      waiting.set(next, waiting.get(next) - 1);
      if (!waiting.get(next)) ready.push(next);
    }
  }
  for (const [key, left] of waiting) if (left) rank.set(key, Infinity);
  return rank;
}

/** Rows by rank, of bounded width, each in the order of the nodes. */
function inRows(boxes, bundles, rank) {
  const rows = new Map();
  for (const box of boxes) append(rows, rank.get(box.key), box);
  const placed = [];
  let y = 0;
  for (const number of [...rows.keys()].sort((a, b) => a - b)) {
    const row = rows.get(number);
    const wide = Math.max(12, Math.ceil(Math.sqrt(row.length)));
    for (let start = 0; start < row.length; start += wide) y = putRow(row.slice(start, start + wide), y, placed);
  }
  const at = new Map(placed.map((box) => [box.key, box]));
  const middle = (box, y) => ({ x: box.x + box.width / 2, y });
  const middles = bundles.map(({ from, to }) => ({ from, to, points: [from, to].map((key) => middle(at.get(isPort(key) ? (key === from ? to : from) : key))) }));
  return {
    boxes: placed,
    ports: portsOf(middles),
    bundles: bundles.map((bundle) => {
      const [from, to] = [at.get(bundle.from) ?? at.get(bundle.to), at.get(bundle.to) ?? at.get(bundle.from)];
      const start = middle(from, isIn(bundle.from) ? from.y : from.y + from.height);
      const end = middle(to, isOut(bundle.to) ? to.y + to.height : to.y);
      const span = Math.abs(rank.get(to.key) - rank.get(from.key));
      return { ...bundle, room: 0, points: span > 1 ? [start, bow(start, end, span), end] : [start, end] };
    }),
  };
}

/** A line past several rows goes around them, the further the more there are. */
const bow = (start, end, span) => ({ x: Math.max(start.x, end.x) + Math.min(90 + 15 * span, 300), y: (start.y + end.y) / 2 });

/** Put boxes beside each other around x = 0; returns where the next row begins. */
function putRow(row, y, placed) {
  let x = -row.reduce((sum, { width }) => sum + width + GAP.nodesep, -GAP.nodesep) / 2;
  let tallest = 0;
  for (const box of row) {
    placed.push({ ...box, x, y });
    x += box.width + GAP.nodesep;
    tallest = Math.max(tallest, box.height);
  }
  return y + tallest + GAP.ranksep;
}
