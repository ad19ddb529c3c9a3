// What can be said of gradients without knowing how they are drawn: several as one, and the strongest way.

const LOUDEST = ["non-finite", "finite", "zero", "none", "not reached"];

/** Whether a gradient has a NaN or an infinity. */
export const isBad = (info) => info?.state === "non-finite";

/** Several gradients as one long vector, as reading.py does it; null for none. */
export function combine(parts) {
  if (parts.length < 2) return parts[0] ?? null;
  const state = LOUDEST.find((one) => parts.some((part) => part.state === one));
  const silent = state === "none" || state === "not reached";
  const norms = parts.filter((part) => part.norm !== null).map((part) => Number(part.norm));
  return {
    state,
    norm: silent || !norms.length ? null : hypot(norms),
    most: norms.reduce((most, one) => (one > most ? one : most), 0),
    absmax: null,
    nan: parts.reduce((sum, part) => sum + part.nan, 0),
    inf: parts.reduce((sum, part) => sum + part.inf, 0),
    dtype: parts[0].dtype,
    values: null,
  };
}

/**
 * Gradients of places that one box stands for as one: the median of their norms, and of what is finite the smallest and the largest.
 * @param all anything that `stateOf` and `normOf` tell of, and `infoOf` makes a gradient of: there may be very many
 */
export function among(all, stateOf, normOf, infoOf) {
  const states = all.map(stateOf);
  const state = LOUDEST.find((one) => states.includes(one));
  const sorted = all.filter((one, i) => states[i] === "finite" && normOf(one) !== null).sort((a, b) => normOf(a) - normOf(b));
  const middle = infoOf(sorted[sorted.length >> 1] ?? all[0]);
  const span = [sorted[0], sorted.at(-1)].filter((one) => one !== undefined).map(infoOf);
  const many = states.filter((one) => one === state).length;
  return { ...middle, state, norm: state === "finite" ? middle.norm : null, absmax: null, values: null, span, many, of: all.length };
}

/**
 * The nodes, with the numbers of their outputs, at which edges or seeds lead into a group: each once, with those edges and seeds
 * where some of what is added there comes from inside, else null.
 */
export function placesEntered(model, group) {
  const places = new Map();
  const mixed = new Set();
  const keyOf = (node, output) => (output ? `${node}.${output}` : `${node}`);
  const placeOf = (node, output) => {
    const key = keyOf(node, output);
    if (!places.has(key)) places.set(key, { node, output, outside: { edges: [], seeds: [] } });
    return places.get(key);
  };
  for (const node of model.inside(group)) {
    for (const edge of model.into(node)) {
      const output = model.output[edge];
      if (model.isInside(model.source[edge], group)) mixed.add(keyOf(node, output));
      else placeOf(node, output).outside.edges.push(edge);
    }
  }
  model.data.roots.forEach((root, i) => model.isInside(root.node, group) && placeOf(root.node, root.output).outside.seeds.push(i));
  return [...places].map(([key, { node, output, outside }]) => [node, output, mixed.has(key) ? outside : null]);
}

// Math.hypot(...many) would put every number on the stack.
function hypot(norms) {
  const largest = norms.reduce((most, x) => (Number.isNaN(x) || x > most ? x : most), 0);
  if (!(largest > 0) || !Number.isFinite(largest)) return largest;
  return largest * Math.sqrt(norms.reduce((sum, x) => sum + (x / largest) ** 2, 0));
}

/**
 * The way from a root to a node along which the gradient is strongest: the one whose weakest edge is largest.
 * One pass over the nodes, whose ids are in the order of backward.  Returns edges, the first at the root.
 */
export function strongestPath(model, goal) {
  const strength = new Float64Array(model.size).fill(-1);
  const by = new Int32Array(model.size).fill(-1);
  for (const root of model.rootNodes) strength[root] = Infinity;
  for (let n = 0; n < goal; n++) {
    if (strength[n] < 0) continue;
    for (const edge of model.from(n)) {
      const norm = model.strength(edge);
      const through = Math.min(strength[n], Number.isNaN(norm) ? Infinity : norm);
      if (through > strength[model.target[edge]]) {
        strength[model.target[edge]] = through;
        by[model.target[edge]] = edge;
      }
    }
  }
  const path = [];
  for (let n = goal; by[n] >= 0; n = model.source[by[n]]) path.push(by[n]);
  return path.reverse();
}
