// The norms of a repeat's rounds side by side, backward's first round on the left: where they shrink or grow shows at once.

/**
 * One column a round, or for every pixel the largest of the rounds that share it.
 * @param fine pixels of the screen for one of the drawing's: who zooms in sees every round of a long repeat
 */
export function strip(context, rounds, { x, y, width, height }, { scale, theme, fine }) {
  context.fillStyle = theme.track;
  context.fillRect(x, y, width, height);
  const columns = columnsOf(rounds.length, width, fine);
  const step = width / columns;
  const gap = step >= 4 ? 1 : 0;
  for (let i = 0; i < columns; i++) {
    const shared = rounds.slice(Math.floor((i * rounds.length) / columns), Math.floor(((i + 1) * rounds.length) / columns));
    column(context, largest(shared), { x: x + i * step, width: step - gap, y, height }, scale, theme);
  }
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
