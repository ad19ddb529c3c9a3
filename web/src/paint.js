// Draws what is in sight on a canvas.  Knows nothing of events.
import { number, plural, shorten, tensor, shapeOf, visible } from "./format.js";
import { MAGENTA, tint } from "./scale.js";

const FONT = "system-ui, sans-serif";
const VIOLET = "#6d28d9";
const FEW = 4;

export const LIGHT = {
  ground: "#ffffff", page: "#fbfbfc", card: "#ffffff", tints: ["#f1f3f6", "#fafbfc"], ink: "#16181d", faint: "#5b6472",
  teal: "#0f6b8f", line: "#8b95a3", border: "#4a5565", frame: "#ccd3dc", leaf: "#2f7d4f", path: VIOLET, bad: MAGENTA,
  warning: "#b45309", step: 0.55,
};
export const DARK = {
  ground: "#14171c", page: "#101317", card: "#1d222a", tints: ["#191d24", "#20252d"], ink: "#eceff3", faint: "#a3adba",
  teal: "#63c5e8", line: "#6d7887", border: "#8a95a5", frame: "#39414d", leaf: "#62c48c", path: "#b794f6", bad: "#ff6aa2",
  warning: "#f0a94b", step: 0.6,
};

const measuring = document.createElement("canvas").getContext("2d");
function widthOf(text, font) {
  measuring.font = font;
  return measuring.measureText(text).width;
}

/** The lines of a node's box: its name, the user's words, its size. */
export function linesOf(model, node) {
  const title = shorten(visible(model.title(node)), 34, model.isLeaf(node));
  const label = shorten(visible(model.label(node)), 40);
  const shape = model.shape(node).replace(/ float32$/, "");
  return { title, label, shape };
}

export function sizeOf(model) {
  return ({ node }) => {
    const { title, label, shape } = linesOf(model, node);
    const width = Math.max(widthOf(title, `600 12px ${FONT}`), widthOf(label, `11px ${FONT}`), widthOf(`${shape}   ‖g‖ 0.0001234`, `10px ${FONT}`));
    return { width: Math.ceil(Math.min(width, 300)) + 22, height: label ? 52 : 38 };
  };
}

/** What stands for a gradient beside a line: its numbers if they are few, else its norm or its state. */
export function told(info, shape) {
  if (!info) return "";
  if (info.state === "non-finite") return `⚠ ${[info.nan && `${info.nan} NaN`, info.inf && `${info.inf} Inf`].filter(Boolean).join(" ")}`;
  if (info.state === "zero") return "0";
  if (info.state !== "finite") return info.state === "none" ? "no grad" : "not reached";
  if (info.values && info.values.length <= FEW) return tensor(info.values, shape ?? [info.values.length]);
  return info.norm === null ? "?" : number(info.norm);
}

export class Painter {
  constructor(canvas, model) {
    this.canvas = canvas;
    this.model = model;
    this.context = canvas.getContext("2d");
  }

  /** @param {object} scene {drawing, scale, view: {x, y, zoom}, selected, path, theme} */
  paint(scene) {
    const { canvas, context } = this;
    const ratio = scene.ratio ?? window.devicePixelRatio ?? 1;
    const { width, height } = scene.size;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = scene.theme.page;
    context.fillRect(0, 0, width, height);
    const { x, y, zoom } = scene.view;
    context.setTransform(ratio * zoom, 0, 0, ratio * zoom, -x * zoom * ratio, -y * zoom * ratio);
    this.scene = scene;
    this.sight = { left: x, top: y, right: x + width / zoom, bottom: y + height / zoom };
    const seen = scene.drawing.boxes.filter((box) => this._inSight(box));
    for (const box of seen) if (box.open) this._frame(box);
    for (const bundle of scene.drawing.bundles) this._line(bundle);
    for (const box of seen) if (!box.open) this._box(box);
  }

  _inSight({ x, y, width, height }) {
    const { left, top, right, bottom } = this.sight;
    return x + width >= left && x <= right && y + height >= top && y <= bottom;
  }

  _text(words, x, y, { color, size = 12, weight = 400, align = "left", most } = {}) {
    if (this.scene.view.zoom * size < 4) return;
    const { context } = this;
    context.font = `${weight} ${size}px ${FONT}`;
    context.fillStyle = color;
    context.textAlign = align;
    context.textBaseline = "middle";
    context.fillText(words, x, y, most);
  }

  _outline(x, y, width, height, radius) {
    this.context.beginPath();
    this.context.roundRect(x, y, width, height, radius);
  }

  _frame(box) {
    const { context, scene, model } = this;
    const { theme } = scene;
    this._outline(box.x, box.y, box.width, box.height, 7);
    context.fillStyle = theme.tints[box.depth % 2];
    context.fill();
    context.lineWidth = box.key === scene.selected ? 2.5 : 1;
    context.strokeStyle = box.key === scene.selected ? theme.path : theme.frame;
    context.stroke();
    const { title, count } = groupWords(model, box.group);
    this._text(`▾ ${title}`, box.x + 9, box.y + 13, { color: theme.ink, size: 11, weight: 600 });
    const after = widthOf(`▾ ${title}`, `600 11px ${FONT}`);
    this._text(count, box.x + 16 + after, box.y + 13, { color: theme.faint, size: 10 });
  }

  _box(box) {
    const { scene } = this;
    const { theme } = scene;
    const faded = scene.path && !scene.path.boxes.has(box.key);
    this.context.globalAlpha = faded ? 0.35 : 1;
    if (box.group === undefined) this._node(box);
    else this._group(box);
    if (box.key === scene.selected) {
      this._outline(box.x - 3, box.y - 3, box.width + 6, box.height + 6, 9);
      this.context.lineWidth = 2;
      this.context.strokeStyle = theme.path;
      this.context.stroke();
    }
    this.context.globalAlpha = 1;
  }

  _group(box) {
    const { context, scene, model } = this;
    const { theme, scale } = scene;
    const info = model.entering(box.group);
    for (const shift of [3, 0]) {
      this._outline(box.x + shift, box.y + shift, box.width, box.height, 6);
      context.fillStyle = theme.card;
      context.fill();
      this._edge(info, scene, 1.2);
    }
    const { title, count } = groupWords(model, box.group);
    const badge = model.severity(model.inside(box.group));
    const sign = badge ? "⚠ " : "▸ ";
    this._text(sign, box.x + 9, box.y + 14, { color: badge ? severityColor(badge, theme) : theme.ink, size: 11, weight: 600 });
    this._text(shorten(title, 18, true), box.x + 22, box.y + 14, { color: theme.ink, size: 12, weight: 600, most: box.width - 78 });
    this._text(count, box.x + box.width - 9, box.y + 14, { color: theme.faint, size: 10, align: "right" });
    if (!info) return;
    const share = scale.share(info.norm);
    const bar = { x: box.x + 10, y: box.y + 27, width: box.width - 78, height: 8 };
    context.fillStyle = theme.tints[0];
    context.fillRect(bar.x, bar.y, bar.width, bar.height);
    if (share !== null) {
      context.fillStyle = scale.color(info.norm);
      context.fillRect(bar.x, bar.y, Math.max(bar.width * share, 2), bar.height);
    }
    const color = info.state === "non-finite" ? theme.bad : theme.ink;
    this._text(told(info), box.x + box.width - 9, box.y + 31, { color, size: 11, align: "right" });
  }

  /** The border says the state: magenta where not finite, dashed where no number flows. */
  _edge(info, scene, width, color = scene.theme.border) {
    const { context } = this;
    const bad = info?.state === "non-finite";
    context.setLineDash(info && !bad && info.state !== "finite" ? [4, 3] : []);
    context.lineWidth = bad ? 3 : width;
    context.strokeStyle = bad ? scene.theme.bad : color;
    context.stroke();
    context.setLineDash([]);
  }

  _node(box) {
    const { context, scene, model } = this;
    const { theme, scale } = scene;
    const leaf = model.isLeaf(box.node);
    const root = model.rootNodes.has(box.node);
    const info = model.upstream(box.node);
    this._outline(box.x, box.y, box.width, box.height, leaf ? box.height / 2 : root ? 0 : 4);
    const color = info?.state === "finite" ? scale.color(info.norm) : null;
    context.fillStyle = color ? tint(color, theme.card, theme.step * 0.6) : theme.card;
    context.fill();
    this._edge(info, scene, root ? 2.4 : 1.1, leaf ? theme.leaf : theme.border);
    if (color && !leaf) {
      context.fillStyle = color;
      context.fillRect(box.x, box.y + 1, 4, box.height - 2);
    }
    const { title, label, shape } = linesOf(model, box.node);
    const middle = box.x + box.width / 2;
    const badge = model.severity([box.node]);
    const most = box.width - 16;
    this._text(`${badge ? "⚠ " : ""}${title}`, middle, box.y + 13, {
      color: badge ? severityColor(badge, theme) : theme.ink, weight: 600, align: "center", most,
    });
    if (label) this._text(label, middle, box.y + 27, { color: theme.teal, size: 11, align: "center", most });
    const size = info && info.norm !== null ? `‖g‖ ${number(info.norm)}` : info ? told(info) : "";
    this._text([shape, size].filter(Boolean).join("   "), middle, box.y + box.height - 11, {
      color: info?.state === "non-finite" ? theme.bad : theme.faint, size: 10, align: "center", most,
    });
  }

  _line(bundle) {
    const { context, scene, model } = this;
    const { theme, scale, path } = scene;
    const points = bundle.points;
    const box = around(points);
    if (!this._inSight(box)) return;
    const info = model.flowing(bundle.edges);
    const chosen = path && bundle.edges.some((edge) => path.edges.has(edge));
    context.globalAlpha = path && !chosen ? 0.35 : 1;
    const bad = info?.state === "non-finite";
    const share = info ? scale.share(info.norm) : null;
    context.strokeStyle = chosen ? theme.path : bad ? theme.bad : theme.line;
    context.fillStyle = context.strokeStyle;
    context.lineWidth = (share === null ? 1 : 1 + 3 * share) * (chosen ? 1.5 : 1);
    context.setLineDash(info && share === null && !bad ? [5, 4] : []);
    context.beginPath();
    curve(context, points);
    context.stroke();
    context.setLineDash([]);
    if (bundle.to !== "out" && scene.view.zoom > 0.3) arrow(context, points);
    if (info && bundle.label && scene.view.zoom >= 0.75) this._label(bundle, bad);
    context.globalAlpha = 1;
  }

  _label(bundle, bad) {
    const { context, scene, model } = this;
    const words = flowWords(model, bundle);
    const { x, y } = bundle.label;
    context.font = `10px ${FONT}`;
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.strokeStyle = scene.theme.page;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.strokeText(words, x, y);
    this._text(words, x, y, { color: bad ? scene.theme.bad : scene.theme.faint, size: 10 });
  }
}

/** The gradient on a line; `·3` where it stands for three edges. */
function flowWords(model, bundle) {
  const info = model.flowing(bundle.edges);
  const [edge, ...more] = bundle.edges;
  const shape = more.length ? null : shapeOf(model.shape(model.target[edge], model.output[edge]));
  return told(info, shape) + (more.length ? ` ·${more.length + 1}` : "");
}

export const labelOf = (model) => (bundle) => Math.ceil(widthOf(flowWords(model, bundle), `10px ${FONT}`));

export function groupWords(model, group) {
  const { kind, title, type, label, count } = model.group(group);
  const name = visible(kind === "repeat" ? `${label && !type ? label : title} ×${count}` : title || label);
  return { title: name, count: plural(model.ops[group], "op") };
}

const severityColor = (severity, theme) => ({ error: theme.bad, warning: theme.warning, information: theme.teal })[severity];

function around(points) {
  const xs = points.map((p) => p.x);
  const ys = points.map((p) => p.y);
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x: x - 4, y: y - 4, width: Math.max(...xs) - x + 8, height: Math.max(...ys) - y + 8 };
}

/** Through the middles between points, so that corners are round. */
function curve(context, points) {
  context.moveTo(points[0].x, points[0].y);
  for (let i = 1; i < points.length - 1; i++) {
    const middle = { x: (points[i].x + points[i + 1].x) / 2, y: (points[i].y + points[i + 1].y) / 2 };
    context.quadraticCurveTo(points[i].x, points[i].y, middle.x, middle.y);
  }
  const last = points[points.length - 1];
  context.lineTo(last.x, last.y);
}

function arrow(context, points) {
  const [before, end] = points.slice(-2);
  const angle = Math.atan2(end.y - before.y, end.x - before.x);
  context.beginPath();
  context.moveTo(end.x, end.y);
  for (const turn of [-0.42, 0.42]) context.lineTo(end.x - 8 * Math.cos(angle + turn), end.y - 8 * Math.sin(angle + turn));
  context.closePath();
  context.fill();
}
