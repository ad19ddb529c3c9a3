// Which groups are open at first.

/** Boxes that are opened by themselves at most. */
const FIRST = 70;

/** Level by level, as long as the boxes that are then drawn can be taken in; loops stay closed, for their rounds are alike. */
export function firstOpen(model) {
  const open = new Set([0]);
  let drawn = model.children[0].length + model.members[0].length;
  let frontier = model.children[0];
  const held = (g) => model.children[g].length + model.members[g].length;
  const growth = (groups) => groups.reduce((sum, g) => sum + held(g), 0);
  while (frontier.length) {
    const ready = frontier.filter((g) => model.group(g).kind !== "repeat" || model.group(g).type);
    // Repeats first: their rounds belong on the same level as what stands beside the repeat.
    const repeats = ready.filter((g) => model.group(g).kind === "repeat");
    const others = ready.filter((g) => model.group(g).kind !== "repeat");
    const chosen = [repeats, others].find((groups) => groups.length && drawn + growth(groups) <= FIRST);
    if (!chosen) break;
    for (const g of chosen) open.add(g);
    drawn += growth(chosen);
    frontier = [...ready.filter((g) => !open.has(g)), ...chosen.flatMap((g) => model.children[g])];
  }
  return open;
}
