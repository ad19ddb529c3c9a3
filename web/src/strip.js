// The norms of a repeat's rounds side by side, backward's first round on the left: where they shrink or grow shows at once.
// Of several calls each has a row of tiles; both sides of a comparison stand as two bars beside each other.
import { isBad } from "./gradients.js";
import { Scale } from "./scale.js";

/** Pixels of a round that has room for two bars, and of the screen for a row of tiles. */
const [PAIR, ROW] = [6, 2];
/** A tile that is lower is told by its colour alone; pixels of the smallest bar. */
const [LOW, LEAST] = [6, 2];

/**
 * One column a round, or for every pixel the largest of the rounds that share it, and so for rows.
 * @param grid for each pass the gradients of the rounds, null for a round that has none
 * @param mark the round and the pass that are shown or pointed at, or null
 * @param now the pass that is looked at
 * @param heights the scale of the bars' heights
 * @param fine pixels of the screen for one of the drawing's: who zooms in sees every round of a long repeat
 */
export function strip(context, grid, { x, y, width, height }, { scale, heights, theme, fine, isPair, now, mark = null }) {
  fillRect(context, theme.track, x, y, width, height);
  const isBeside = besides(grid, width, isPair);
  const rows = isBeside ? 1 : rowsOf(grid, height, fine);
  const columns = columnsOf(grid[0].length, width, fine);
  const [wide, tall] = [width / columns, height / rows];
  const gap = wide < 4 ? 0 : isBeside ? 3 : 1;
  const below = rows > 1 && tall >= 4 ? tall / 10 : 0;
  const sides = isBeside ? grid : [grid];
  for (let i = 0; i < columns; i++) {
    for (let row = 0; row < rows; row++) {
      sides.forEach((side, k) => {
        const info = loudest(isBeside ? [side] : side, [i, columns], [row, rows])?.info;
        const cell = { x: x + i * wide + (k * (wide - gap)) / sides.length, y: y + row * tall, width: (wide - gap) / sides.length, height: tall - below };
        if (info) column(context, info, cell, scale, heights.share(info.norm), theme, rows > 1);
      });
    }
  }
  const each = width / grid[0].length;
  context.lineWidth = 2;
  context.strokeStyle = context.fillStyle = theme.path;
  if (rows > 1) context.fillRect(x - 4, y + (now * height) / grid.length, 2, height / grid.length - below);
  if (mark === null) return;
  const [left, right, top, bottom] = isBeside ? [mark.pass / 2, 1 / 2, 0, 1] : rows > 1 ? [0, 1, mark.pass / grid.length, 1 / grid.length] : [0, 1, 0, 1];
  context.strokeRect(x + (mark.number + left) * each - 1, y + top * height - 1, Math.max((each - gap) * right, 1) + 2, bottom * height - below + 2);
}

const scales = new WeakMap();

/** The scale of a strip's own gradients, as in render/drawing/scale.py: where they grow or shrink shows, however wide that of the file is. */
export function ownScale(grid) {
  const [key] = grid;
  if (!scales.has(key)) scales.set(key, new Scale(grid.flat().map((info) => info?.norm ?? 0), false, 1));
  return scales.get(key);
}

/** The round and the pass at a place of a strip, as shares of its size: of those that share a pixel the one that is shown there. */
export function cellAt(grid, [across, down], { width, height }, fine, isPair) {
  const columns = columnsOf(grid[0].length, width, fine);
  const rows = rowsOf(grid, height, fine);
  const at = (share, parts) => [Math.min(Math.floor(share * parts), parts - 1), parts];
  if (!besides(grid, width, isPair)) return loudest(grid, at(across, columns), at(down, rows));
  const pass = Math.floor(across * columns * 2) % 2;
  const found = loudest([grid[pass]], at(across, columns), [0, 1]);
  return found && { ...found, pass };
}

export const columnsOf = (rounds, width, fine) => Math.max(Math.min(rounds, Math.floor(width * fine)), 1);
const rowsOf = (grid, height, fine) => Math.max(Math.min(grid.length, Math.floor((height * fine) / ROW)), 1);
const besides = (grid, width, isPair) => isPair && grid.length > 1 && width / grid[0].length >= PAIR;

/** Of the rounds and passes that share a cell the one to show: what is not finite before the largest norm. */
function loudest(grid, column, row) {
  const [from, to] = span(column, grid[0].length);
  const [first, last] = span(row, grid.length);
  let best = null;
  for (let pass = first; pass < last; pass++) {
    for (let number = from; number < to; number++) {
      const info = grid[pass][number];
      if (info && (!best || rankOf(info) > rankOf(best.info))) best = { number, pass, info };
    }
  }
  return best;
}

/** A rectangle of a colour. */
export function fillRect(context, color, ...place) {
  context.fillStyle = color;
  context.fillRect(...place);
}

const rankOf = (info) => (isBad(info) ? Infinity : Number(info.norm ?? -1));

const span = ([i, parts], total) => {
  const from = Math.floor((i * total) / parts);
  return [from, Math.max(Math.floor(((i + 1) * total) / parts), from + 1)];
};

function column(context, info, { x, y, width, height }, scale, share, theme, isTile) {
  const bad = isBad(info);
  if (isTile && info.state === "zero") {
    fillRect(context, theme.border, x, y + height / 2, width, 0.5);
  }
  if (share === null && !bad) return;
  const tall = bad ? height : LEAST + (height - LEAST) * share;
  context.fillStyle = bad ? theme.bad : theme.size ?? scale.color(info.norm);
  // A tile is full of its colour, where there are colours.
  if (isTile && !theme.size) context.fillRect(x, y, width, height);
  else context.fillRect(x, y + height - tall, width, tall);
  if (bad || (isTile && height < LOW)) return;
  // A line on top, because the steps in the middle of the scale are as pale as the ground.
  fillRect(context, theme.border, x, y + height - tall, width, isTile ? 0.5 : 1);
}
