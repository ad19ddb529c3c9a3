// What is open, selected and in sight as text for the address, and back.  A link shows what its sender saw.

/** `3-5.9` for the groups 3, 4, 5 and 9. */
const ranges = (numbers) => {
  const runs = [];
  for (const n of [...numbers].sort((a, b) => a - b)) {
    if (runs.at(-1)?.[1] === n - 1) runs.at(-1)[1] = n;
    else runs.push([n, n]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(".");
};

/** More groups than a person opens: nobody's link makes a page draw a hundred thousand boxes. */
const MOST = 2000;

/** The groups of such text that there are. */
const members = (text, size) => {
  const found = new Set([0]);
  for (const [, from, to] of text.matchAll(/(\d+)(?:-(\d+))?/g)) {
    for (let n = Number(from); n <= Math.min(Number(to ?? from), size - 1) && found.size < MOST; n++) found.add(n);
  }
  return found;
};

const rounded = (x) => String(Number(x.toPrecision(6)));

/** @param {{at: string|null, open: Set<number>|null, graph: number, overlay: number, pass: number, rank: string, middle: object|null}} state */
export function written({ at, open, graph, overlay, pass, rank, middle }) {
  const text = new URLSearchParams();
  if (at) text.set("at", at);
  if (graph) text.set("graph", String(graph));
  if (overlay >= 0) text.set("show", String(overlay));
  if (pass) text.set("pass", String(pass));
  if (rank !== "") text.set("rank", rank);
  if (open) text.set("open", ranges(open));
  if (middle) text.set("view", [middle.x, middle.y, middle.zoom].map(rounded).join("~"));
  return text.toString();
}

/** @param groups how many there are */
export function read(address, groups) {
  const text = new URLSearchParams(address.replace(/^#/, ""));
  const [x, y, zoom] = (text.get("view") ?? "").split("~").map(Number);
  return {
    at: text.get("at"),
    graph: Number(text.get("graph") ?? 0),
    overlay: Number(text.get("show") ?? -1),
    pass: Number(text.get("pass") ?? 0),
    rank: text.get("rank"),
    open: text.has("open") ? members(text.get("open"), groups) : null,
    middle: zoom > 0 && Number.isFinite(x + y + zoom) ? { x, y, zoom } : null,
  };
}

/** What a viewer shows now. */
export function stateOf({ model, shown, overlays, selected, open, first, ranks, camera, isAsPlaced }) {
  const isFirst = open.size === first.size && [...open].every((g) => first.has(g));
  return {
    at: selected,
    open: isFirst ? null : open,
    graph: model.data.graph,
    overlay: overlays.indexOf(shown),
    pass: model.passNumber,
    rank: ranks && model.rank !== model.ranks.shown ? String(model.rank) : "",
    // What was brought into sight because it is selected, is so again on a screen of another size.
    middle: isAsPlaced ? null : camera.middle,
  };
}
