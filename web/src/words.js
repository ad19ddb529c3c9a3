// What boxes and lines are called, and what is said of a gradient.  The same words on the canvas, in the panel and in the list.
import { number, plural, shapeOf, tensor, visible } from "./format.js";
import { toldApart } from "./ranks.js";

const FEW = 4;

/** What stands for a gradient: its numbers if they are few, else its norm or its state. */
export function told(info, shape) {
  if (!info) return "";
  if (info.each) return toldApart(info, told);
  if (info.state === "non-finite") return `⚠ ${[info.nan && `${info.nan} NaN`, info.inf && `${info.inf} Inf`].filter(Boolean).join(" ")}`;
  if (info.state === "zero") return "0";
  if (info.state !== "finite") return info.state === "none" ? "no grad" : "not reached";
  if (info.values && info.values.length <= FEW) return tensor(info.values, shape ?? [info.values.length]);
  return info.norm === null ? "?" : number(info.norm);
}

/** `‖g‖ 1.5`, or why there is no number. */
export const sizeWords = (info) => (info?.state === "finite" && info.norm !== null ? `‖g‖ ${info.each ? told(info) : number(info.norm)}` : told(info));

/** `∂L/∂y`, as what is given for a root is called. */
export const seedWords = (model, root) => `∂L/∂${visible(model.data.roots[root].label) || "root"}`;

/** What a node is called by itself: its name, or the user's words for it. */
export const nodeName = (model, node) => visible(model.label(node) || model.title(node));

/** The name of a group, and how often it repeats. */
export function groupWords(model, group) {
  const { kind, title, type, label, count } = model.group(group);
  const size = plural(model.ops[group], "op");
  if (kind === "repeat") {
    // Of a loop's round the expression made last says most; a repeat of modules has a title of its own.
    const name = type ? title : label.split(" → ")[0] || title;
    return { name: visible(name), times: ` ×${count}`, size };
  }
  return { name: visible(within(model, group, title) || label), times: "", size };
}

/** `mlp` rather than `h.11.mlp`, inside `h.11`. */
function within(model, group, title) {
  for (const g of model.around(model.parent[group])) {
    const around = model.group(g);
    if (around.kind === "module" && around.title && title.startsWith(`${around.title}.`)) return title.slice(around.title.length + 1);
  }
  return title;
}

/** One sentence on a box, for the list and for what is read aloud. */
export function described(model, box) {
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
