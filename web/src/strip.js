// The norms of a repeat's rounds side by side, backward's first round on the left: where they shrink or grow shows at once.

/**
 * One column a round, or for every pixel the largest of the rounds that share it.
 * @param rounds their gradients, null for a round that has none
 * @param mark the number of the round that is shown or pointed at, or null
 * @param fine pixels of the screen for one of the drawing's: who zooms in sees every round of a long repeat
 */
export function strip(context, rounds, { x, y, width, height }, { scale, theme, fine, mark = null }) {
  context.fillStyle = theme.track;
  context.fillRect(x, y, width, height);
  const columns = columnsOf(rounds.length, width, fine);
  const step = width / columns;
  const gap = step >= 4 ? 1 : 0;
  for (let i = 0; i < columns; i++) {
    const shared = rounds.slice(Math.floor((i * rounds.length) / columns), Math.floor(((i + 1) * rounds.length) / columns)).filter(Boolean);
    if (shared.length) column(context, largest(shared), { x: x + i * step, width: step - gap, y, height }, scale, theme);
  }
  if (mark === null) return;
  const each = width / rounds.length;
  context.lineWidth = 2;
  context.strokeStyle = theme.path;
  context.strokeRect(x + mark * each - 1, y - 1, Math.max(each - gap, 1) + 2, height + 2);
}

/** The number of the round at a share of a strip's width: of those that share a pixel the one that is shown there. */
export function roundAt(rounds, share, width, fine) {
  const columns = columnsOf(rounds.length, width, fine);
  const column = Math.min(Math.floor(share * columns), columns - 1);
  const from = Math.floor((column * rounds.length) / columns);
  const shared = rounds.slice(from, Math.max(Math.floor(((column + 1) * rounds.length) / columns), from + 1));
  const known = shared.filter(Boolean);
  return known.length ? from + shared.indexOf(largest(known)) : null;
}

export const columnsOf = (rounds, width, fine) => Math.max(Math.min(rounds, Math.floor(width * fine)), 1);

function column(context, info, { x, y, width, height }, scale, theme) {
  if (info.state === "non-finite") {
    context.fillStyle = theme.bad;
    context.fillRect(x, y, width, height);
    return;
  }
  const share = scale.share(info.norm);
  if (share === null) return;
  const tall = Math.max(height * share, 2);
  context.fillStyle = theme.size ?? scale.color(info.norm);
  context.fillRect(x, y + height - tall, width, tall);
  // A line on top, because the steps in the middle of the scale are as pale as the ground.
  context.fillStyle = theme.border;
  context.fillRect(x, y + height - tall, width, 1);
}

/** The one to show of several: what is not finite before the largest norm. */
export function largest(infos) {
  const loud = infos.find((info) => info.state === "non-finite");
  return loud ?? infos.reduce((most, info) => (Number(info.norm ?? -1) > Number(most.norm ?? -1) ? info : most));
}
