// Which groups are open at first.
import { READABLE } from "./camera.js";

/** Boxes that are opened by themselves at most. */
const FIRST = 70;
/** And those in what is opened although not all of it may be seen. */
const FEW = 6;
/** Operations of a graph that is drawn as it is. */
const SMALL = 30;
/** A repeat of more rounds starts closed: its strip tells more than as many boxes. */
const MOST_ROUNDS = 16;
/** Opening everything stops at so many boxes: more could neither be placed at once nor read. */
export const MOST_BOXES = 600;

function held(model, g) {
  const { children, members } = model.templates.contents(g);
  return children.length + members.length;
}

/**
 * The largest first, as long as the whole can be seen at once and read: a first look is for the whole.  Loops stay closed,
 * for their rounds are alike, and so does what is beside a larger group that had no room: it would only be plumbing.
 * What is most of the model is opened in any case, for closed it says nothing; a repeat, which shows its rounds, only where it is not too wide.
 * @param {(open: Set<number>, group?: number) => number} zoomOf the zoom at which the whole, or a group from side to side, is in sight while these are open
 */
export function firstOpen(model, zoomOf) {
  const open = new Set([0]);
  let now = Infinity;
  let drawn = held(model, 0);
  let waiting = [...model.templates.contents(0).children];
  while (waiting.length) {
    waiting.sort((a, b) => model.ops[b] - model.ops[a] || a - b);
    const group = waiting.shift();
    // Of a small graph every round is drawn, of all others one for all.
    const opened = model.once.has(group) && model.ops[0] <= SMALL ? [group, ...model.templates.of(group).rounds] : alike(model, group, waiting);
    const added = opened.reduce((sum, g) => sum + held(model, g), 0);
    waiting = waiting.filter((g) => !opened.includes(g));
    if (isLoop(model, group) || drawn + added > FIRST) continue;
    const more = new Set([...open, ...opened]);
    if (2 * model.ops[group] <= model.ops[0] && !isMostOfRound(model, group)) {
      // Nothing gets smaller by opening: what is too large needs no second look.
      now ??= zoomOf(open);
      const next = now < READABLE ? 0 : zoomOf(more);
      if (next < READABLE) {
        waiting = waiting.filter((g) => model.parent[g] !== model.parent[group]);
        continue;
      }
      now = next;
    } else if (model.group(group).kind === "repeat" && zoomOf(more, group) < READABLE) continue;
    else now = null;
    for (const g of opened) open.add(g);
    drawn += added;
    waiting.push(...opened.flatMap((g) => model.templates.contents(g).children).filter((g) => !open.has(g)));
  }
  return open;
}

/** Whether a small group is nearly all of what is drawn once for most of the model, as the experts of a block are. */
function isMostOfRound(model, group) {
  const round = model.parent[group];
  const repeat = model.parent[round];
  return model.once.has(repeat) && 2 * model.ops[repeat] > model.ops[0] && 10 * model.ops[group] > 9 * model.ops[round] && held(model, group) <= FEW;
}

/** A module and those of its class beside it, such as the stages of a network: all of them are opened, or none. */
function alike(model, group, waiting) {
  const { kind, type } = model.group(group);
  const isAlike = (g) => model.parent[g] === model.parent[group] && model.group(g).kind === kind && model.group(g).type === type;
  return kind === "module" && type ? [group, ...waiting.filter(isAlike)] : [group];
}

/** The innermost open group that is most of the model; 0 where there is none, or all is small.  Those inside come after those around them. */
export const mainGroup = (model, open) => Math.max(0, ...[...open].filter((g) => 2 * model.ops[g] > model.ops[0] && model.ops[0] > SMALL));

function isLoop(model, g) {
  const { kind, type, count } = model.group(g);
  return kind === "begun" || (kind === "repeat" && !model.once.has(g) && (!type || count > MOST_ROUNDS));
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
    prepare(g, found);
    // Where not all rounds have room they stay drawn as one.
    const { children } = model.once.has(g) && drawn + model.inside(g).length > MOST_BOXES ? model.templates.contents(g) : { children: model.children[g] };
    waiting.push(...children);
    if (performance.now() - since > 50) {
      await pause();
      since = performance.now();
    }
  }
  return { open: found, left };
}
