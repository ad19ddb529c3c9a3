// Which groups are open at first.

/** Boxes that are opened by themselves at most. */
const FIRST = 70;
/** A repeat of more rounds starts closed: its strip tells more than as many boxes. */
const MOST_ROUNDS = 16;
/** Opening everything stops at so many boxes: more could neither be placed at once nor read. */
export const MOST_BOXES = 600;

const held = (model, g) => model.children[g].length + model.members[g].length;

/**
 * The largest first, as long as the whole can be seen at once and read: a first look is for the whole.  Loops stay closed,
 * for their rounds are alike, and so does what is beside a larger group that had no room: it would only be plumbing.
 * @param {(open: Set<number>) => boolean} fits whether the drawing can be read with these groups open
 */
export function firstOpen(model, fits) {
  const open = new Set([0]);
  let drawn = held(model, 0);
  let waiting = [...model.children[0]];
  while (waiting.length) {
    waiting.sort((a, b) => model.ops[b] - model.ops[a] || a - b);
    const group = waiting.shift();
    if (isLoop(model, group) || drawn + held(model, group) > FIRST) continue;
    // What holds everything is opened in any case: closed it says nothing.
    if (model.ops[group] < model.ops[0] && !fits(new Set([...open, group]))) {
      waiting = waiting.filter((g) => model.parent[g] !== model.parent[group]);
      continue;
    }
    open.add(group);
    drawn += held(model, group);
    waiting.push(...model.children[group]);
  }
  return open;
}

function isLoop(model, g) {
  const { kind, type, count } = model.group(g);
  return kind === "repeat" && (!type || count > MOST_ROUNDS);
}

/**
 * Everything in a group, level by level, as far as there is room.
 * @param {(group: number) => void} prepare called for each group that is opened
 * @returns what is open then, and how many groups had no room.  In slices, so that the page can be used meanwhile.
 */
export async function everything(model, open, within, prepare, pause) {
  const found = new Set(open);
  let drawn = [...found].reduce((sum, g) => sum + held(model, g), 0);
  let left = 0;
  const waiting = [within];
  let since = performance.now();
  for (const g of waiting) {
    if (!found.has(g) && drawn + held(model, g) > MOST_BOXES) {
      left += 1;
      continue;
    }
    if (!found.has(g)) drawn += held(model, g);
    found.add(g);
    prepare(g);
    waiting.push(...model.children[g]);
    if (performance.now() - since > 50) {
      await pause();
      since = performance.now();
    }
  }
  return { open: found, left };
}
