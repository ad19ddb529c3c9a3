// What boxes and lines are called, and what is said of a gradient.  The same words on the canvas, in the panel and in the list.
import { count, dotted, leavesOf, number, plural, shapeOf, shorten, tensor, visible } from "./format.js";
import { isBad } from "./gradients.js";
import { ROUNDS, isCarried, isPort } from "./level.js";
import { toldApart } from "./ranks.js";

/** Values that are told, and modules without a gradient that are named. */
const [FEW, NAMED] = [4, 2];

/** What stands for a gradient: its numbers if they are few, else its norm or its state. */
export function told(info, shape) {
  if (!info) return "";
  if (info.words !== undefined) return info.words;
  if (info.span) return toldAmong(info);
  if (info.each) return toldApart(info, told);
  if (isBad(info)) return `✖ ${[info.nan && `${info.nan} NaN`, info.inf && `${info.inf} Inf`].filter(Boolean).join(" ")}`;
  if (info.state === "zero") return "0";
  if (info.state !== "finite") return info.state === "none" ? "no grad" : "not reached";
  if (info.values && info.values.length <= FEW) return tensor(info.values, shape ?? (info.values.length > 1 ? [info.values.length] : []));
  return info.norm === null ? "?" : number(info.norm);
}

/** The size of a gradient, also of one whose numbers are few: what stands beside each other is compared. */
export const toldSize = (info) => told(info && { ...info, values: null });

/** `0.61–0.84`, of what a box stands for, and for how many of them that holds. */
function toldAmong({ state, span, many, of }) {
  const ends = [...new Set(span.map(toldSize))].join("–");
  const what = state === "finite" ? ends : state === "non-finite" ? "✖ not finite" : told({ state });
  return many < of ? `${what} in ${many} of ${of}` : what;
}

/** `‖g‖ 1.5`, or why there is no number. */
export const sizeWords = (info) => (info?.state === "finite" && info.norm !== null && info.words === undefined ? `‖g‖ ${info.each || info.span ? told(info) : number(info.norm)}` : told(info));

/** `74 % by skip`, `2 gradients cancel 93 %` of what is added in a box; of several layers the range. The words of render/drawing/facts.py. */
export function meetingWords(model, box) {
  const met = model.meeting(box);
  return (met.words ??= toldMeeting(model, box, met));
}

/** A module of so many parts is told by a strip of them, as a repeat is; and so is one of so many parts of one class. */
const [MANY_PARTS, FEW_EQUAL] = [10, 3];

/** Whether a closed group shows its rounds: a repeat, a part of a long one, or a module of many parts, or of parts of one class. */
export function hasRounds(model, group) {
  if (["repeat", "part"].includes(model.group(group).kind)) return true;
  const rounds = model.rounds(group);
  if (rounds[0]?.group === undefined) return false;
  const types = new Set(rounds.map((round) => model.group(round.group).type));
  return rounds.length >= MANY_PARTS || (rounds.length >= FEW_EQUAL && types.size === 1 && !types.has(""));
}

/** `4 gradients together`, of which the size of a closed group is, where they enter it at several places; else "". */
export function apartWords(model, { group, bars }) {
  const many = group === undefined || bars || model.group(group).kind === "leaves" || hasRounds(model, group) ? 0 : model.entrances(group);
  return many > 1 ? `${plural(many, "gradient")} together` : "";
}

function toldMeeting(model, box, { skip, cancelled, places }) {
  const isOne = skip.length === 1;
  const [skips, lost] = [skip, cancelled].map((shares) => shares.filter((share) => share !== undefined).sort((a, b) => a - b));
  const words = [];
  if (skips.length) {
    const ends = [...new Set([skips[0], skips.at(-1)].map((share) => (100 * share).toFixed(0)))];
    words.push(`${ends.join("–")} % by skip`);
  }
  if (lost.length) {
    const percent = Number((100 * lost.at(-1)).toPrecision(3));
    const share = `${percent === 100 && lost.at(-1) < 1 ? "over 99.9" : percent} %`;
    const node = model.meetingAt(box);
    const many = isOne && node !== null && model.incoming(node).filter((edge) => model.strength(edge)).length + model.data.roots.filter((root) => root.node === node).length;
    const ofLeaves = isOne && places.length && model.group(box.group).kind === "leaves";
    const one = ofLeaves && !places[1] && `${visible(model.title(Math.floor(places[0])).split(".").slice(-2).join("."))} cancels ${share}`;
    words.push(many ? `${count(many)} gradients cancel ${share}` : one || (ofLeaves ? `${places.length} of ${model.group(box.group).count} cancel up to ${share}` : `cancels up to ${share}`));
  }
  return dotted(...words, apartWords(model, box));
}

/** `∂L/∂y`, as what is given for a root is called. */
export const seedWords = (model, root) => `∂L/∂${shorten(visible(model.data.roots[root].label || model.variable(model.data.roots[root].node)), 60) || "output"}`;

/** `detach train.py:9`, by what and where history was cut. */
export function wallWords(model, wall) {
  const { function: name, origin } = model.walls[wall];
  const place = model.place(origin);
  return inside(visible([name, place && `${place.file.split(/[\\/]/).at(-1)}:${place.line}`].filter(Boolean).join(" ")));
}

/** A name may be of any length; what is longer is shown in the middle of a list or sentence by its two ends. */
const LONGEST = 160;
export const inside = (text) => {
  const signs = [...text];
  return signs.length > LONGEST ? `${signs.slice(0, LONGEST / 2).join("")} … ${signs.slice(-LONGEST / 2).join("")}` : text;
};

/** What a node is called by itself: its name, or the user's words for it. */
export const nodeName = (model, node) => inside(visible(model.label(node) || model.title(node)));

/** What the box of a node is called: by the name it has in all rounds, where it stands for several. */
export const boxName = (model, box) => (box.each?.length > 1 && model.isLeaf(box.node) ? inside(visible(inRound(model, box.node))) : nodeName(model, box.node));

/** What a line leads from and to, also outside of the open group. */
export function endNames(model, { from, to, isOfRounds }) {
  const name = (key, rounds) => (key.endsWith(ROUNDS) ? rounds : endName(model, key.replace(/^[<>]/, "")) + (isPort(key) && isOfRounds ? `, ${rounds}` : ""));
  return [name(from, "the round before"), name(to, "the next round")];
}

function endName(model, key) {
  const id = Number(key.slice(1));
  if (key[0] === "s") return seedWords(model, id);
  return key[0] === "n" ? nodeName(model, id) : groupWords(model, id).name;
}

/**
 * The name of a group, its class where the name does not say it, the call where neither says which one it is, and how often it repeats.
 * @param title of the group, or what those that it stands for have in common
 */
export function groupWords(model, group, title = model.group(group).title, isOnce = false) {
  const { kind, type, label, count: rounds } = model.group(group);
  const size = kind === "leaves" ? leavesOf(rounds) : plural(model.ops[group], "op");
  const times = kind === "repeat" ? ` ×${count(rounds)}${absentOf(model, group, isOnce)}` : "";
  // Of a short loop the expression made last says most; a long one, and a repeat of modules, has a title of its own.
  const name = kind === "repeat" && !type && !title.startsWith("repeat in ") ? label.split(" → ")[0] || title : title.split(" → ").map((one) => within(model, group, one)).join(" → ") || label;
  // A number does not say what it is.
  if (/^[\d.\u2013]+$/.test(name) && type) return { name: inside(visible(`${name} ${type}`)), type: "", called: "", times, size };
  // Of a module without a name of its own the line that called it tells which call it is, as far as there is room.
  const called = kind === "module" && type === name ? inside(visible(label)) : "";
  return { name: inside(visible(name)), type: type === name ? "" : inside(visible(type)), called, times, size };
}

/** ` · not called: experts.5`, what was never called of the list that a repeat is of; where it is drawn `isOnce`, in any of its rounds. */
export function absentOf(model, group, isOnce) {
  if (!model.data.absent.length) return "";
  const alike = (path) => (isOnce ? path.replace(/\d+/g, "*") : path);
  const lists = model.group(group).title.split(" → ").map((list) => alike(list.replace(/\.?\*$/, "")));
  const found = model.data.absent.map((path) => path.split(".")).filter((path) => lists.includes(alike(path.slice(0, -1).join("."))));
  const names = [...new Set(found.map((path) => path.slice(-2).join(".")))];
  return names.length ? ` · not called: ${visible(names.slice(0, NAMED).join(", "))}${names.length > NAMED ? "…" : ""}` : "";
}

/** The name of a box that is a group: of a repeat that is drawn once its rounds, or the one that is shown. */
export function boxWords(model, box) {
  if (!box.bars) return groupWords(model, box.group);
  const template = model.templates.of(Number(box.key.slice(1)));
  const words = groupWords(model, box.group, template ? undefined : pattern(model, box.each), true);
  if (box.each.length === 1) return template ? { ...words, times: ` · 1 of ${template.rounds.length}` } : words;
  const { size } = groupWords(model, box.each[0].group);
  // Of a repeat in what is drawn once the number before it would seem to be meant.
  const isEach = template && model.group(box.each[0].group).kind !== "repeat";
  return { ...words, size: isEach ? `${size} each` : size };
}

/** What a node is called in the round of a repeat that it is in. */
export function inRound(model, node) {
  const title = model.title(node);
  const chain = model.around(model.owner[node]);
  const round = chain.find((g, i) => model.group(g).kind === "module" && model.once.has(chain.slice(i + 1).find((h) => model.group(h).kind !== "part")));
  const around = round === undefined ? "" : `${model.group(round).title}.`;
  return around && title.startsWith(around) ? title.slice(around.length) : title;
}

/** `h.*.mlp`: what some groups are called. */
function pattern(model, groups) {
  const [one, ...others] = groups.map(({ group }) => model.group(group).title.split("."));
  return one.map((part, i) => (others.every((other) => other[i] === part) ? part : "*")).join(".");
}

/** `mlp` rather than `h.11.mlp`, inside `h.11`; but `attention.self` rather than `self`, and `experts.*.0` rather than `0`. */
function within(model, group, title) {
  const parts = title.split(".");
  for (const g of model.around(model.parent[group])) {
    const around = model.group(g);
    const from = around.title.split(".").length;
    const isIn = around.kind === "module" && around.title && from < parts.length && around.title.split(".").every((part, i) => part === parts[i] || parts[i] === "*");
    if (!isIn) continue;
    let start = from;
    if (from + 1 === parts.length && /^(\d+|\*|self)$/.test(parts[from])) do start -= 1; while (start && /^(\d+|\*)$/.test(parts[start]));
    return parts.slice(start).join(".");
  }
  return title;
}

/** The sign before what is in trouble, as in a terminal. */
export const severitySign = (severity) => ({ error: "✖ ", warning: "▲ ", information: "△ " })[severity] ?? "";

/** What the verdict says of a box, unless it says that itself of gradients that meet there. */
export function markWords(model, box) {
  const words = model.troubles.words(box);
  return words.includes("cancel") && meetingWords(model, box).includes("cancel") ? "" : words;
}

export const CUT = "history cut here";

/** `‖g‖ A 0.5606 · B 0.6026` of the sides of a comparison; else `‖g‖ 0.5606`. */
export const bothWords = (model, box) => (model.isPair && !box.each ? `‖g‖ ${model.data.passes.map((pass, i) => `${"AB"[i]} ${toldSize(model.arrivingIn(pass, box))}`).join(" · ")}` : sizeWords(model.arriving(box)));

/** A box or line in a few lines, the first of which is its name. */
export function inShort(model, box) {
  if (box.wall !== undefined) return [wallWords(model, box.wall), CUT];
  const gradient = !model.pass ? "" : box.edges ? sizeWords(model.flowing(box)) : box.seed === undefined ? bothWords(model, box) : told(model.seed(box.seed));
  if (box.edges) return [endNames(model, box).join(" → "), gradient, moreWords(model, box)[0] ?? "1 edge", ...(model.isSum(box) || edgesOf(box) < 2 ? [] : ["the norm of all as one vector"])];
  if (box.seed !== undefined) return [seedWords(model, box.seed), gradient];
  if (box.group !== undefined) {
    const { name, times, size } = boxWords(model, box);
    const { kind, type } = model.group(box.group);
    return [`${name}${times}`, [kind, visible(type)].filter(Boolean).join(" "), size, gradient, meetingWords(model, box)].filter(Boolean);
  }
  const origin = model.origin(box.node);
  return [boxName(model, box), model.isLeaf(box.node) ? "leaf" : visible(model.op(box.node)), model.shape(box.node), gradient, meetingWords(model, box), origin ? inside(visible(`${origin.file}:${origin.line}`)) : ""].filter(Boolean);
}

/** What a bar of a box's strip stands for: the round, and what enters there. */
export function ofBar(model, box, number, pass) {
  const one = model.barOf(box, number);
  const grid = model.grid(box);
  if (!one) return [];
  return [roundName(model, one), grid[1] && callName(model.data.calls.find(([, graph, place]) => graph === model.data.graph && place === pass)), sizeWords(grid[1] ? grid[pass][number] : model.arriving(one))].filter(Boolean);
}

/** `loss.backward() train.py:9 · call 2`, or the side of a comparison. */
export const callName = ([number, , , words]) => (!number ? words : words ? `${words} · call ${number}` : `backward call ${number}`);

/** `h.3`, the round of a repeat that a node or group is in, with those around it, `layers.2 experts.6`; or the repeat's own name for it. */
export function roundName(model, { node, group }) {
  const chain = model.around(node === undefined ? group : model.owner[node]);
  const rounds = chain.filter((g, i) => model.once.has(chain.slice(i + 1).find((h) => model.group(h).kind !== "part")));
  if (rounds.length) return rounds.reverse().map((g) => groupWords(model, g).name).join(" ");
  return node === undefined ? groupWords(model, group).name : nodeName(model, node);
}

/** One sentence on a box or line, for the list and for what is read aloud: what colours mean, else the gradient. */
export function described(viewer, box) {
  const { model, shown, isOfGradients } = viewer;
  if (box.wall !== undefined) return `${CUT}: ${wallWords(model, box.wall)}`;
  if (box.seed !== undefined) {
    const { node, output } = model.data.roots[box.seed];
    return `given: ${seedWords(model, box.seed)} = ${told(model.seed(box.seed), shapeOf(model.shape(node, output))) || "not known"}`;
  }
  const meets = box.edges ? "" : meetingWords(model, box);
  const overlaid = isOfGradients ? "" : told(box.edges ? shown.onLine(box) : shown.of(box));
  const gradient = overlaid ? `, ${shown.name} ${overlaid}` : model.pass ? `, gradient ${[told(box.edges ? model.flowing(box) : model.arriving(box)), meets].filter(Boolean).join(", ")}` : "";
  if (box.edges) return `${plural(box.edges.length + box.seeds.length, "edge")} from ${endNames(model, box).join(" to ")}${gradient}`;
  if (box.node !== undefined) {
    const kind = model.isLeaf(box.node) ? "leaf" : visible(model.title(box.node));
    return `${alarm(model.troubles.at(box))}${boxName(model, box)}, ${kind}${gradient}`;
  }
  const { name, times, size } = boxWords(model, box);
  return `${alarm(model.troubles.at(box))}${name}${times}, ${size}${gradient}`;
}

const alarm = (severity) => (severity ? `${severitySign(severity)}${severity}: ` : "");

/**
 * The gradient on a line; `· sum of 3 edges` where it stands for three, of one layer where it stands for those of several.  Of what is
 * no sum the parts, for they do not add up by their norms.
 */
export function flowWords(model, bundle) {
  const info = model.flowing(bundle);
  const edges = edgesOf(bundle);
  if (info?.most && !info.span && info.state === "finite") return `${number(info.most)} · largest of ${plural(edges, "edge")}`;
  // A line has no room for how many layers it tells of.
  const shape = edges > 1 ? null : shapeOf(shapeText(model, bundle));
  return dotted(told(info?.state === "finite" && info.span ? { ...info, many: info.of } : info, shape), ...moreWords(model, bundle));
}

/** For how many edges a line stands, in each layer. */
const edgesOf = ({ edges, seeds, each }) => Math.round((edges.length + seeds.length) / (each?.length || 1));

/** What is said of a line after its gradient: how many edges it is, and where it goes on if it ends at the border of what is drawn once. */
export function moreWords(model, bundle) {
  const goesOn = isCarried(bundle) ? (isPort(bundle.from) ? "from the round before" : "to the next round") : "";
  const [edges, isSum] = [edgesOf(bundle), model.isSum(bundle)];
  const words = plural(edges, "edge");
  return [edges > 1 ? (isSum ? `sum of ${words}` : `${words} together`) : "", goesOn].filter(Boolean);
}

function shapeText(model, { edges: [edge], seeds: [seed] }) {
  if (edge !== undefined) return model.shape(model.target[edge], model.output[edge]);
  const root = model.data.roots[seed];
  return model.shape(root.node, root.output);
}
