// The shape of a line between boxes: through the middles between its points, so that corners are round, and straight down at both ends.

const middle = (a, b) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });

/** Pixels in which a line turns down, at most. */
const TURN = 14;

/** The points of a line that ends so far above its end, with those that turn its ends down. */
function turned(points, short = 0) {
  const [from, last] = [points[0], points.at(-1)];
  const to = { x: last.x, y: last.y - short };
  const turn = (a, b) => Math.min(TURN, Math.max(b.y - a.y, 0) / 2);
  return [from, { x: from.x, y: from.y + turn(from, points[1]) }, ...points.slice(1, -1), { x: to.x, y: to.y - turn(points.at(-2), to) }, to];
}

/**
 * @param path anything with the moveTo, lineTo and quadraticCurveTo of a canvas
 * @param short pixels above its end at which the line ends
 */
export function trace(path, through, short = 0) {
  const points = turned(through, short);
  path.moveTo(points[0].x, points[0].y);
  for (let i = 1; i < points.length - 1; i++) {
    const next = middle(points[i], points[i + 1]);
    path.quadraticCurveTo(points[i].x, points[i].y, next.x, next.y);
  }
  const last = points[points.length - 1];
  path.lineTo(last.x, last.y);
}

/** Where the curve is at a height: x of the first place that comes so far down, its rightmost near there. */
export function crossing(points, y) {
  const near = sampled(points).filter((point) => Math.abs(point.y - y) <= 7);
  if (near.length) return Math.max(...near.map((point) => point.x));
  return points[points.length >> 1].x;
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

function sampled(through) {
  const points = turned(through);
  const found = [];
  let from = points[0];
  const bend = (control, to) => {
    for (let i = 0; i <= 16; i++) {
      const t = i / 16;
      const [a, b, c] = [(1 - t) ** 2, 2 * t * (1 - t), t ** 2];
      found.push({ x: a * from.x + b * control.x + c * to.x, y: a * from.y + b * control.y + c * to.y });
    }
    from = to;
  };
  for (let i = 1; i < points.length - 1; i++) bend(points[i], middle(points[i], points[i + 1]));
  const last = points[points.length - 1];
  bend(middle(from, last), last);
  return found;
}

/** A box around a line, with room for its width. */
export function extent(points) {
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x: x - 8, y: y - 8, width: Math.max(...xs) - x + 16, height: Math.max(...ys) - y + 16 };
}
