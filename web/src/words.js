// What boxes and lines are called, and what is said of a gradient.  The same words on the canvas, in the panel and in the list.
import { number, plural, shapeOf, shorten, tensor, visible } from "./format.js";
import { IN, OUT } from "./level.js";
import { toldApart } from "./ranks.js";

const FEW = 4;

/** What stands for a gradient: its numbers if they are few, else its norm or its state. */
export function told(info, shape) {
  if (!info) return "";
  if (info.words !== undefined) return info.words;
  if (info.each) return toldApart(info, told);
  if (info.state === "non-finite") return `⚠ ${[info.nan && `${info.nan} NaN`, info.inf && `${info.inf} Inf`].filter(Boolean).join(" ")}`;
  if (info.state === "zero") return "0";
  if (info.state !== "finite") return info.state === "none" ? "no grad" : "not reached";
  if (info.values && info.values.length <= FEW) return tensor(info.values, shape ?? [info.values.length]);
  return info.norm === null ? "?" : number(info.norm);
}

/** `‖g‖ 1.5`, or why there is no number. */
export const sizeWords = (info) => (info?.state === "finite" && info.norm !== null && info.words === undefined ? `‖g‖ ${info.each ? told(info) : number(info.norm)}` : told(info));

/** `∂L/∂y`, as what is given for a root is called. */
export const seedWords = (model, root) => `∂L/∂${shorten(visible(model.data.roots[root].label), 60) || "root"}`;

/** A name may be of any length; what is longer is shown in the middle of a list or sentence by its two ends. */
const LONGEST = 160;
export const inside = (text) => {
  const signs = [...text];
  return signs.length > LONGEST ? `${signs.slice(0, LONGEST / 2).join("")} … ${signs.slice(-LONGEST / 2).join("")}` : text;
};

/** What a node is called by itself: its name, or the user's words for it. */
export const nodeName = (model, node) => inside(visible(model.label(node) || model.title(node)));

/** What the box of a key is called, and an end of a line outside the open group. */
export function endName(model, key) {
  if (key === IN || key === OUT) return "outside";
  const id = Number(key.slice(1));
  if (key[0] === "s") return seedWords(model, id);
  return key[0] === "n" ? nodeName(model, id) : groupWords(model, id).name;
}

/** The name of a group, and how often it repeats. */
export function groupWords(model, group) {
  const { kind, title, type, label, count } = model.group(group);
  const size = plural(model.ops[group], "op");
  if (kind === "repeat") {
    // Of a loop's round the expression made last says most; a repeat of modules has a title of its own.
    const name = type ? repeated(model, group, title, type) : label.split(" → ")[0] || title;
    return { name: inside(visible(name)), times: ` ×${count}`, size };
  }
  return { name: inside(visible(within(model, group, title) || label)), times: "", size };
}

/** What a repeat of modules is called; those that have nothing but numbers for names, as in a Sequential, by their types. */
function repeated(model, group, title, type) {
  const name = title.split(" → ").map((one) => within(model, group, one)).join(" → ");
  if (!isNumbers(name)) return name;
  return isNumbers(title) ? type.replaceAll(" ", " → ") : title;
}

const isNumbers = (name) => /^[*→ ]+$/.test(name);

/** `mlp` rather than `h.11.mlp`, inside `h.11`. */
function within(model, group, title) {
  for (const g of model.around(model.parent[group])) {
    const around = model.group(g);
    if (around.kind === "module" && around.title && title.startsWith(`${around.title}.`)) return title.slice(around.title.length + 1);
  }
  return title;
}

/** A box or line in a few lines, the first of which is its name. */
export function inShort(model, box) {
  const gradient = !model.pass ? "" : box.edges ? sizeWords(model.flowing(box)) : box.seed === undefined ? sizeWords(model.arriving(box)) : told(model.seed(box.seed));
  if (box.edges) return [`${endName(model, box.from)} → ${endName(model, box.to)}`, gradient, plural(box.edges.length + box.seeds.length, "edge")];
  if (box.seed !== undefined) return [seedWords(model, box.seed), gradient];
  if (box.group !== undefined) {
    const { name, times, size } = groupWords(model, box.group);
    const { kind, type } = model.group(box.group);
    return [`${name}${times}`, [kind, visible(type)].filter(Boolean).join(" "), size, gradient].filter(Boolean);
  }
  const origin = model.origin(box.node);
  const names = model.names(box.node).map(visible).map(inside);
  return [names[0] ?? nodeName(model, box.node), model.isLeaf(box.node) ? "leaf" : visible(model.op(box.node)), model.shape(box.node), gradient, origin ? inside(visible(`${origin.file}:${origin.line}`)) : ""].filter(Boolean);
}

/** One sentence on a box or line, for the list and for what is read aloud. */
export function described(model, box) {
  if (box.edges) return `${plural(box.edges.length + box.seeds.length, "edge")} from ${endName(model, box.from)} to ${endName(model, box.to)}${model.pass ? `, gradient ${told(model.flowing(box))}` : ""}`;
  if (box.seed !== undefined) {
    const { node, output } = model.data.roots[box.seed];
    return `given: ${seedWords(model, box.seed)} = ${told(model.seed(box.seed), shapeOf(model.shape(node, output))) || "not known"}`;
  }
  const gradient = model.pass ? `, gradient ${told(model.arriving(box))}` : "";
  if (box.node !== undefined) {
    const kind = model.isLeaf(box.node) ? "leaf" : visible(model.title(box.node));
    return `${alarm(model.troubles.atNode(box.node))}${nodeName(model, box.node)}, ${kind}${gradient}`;
  }
  const { name, times, size } = groupWords(model, box.group);
  return `${alarm(model.troubles.inside(box.group))}${name}${times}, ${size}${gradient}`;
}

const alarm = (severity) => (severity ? `⚠ ${severity}: ` : "");

/** The gradient on a line; `·3` where it stands for three edges. */
export function flowWords(model, bundle) {
  const total = bundle.edges.length + bundle.seeds.length;
  return told(model.flowing(bundle), total > 1 ? null : shapeOf(shapeText(model, bundle))) + (total > 1 ? ` ·${total}` : "");
}

function shapeText(model, { edges: [edge], seeds: [seed] }) {
  if (edge !== undefined) return model.shape(model.target[edge], model.output[edge]);
  const root = model.data.roots[seed];
  return model.shape(root.node, root.output);
}
