// Which box an arrow key leads to.

const WAYS = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] };

const middle = (box) => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 });

/**
 * Up and down follow lines where there are any; left and right go to what is beside.
 * @param linked a function that gives the keys of boxes below, or above
 */
export function nextBox(box, direction, boxes, linked) {
  const along = WAYS[direction];
  const keys = along[1] ? linked(along[1] > 0) : new Set();
  const here = middle(box);
  let best = null;
  for (const other of boxes) {
    if (other.open || other.key === box.key || (keys.size && !keys.has(other.key))) continue;
    const there = middle(other);
    const ahead = (there.x - here.x) * along[0] + (there.y - here.y) * along[1];
    if (ahead <= 0 && !keys.size) continue;
    const aside = Math.abs((there.x - here.x) * along[1]) + Math.abs((there.y - here.y) * along[0]);
    const cost = Math.abs(ahead) + 3 * aside;
    if (!best || cost < best.cost) best = { cost, other };
  }
  return best?.other ?? null;
}
