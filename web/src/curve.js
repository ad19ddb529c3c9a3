// The shape of a line between boxes: straight between its points, round where it turns, and straight at both ends.

/** Pixels before and after a point, and from its ends, in which a line turns at most: further on it must keep clear of what stands beside it. */
const [BEND, TURN] = [36, 14];

/** A place on the way from one point to another: half of it, or less where that is long. */
function towards(a, b) {
  const part = Math.min(0.5, BEND / (Math.hypot(b.x - a.x, b.y - a.y) || 1));
  return { x: a.x + part * (b.x - a.x), y: a.y + part * (b.y - a.y) };
}

/** Pixels above a box at which lines end, for what they become there. */
export const FOOT = 10;

/** The way of a line at its ends where nothing else is said. */
export const DOWN = { x: 0, y: 1 };

const step = ({ x, y }, way, by) => ({ x: x + by * way.x, y: y + by * way.y });

/** The points of a line that ends so far before its end, with those that turn its ends into their ways. */
function turned(points, short = 0) {
  const [from, last] = [points[0], points.at(-1)];
  const [start, end] = [from, last].map(({ way }) => way ?? DOWN);
  const to = step(last, end, -short);
  const turn = (a, b, way) => Math.min(TURN, Math.max((b.x - a.x) * way.x + (b.y - a.y) * way.y, 0) / 2);
  return [from, step(from, start, turn(from, points[1], start)), ...points.slice(1, -1), step(to, end, -turn(points.at(-2), to, end)), to];
}

/**
 * @param path anything with the moveTo, lineTo and quadraticCurveTo of a canvas
 * @param short pixels above its end at which the line ends
 */
export function trace(path, through, short = 0) {
  const points = turned(through, short);
  path.moveTo(points[0].x, points[0].y);
  for (let i = 1; i < points.length - 1; i++) {
    const [from, to] = [towards(points[i], points[i - 1]), towards(points[i], points[i + 1])];
    path.lineTo(from.x, from.y);
    path.quadraticCurveTo(points[i].x, points[i].y, to.x, to.y);
  }
  const last = points[points.length - 1];
  path.lineTo(last.x, last.y);
}

/** Tells of a curve that ends short from where to where it reaches at a height, and so far above and below it; null where it does not come there. */
export function across(points, reach, short = 0) {
  const places = sampled(points, short);
  const heights = places.map(({ y }) => y);
  const [top, bottom] = [Math.min(...heights) - reach, Math.max(...heights) + reach];
  return (y) => (y < top || y > bottom ? null : near(places, y, reach));
}

function near(places, y, reach) {
  let [left, right] = [Infinity, -Infinity];
  for (let i = 1; i < places.length; i++) {
    const [a, b] = [places[i - 1], places[i]];
    if (Math.min(a.y, b.y) > y + reach || Math.max(a.y, b.y) < y - reach) continue;
    for (const end of [a, b]) {
      const height = Math.min(Math.max(end.y, y - reach), y + reach);
      const x = a.y === b.y ? end.x : a.x + ((b.x - a.x) * (height - a.y)) / (b.y - a.y);
      [left, right] = [Math.min(left, x), Math.max(right, x)];
    }
  }
  return left <= right ? { left, right } : null;
}

/** The curve, which ends short, in so many stretches of one length. */
export function stretches(points, short, many) {
  const places = sampled(points, short);
  const long = (i) => Math.hypot(places[i].x - places[i - 1].x, places[i].y - places[i - 1].y);
  const each = places.reduce((sum, _, i) => (i ? sum + long(i) : 0), 0) / many;
  const found = [[places[0]]];
  let left = each;
  for (let i = 1; i < places.length; i++) {
    const [from, to, whole] = [places[i - 1], places[i], long(i)];
    let gone = 0;
    for (; found.length < many && whole - gone > left; left = each) {
      gone += left;
      const cut = { x: from.x + ((to.x - from.x) * gone) / whole, y: from.y + ((to.y - from.y) * gone) / whole };
      found.at(-1).push(cut);
      found.push([cut]);
    }
    left -= whole - gone;
    found.at(-1).push(to);
  }
  return found;
}

/** How far a place is from the curve. */
export function distanceTo(points, x, y) {
  const places = sampled(points);
  return places.slice(1).reduce((least, to, i) => Math.min(least, toStretch(places[i], to, x, y)), Infinity);
}

function toStretch(a, b, x, y) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const long = dx * dx + dy * dy;
  const t = long ? Math.min(Math.max(((x - a.x) * dx + (y - a.y) * dy) / long, 0), 1) : 0;
  return Math.hypot(a.x + t * dx - x, a.y + t * dy - y);
}

function sampled(through, short = 0) {
  const found = [];
  const lineTo = (x, y) => found.push({ x, y });
  const quadraticCurveTo = (x, y, endX, endY) => {
    const from = found.at(-1);
    for (let t = 1 / 8; t <= 1; t += 1 / 8) lineTo((1 - t) ** 2 * from.x + 2 * t * (1 - t) * x + t ** 2 * endX, (1 - t) ** 2 * from.y + 2 * t * (1 - t) * y + t ** 2 * endY);
  };
  trace({ moveTo: lineTo, lineTo, quadraticCurveTo }, through, short);
  return found;
}

/** A box around a line, with room for its width. */
export function extent(points) {
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x: x - 8, y: y - 8, width: Math.max(...xs) - x + 16, height: Math.max(...ys) - y + 16 };
}
