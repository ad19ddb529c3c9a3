// Room for boxes that were opened in a finished arrangement: everything else keeps its place beside them.
// So opening costs little however many lines there are, and the reader finds again what was there.
import { append } from "./bucket.js";
import { isPort, portFrom, portTo } from "./level.js";

/** Points of a line from one rank to the next: nothing stands between them, so it keeps its shape. */
const SHORT = 3;

/**
 * @param base boxes and bundles as they stand while all boxes are closed
 * @param {Map<string, {width: number, height: number, ports: Map}>} inner the sizes of open boxes, and where lines cross their borders
 */
export function stretched(base, inner) {
  const grown = base.boxes.filter((box) => inner.has(box.key));
  const across = axis(grown.map((box) => ({ from: box.x, to: box.x + box.width, size: inner.get(box.key).width })));
  const down = axis(grown.map((box) => ({ from: box.y, to: box.y + box.height, size: inner.get(box.key).height })));
  const moved = new Map(base.boxes.map((box) => [box.key, movedBox(box, inner.get(box.key), across, down)]));
  const was = new Map(base.boxes.map((box) => [box.key, box]));
  const bundles = base.bundles.map((bundle) => {
    const points = bundle.points.map(({ x, y }) => ({ x: across(x), y: down(y) }));
    const [first, last] = [0, points.length - 1];
    if (moved.has(bundle.from)) points[first] = attached(bundle.points[first], was.get(bundle.from), moved.get(bundle.from), inner.get(bundle.from)?.ports.get(portTo(bundle.to)));
    if (moved.has(bundle.to)) points[last] = attached(bundle.points[last], was.get(bundle.to), moved.get(bundle.to), inner.get(bundle.to)?.ports.get(portFrom(bundle.from)));
    if (points.length === SHORT) {
      const [a, b] = [first, last].map((end) => points[end].x - bundle.points[end].x);
      points[1].x = bundle.points[1].x + (isPort(bundle.from) ? b : isPort(bundle.to) ? a : (a + b) / 2);
    }
    return { ...bundle, points, labelY: down(bundle.labelY) };
  });
  return { boxes: base.boxes.map((box) => moved.get(box.key)), bundles, ports: portsOf(bundles) };
}

/** Where lines cross the border: straight above or below the places to which they lead first. */
export function portsOf(lines) {
  const xs = new Map();
  const note = (port, { x }) => isPort(port) && append(xs, port, x);
  for (const { from, to, points } of lines) {
    note(from, points[1]);
    note(to, points.at(-2));
  }
  return new Map([...xs].map(([port, all]) => [port, all.reduce((sum, x) => sum + x, 0) / all.length]));
}

function movedBox(box, size, across, down) {
  const { width, height } = size ?? box;
  const x = (across(box.x) + across(box.x + box.width) - width) / 2;
  const y = (down(box.y) + down(box.y + box.height) - height) / 2;
  return { ...box, x, y, width, height, open: size !== undefined };
}

/** Lines to and from open groups go on inside them, from a port. */
function attached(point, was, box, port) {
  if (box.open) return { x: box.x + port, y: point.y > was.y ? box.y + box.height : box.y };
  return { x: point.x + box.x - was.x, y: point.y + box.y - was.y };
}

/** A map of one coordinate that keeps order, and makes each interval at least as long as its size. */
function axis(intervals) {
  const ends = [...new Set(intervals.flatMap(({ from, to }) => [from, to]))].sort((a, b) => a - b);
  const places = ends.slice(0, 1);
  const factors = [];
  for (let i = 1; i < ends.length; i++) {
    const covering = intervals.filter(({ from, to }) => from <= ends[i - 1] && to >= ends[i]);
    factors.push(Math.max(1, ...covering.map(({ from, to, size }) => size / (to - from))));
    places.push(places[i - 1] + (ends[i] - ends[i - 1]) * factors[i - 1]);
  }
  return (value) => {
    if (!ends.length || value <= ends[0]) return value;
    const next = ends.findIndex((end) => end >= value);
    if (next < 0) return places.at(-1) + value - ends.at(-1);
    return places[next - 1] + (value - ends[next - 1]) * factors[next - 1];
  };
}
