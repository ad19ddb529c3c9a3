// Draws what is in sight on a canvas.  Knows nothing of events.
import { DOWN, FOOT, stretches, trace } from "./curve.js";
import { dotted } from "./format.js";
import { isBad } from "./gradients.js";
import { isCarried, isPort } from "./level.js";
import { tint } from "./scale.js";
import { LABEL, TITLE, callOf, endsOf, groupMark, hasMeeting, hasStrip, linesOf, stripOf } from "./sizes.js";
import { columnsOf, fillRect, ownScale, strip } from "./strip.js";
import { fitted, widthOf } from "./text.js";
import { severityColor } from "./theme.js";
import { bothWords, boxWords, flowWords, meetingWords, roundName, seedWords, severitySign, sizeWords, told, toldSize, wallWords } from "./words.js";

/** Zoom below which the numbers on lines would only be noise. */
const LABELS_FROM = 0.6;
/** And below which lines have no ends. */
const ENDS_FROM = 0.3;
/** Pixels of the circle at the end of a line that goes on in another round. */
const STOP = 5;
/** Pixels of the thinnest and the thickest ribbon. */
const [THIN, THICK] = [1.5, 11];
/** Pixels of what ribbons become that are one, and of the height of the bar of what is left of them. */
const [WIDE, LEFT] = [56, 5];

/** Colours along a line that stands for many rounds, at most. */
const STRETCHES = 5;
/** The first, the last, and some between. */
const some = (each) => (each.length > STRETCHES ? Array.from({ length: STRETCHES }, (_, i) => each[Math.round((i * (each.length - 1)) / (STRETCHES - 1))]) : each);

export class Painter {
  constructor(canvas, model) {
    this.canvas = canvas;
    this.model = model;
  }

  /** @param {object} scene {drawing, shown: what boxes show, scale: of that, sizes: that of gradients, view: {x, y, zoom}, size, selected, hovered, bar, path, theme, ratio, detail?: instead of ratio for strips, caption?: the scale, of which is said what colours mean} */
  paint(scene) {
    const { canvas } = this;
    canvas.width = Math.round(scene.size.width * scene.ratio);
    canvas.height = Math.round(scene.size.height * scene.ratio);
    this.paintOn(canvas.getContext("2d"), scene);
  }

  /** @param context of a canvas, or what writes the same as SVG (svg_context.js) */
  paintOn(context, scene) {
    const { ratio, size: { width, height }, view: { x, y, zoom } } = scene;
    Object.assign(this, { context, scene });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    fillRect(context, scene.theme.page, 0, 0, width, height);
    context.setTransform(ratio * zoom, 0, 0, ratio * zoom, -x * zoom * ratio, -y * zoom * ratio);
    this.sight = { left: x, top: y, right: x + width / zoom, bottom: y + height / zoom };
    const boxes = scene.drawing.boxes.filter((box) => this._inSight(box));
    const bundles = scene.drawing.bundles.filter((bundle) => this._inSight(bundle.extent));
    for (const box of boxes) if (box.open) this._frame(box);
    // Lines that come to what is open go on inside.
    const coming = new Map(boxes.filter((box) => !box.open && box.wall === undefined && zoom > ENDS_FROM).map((box) => [box.key, { box, lines: [] }]));
    for (const bundle of bundles) {
      coming.get(bundle.to)?.lines.push(bundle);
      this._line(bundle, coming.has(bundle.to) ? FOOT : 0);
    }
    for (const { box, lines } of coming.values()) if (lines.length) this._ends(box, lines);
    context.globalAlpha = 1;
    for (const box of boxes) if (box.open) this._heading(box);
    for (const box of boxes) if (!box.open) this._box(box);
    if (zoom >= LABELS_FROM) for (const bundle of bundles) this._label(bundle);
    context.globalAlpha = 1;
    if (scene.caption) this._caption(scene.caption, ratio, height);
  }

  /** A picture has no legend beside it. */
  _caption({ words, steps }, ratio, height) {
    const { theme } = this.scene;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const ramp = words && steps ? steps : [];
    ramp.forEach((color, i) => {
      fillRect(this.context, color, 8 + 10 * i, height - 17, 10, 10);
    });
    this._text(words, 8 + (ramp.length && 10 * ramp.length + 6), height - 12, { color: theme.ink, halo: theme.page, isFixed: true });
  }

  _inSight({ x, y, width, height }) {
    const { left, top, right, bottom } = this.sight;
    return x + width >= left && x <= right && y + height >= top && y <= bottom;
  }

  /** Text with its middle at a height; what is too small to be read is left out. */
  _text(words, x, y, { color, face = LABEL, align = "left", halo = null, isFixed = false }) {
    if (this.scene.view.zoom * 11 < 4 && !isFixed) return;
    const { context } = this;
    context.font = face;
    context.textAlign = align;
    context.textBaseline = "middle";
    if (halo) {
      context.lineWidth = 4;
      context.lineJoin = "round";
      context.strokeStyle = halo;
      context.strokeText(words, x, y);
    }
    context.fillStyle = color;
    context.fillText(words, x, y);
  }

  _outline(x, y, width, height, radius) {
    this.context.beginPath();
    this.context.roundRect(x, y, width, height, radius);
  }

  // ------------------------------------------------------------------ open groups

  _frame(box) {
    const { context, scene } = this;
    const chosen = box.key === scene.selected;
    this._outline(box.x, box.y, box.width, box.height, 7);
    context.fillStyle = scene.theme.tints[box.depth % 2];
    context.fill();
    context.lineWidth = chosen ? 2.5 : 1;
    context.strokeStyle = chosen ? scene.theme.path : box.key === scene.hovered ? scene.theme.border : scene.theme.frame;
    context.stroke();
  }

  _heading(box) {
    const { model, scene } = this;
    const { theme } = scene;
    const { name, type, times, size } = boxWords(model, box);
    const [badge, mark] = [model.troubles.at(box), groupMark(model, box).trim()];
    const below = stripOf(model, box);
    // A line that comes in goes on below the words, and below a strip.
    const ground = (x, width, height) => fillRect(this.context, theme.tints[box.depth % 2], x, box.y + 4, width, height);
    const sign = `▾ ${severitySign(badge)}`;
    const room = box.width - 18 - widthOf(`${sign}${times}`, TITLE);
    const title = `${sign}${fitted(name, TITLE, room)}${times}`;
    const named = widthOf(title, TITLE) + 6;
    const kind = type && named < room ? fitted(type, LABEL, room - named) : "";
    const marked = named + (kind ? widthOf(kind, LABEL) + 4 : 0);
    const used = marked + widthOf(mark, TITLE);
    ground(box.x + 5, below ? box.width - 10 : used + 8, below ? below.y + below.height - 2 : 17);
    const color = badge ? severityColor(badge, theme) : theme.ink;
    this._text(title, box.x + 9, box.y + 13, { color, face: TITLE });
    this._text(mark, box.x + 9 + marked, box.y + 13, { color, face: TITLE });
    this._text(kind, box.x + 9 + named, box.y + 13, { color: theme.faint, face: LABEL });
    if (below) {
      this._strip(box);
      endsOf(model, box).forEach((words, i) => this._text(words, box.x + (i ? box.width - 10 : 10), box.y + below.y + below.height / 2, { color: theme.faint, align: i ? "right" : "left" }));
    }
    // Bars of which all are long, or all short, are told apart by their range.
    const all = dotted(box.bars && sizeWords(scene.shown.of(box)), size);
    const words = [all, size].find((one) => used + widthOf(one, LABEL) < box.width - 30);
    if (!words) return;
    if (!below) ground(box.x + box.width - widthOf(words, LABEL) - 13, widthOf(words, LABEL) + 8, 17);
    this._text(words, box.x + box.width - 9, box.y + 13, { color: theme.faint, face: LABEL, align: "right" });
  }

  // ------------------------------------------------------------------ closed boxes

  _box(box) {
    const { scene, context } = this;
    const { theme } = scene;
    context.globalAlpha = scene.path && !scene.path.boxes.has(box.key) ? 0.35 : 1;
    if (box.wall !== undefined) this._wall(box);
    else if (box.seed !== undefined) this._seed(box);
    else if (box.group === undefined) this._node(box);
    else this._group(box);
    const chosen = box.key === scene.selected;
    if (chosen || box.key === scene.hovered) {
      this._outline(box.x - 3, box.y - 3, box.width + 6, box.height + 6, 9);
      context.lineWidth = chosen ? 2 : 1;
      context.strokeStyle = chosen ? theme.path : theme.ink;
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  _seed(box) {
    const { theme } = this.scene;
    this._text(seedWords(this.model, box.seed), box.x + box.width / 2, box.y + box.height / 2, { color: theme.faint, align: "center" });
  }

  /** A line at which the way ends, hatched below as what stands firm, and what made it. */
  _wall({ x, y, width, height, wall }) {
    const { context, scene: { theme }, model } = this;
    context.strokeStyle = theme.ink;
    context.beginPath();
    for (let at = x + 6; at <= x + width; at += 6) {
      context.moveTo(at, y);
      context.lineTo(at - 6, y + 6);
    }
    context.lineWidth = 0.75;
    context.stroke();
    fillRect(context, theme.ink, x, y - 1, width, 2.5);
    this._text(wallWords(model, wall), x + width / 2, y + height - 7, { color: theme.ink, align: "center" });
  }

  _group(box) {
    const { context, scene, model } = this;
    const { theme } = scene;
    const info = model.arriving(box);
    for (const shift of [3, 0]) {
      this._outline(box.x + shift, box.y + shift, box.width, box.height, 6);
      context.fillStyle = theme.card;
      context.fill();
      this._border(box, info, 1.2, model.ops[box.group] ? theme.border : theme.leaf);
    }
    this._groupTitle(box);
    if (hasMeeting(model, box)) this._meeting(box, box.y + box.height - 10, box.x + 10, "left");
    const shown = scene.shown.of(box);
    if (!shown) return;
    if (hasStrip(model, box)) return this._rounds(box, shown);
    const value = fitted(toldSize(shown), LABEL, 110);
    const color = isBad(shown) ? theme.bad : theme.ink;
    const below = box.y + callOf(model, box).height;
    this._text(value, box.x + box.width - 10, below + 31, { color, align: "right" });
    this._bar(shown, { x: box.x + 10, y: below + 27, width: box.width - 28 - Math.max(widthOf(value, LABEL), 46), height: 8 });
  }

  _groupTitle(box) {
    const { scene, model } = this;
    const { theme } = scene;
    const { name, type, called, times, size } = boxWords(model, box);
    const [badge, mark] = [model.troubles.at(box), groupMark(model, box)];
    const color = badge ? severityColor(badge, theme) : theme.ink;
    this._text(severitySign(badge).trim() || "▸", box.x + 9, box.y + 14, { color, face: TITLE });
    const below = stripOf(model, box);
    this._text(size, box.x + box.width - 9, box.y + (below ? below.y + below.height + 11 : 14), { color: theme.faint, face: LABEL, align: "right" });
    const room = box.width - 34 - widthOf(times + mark, TITLE) - (below ? 0 : widthOf(size, LABEL) + 6);
    // Modules differ at their ends, expressions at their beginnings.
    const title = fitted(name, TITLE, room, model.group(box.group).kind === "module");
    this._text(`${title}${times}`, box.x + 23, box.y + 14, { color, face: TITLE });
    const used = widthOf(`${title}${times}`, TITLE) + 6;
    const kind = type && used < room ? fitted(type, LABEL, room - used) : "";
    this._text(kind, box.x + 23 + used, box.y + 14, { color: theme.faint, face: LABEL });
    // No blank may stand at the end of a text: in an SVG it would be lost.
    this._text(mark.trim(), box.x + 27 + (kind ? used + widthOf(kind, LABEL) : used - 6), box.y + 14, { color, face: TITLE });
    this._text(fitted(called, LABEL, box.width - 20), box.x + 10, box.y + 28, { color: theme.teal, face: LABEL });
  }

  _bar(info, { x, y, width, height }) {
    const { context, scene } = this;
    fillRect(context, scene.theme.track, x, y, width, height);
    const share = scene.scale.share(info.norm);
    if (share === null) return;
    fillRect(context, scene.theme.size ?? scene.scale.color(info.norm), x, y, Math.max(width * share, 2), height);
    context.strokeStyle = scene.theme.border;
    context.lineWidth = 0.5;
    context.strokeRect(x, y, Math.max(width * share, 2), height);
  }

  /** The norms of all rounds, and what enters the first and the last, or what stands for several. */
  _rounds(box, shown) {
    const { theme } = this.scene;
    const rounds = this._strip(box);
    const last = rounds.findLastIndex((info) => info?.state !== "zero") + 1;
    const from = last && last < rounds.length ? ` from ${roundName(this.model, this.model.barOf(box, last))}` : "";
    const words = box.bars ? sizeWords(shown) : [rounds[0], rounds.at(-1)].map(toldSize).filter(Boolean).join(" … ") + from;
    const color = rounds.some(isBad) ? theme.bad : theme.ink;
    const { y, height } = stripOf(this.model, box);
    this._text(fitted(words, LABEL, box.width - 80), box.x + 10, box.y + y + height + 11, { color, face: LABEL });
  }

  /** Pixels of the screen, or of a picture, for one of the drawing's. */
  get _fine() {
    const { detail, ratio, view } = this.scene;
    return (detail ?? ratio) * view.zoom;
  }

  /** The strip of a box: what enters each of its rounds, or of the places that it stands for, in each call. */
  _strip(box) {
    const { context, scene, model } = this;
    const { scale, sizes, theme, shown } = scene;
    const grid = shown.grid(box);
    const { x, y, width, height } = stripOf(model, box);
    const now = model.passNumber;
    const shownAt = box.picked === null || box.picked === undefined ? null : { number: box.picked, pass: now };
    const mark = (scene.hovered === box.key && scene.bar) || shownAt;
    strip(context, grid, { x: box.x + x, y: box.y + y, width, height }, { scale, heights: scale === sizes && !model.isSpread ? ownScale(grid) : scale, theme, mark, now, isPair: model.isPair, fine: this._fine });
    return grid[now] ?? grid[0];
  }

  /** What is said of gradients that meet in a box; of what stands for several above the share of each that came through a skip. */
  _meeting(box, y, x, align) {
    const { context, model, scene: { theme } } = this;
    const { skip, cancelled } = model.meeting(box.bars ? { ...box, each: box.bars } : box);
    const lost = cancelled.some((share) => share !== undefined);
    this._text(fitted(meetingWords(model, box), LABEL, box.width - 20), x, y, { color: lost ? theme.teal : theme.faint, face: LABEL, align });
    if (box.group !== undefined || !box.bars || !skip.some((share) => share !== undefined)) return;
    const columns = columnsOf(skip.length, box.width - 28, this._fine);
    const wide = (box.width - 28) / columns;
    for (let i = 0; i < columns; i++) {
      const share = skip[Math.floor((i * skip.length) / columns)];
      if (share === undefined) continue;
      for (const [part, strength] of [[1, 0.2], [share, 0.6]]) {
        fillRect(context, tint(theme.teal, theme.card, strength), box.x + 14 + i * wide, y + 14 - 7 * part, wide - (wide > 3 ? 1 : 0), 7 * part);
      }
    }
  }

  /** The border says the state: magenta where not finite, thick where that or another fault is made, dashed where no number flows. */
  _border(box, info, width, color) {
    const { context, scene, model } = this;
    const [bad, badge] = [isBad(info), model.troubles.at(box)];
    context.setLineDash(info && !bad && info.state !== "finite" ? [4, 3] : []);
    context.lineWidth = badge ? 4 : bad ? 2 : width;
    context.strokeStyle = badge ? severityColor(badge, scene.theme) : bad ? scene.theme.bad : color;
    context.stroke();
    context.setLineDash([]);
  }

  _node(box) {
    const { context, scene, model } = this;
    const { theme, scale } = scene;
    const leaf = model.isLeaf(box.node);
    const root = model.rootNodes.has(box.node);
    const info = model.arriving(box);
    const shown = scene.shown.of(box);
    const color = shown?.state === "finite" ? scene.theme.size ?? scale.color(shown.norm) : null;
    const radius = leaf ? Math.min(box.height / 2, 19) : root ? 0 : 4;
    this._outline(box.x, box.y, box.width, box.height, radius);
    context.fillStyle = color ? tint(color, theme.card, theme.tint) : theme.card;
    context.fill();
    if (color) {
      context.save();
      context.clip();
      this._gauge(box, leaf ? 11 : 7, color, scale.share(shown.norm));
      context.restore();
      this._outline(box.x, box.y, box.width, box.height, radius);
    }
    this._border(box, info, root ? 2.4 : leaf ? 1.6 : 1.1, leaf ? theme.leaf : theme.border);
    this._lines(box, shown);
  }

  /** The colours of the smallest and the largest are equally dark: the height says which it is where there is no colour. */
  _gauge(box, width, color, share) {
    const { context, scene } = this;
    const top = box.y + box.height * (1 - Math.max(share ?? 0, 0.06));
    fillRect(context, scene.theme.track, box.x, box.y, width, box.height);
    fillRect(context, color, box.x, top, width, box.y + box.height - top);
    fillRect(context, scene.theme.border, box.x, top - 1, width, 1);
  }

  _lines(box, info) {
    const { scene, model } = this;
    const { theme } = scene;
    const { title, label, shape } = linesOf(model, box);
    const badge = model.troubles.at(box);
    const [middle, room] = [box.x + box.width / 2, box.width - 20];
    const line = (words, y, face, color, keepEnd = false) => this._text(fitted(words, face, room, keepEnd), middle, y, { color, face, align: "center" });
    line(`${severitySign(badge)}${title}`, box.y + 13, TITLE, badge ? severityColor(badge, theme) : theme.ink, model.isLeaf(box.node));
    if (label) line(label, box.y + 27, LABEL, theme.teal);
    if (box.bars) this._strip(box);
    if (hasMeeting(model, box)) this._meeting(box, box.y + (label ? 55 : 41), middle, "center");
    const size = sizeWords(info);
    const isOfBoth = model.isPair && !box.bars && !/^only/.test(size);
    const both = (isOfBoth ? [bothWords(model, box), info?.words] : [shape, size]).filter(Boolean).join("   ");
    line(box.bars && widthOf(both, LABEL) > room ? size : both, box.y + (label ? 41 : 27), LABEL, isBad(info) ? theme.bad : theme.faint);
  }

  // ------------------------------------------------------------------ lines

  /** How a line looks: its width tells of the size, and its colour where colours mean that; thin where there is no size, dashed where nothing flows. */
  _look(bundle) {
    const { scene, model } = this;
    const { theme, sizes, scale, path, hovered } = scene;
    const info = model.flowing(bundle);
    const chosen = isOn(path, bundle) || bundle.key === scene.selected;
    const bad = isBad(info);
    const share = info ? sizes.share(info.norm) : null;
    const { color: alone } = scene.shown.onLine(bundle) ?? {};
    const edge = chosen ? theme.path : bad ? theme.bad : hovered !== null && [bundle.key, bundle.from, bundle.to].includes(hovered) ? theme.ink : (alone ?? theme.line);
    const colored = (one) => (scale === sizes ? sizes.color(one?.norm ?? null) : theme.line);
    const filled = (one) => (chosen || bad || alone ? edge : theme.size || !colored(one) ? theme.page : tint(colored(one), theme.frame, 0.65));
    const fills = some(bundle.each ?? []).map((one) => filled(model.flowing(one)));
    return {
      info, edge, fills,
      width: share === null ? (bad || alone ? 3 : 1) : THIN + (THICK - THIN) * share,
      fill: filled(info),
      tip: fills.at(-1) ?? filled(info),
      dash: bundle.wall !== undefined || (info && share === null && !bad && !alone) ? [5, 4] : [],
      alpha: path && !chosen ? 0.35 : 1,
    };
  }

  _line(bundle, short) {
    const { context } = this;
    const { width, edge, fill, fills, dash, alpha } = this._look(bundle);
    context.globalAlpha = alpha;
    context.setLineDash(dash);
    context.beginPath();
    trace(context, bundle.points, short);
    for (const [color, wide] of [[edge, width], [fill, width - 1.5]]) {
      if (wide < 1 && color !== edge) continue;
      context.strokeStyle = color;
      context.lineWidth = wide;
      context.stroke();
    }
    context.setLineDash([]);
    // What stands for many rounds has the colours of some of them, one after the other.
    if (new Set(fills).size > 1) stretches(bundle.points, short, fills.length).forEach((places, i) => this._stretch(places, fills[i]));
    if (isCarried(bundle)) this._stop(isPort(bundle.from) ? bundle.points[0] : bundle.points.at(-1), edge);
  }

  _stretch([first, ...others], color) {
    const { context } = this;
    context.beginPath();
    context.moveTo(first.x, first.y);
    for (const { x, y } of others) context.lineTo(x, y);
    context.strokeStyle = color;
    context.stroke();
  }

  /** A line from round to round ends at the border: nothing outside is meant. */
  _stop({ x, y }, edge) {
    const { context, scene: { theme } } = this;
    this._outline(x - STOP, y - STOP, 2 * STOP, 2 * STOP, STOP);
    Object.assign(context, { fillStyle: theme.card, strokeStyle: edge, lineWidth: 1.5 });
    context.fill();
    context.stroke();
  }

  /** The ends of the lines that come to a box: arrows, or where gradients are added one foot. */
  _ends(box, bundles) {
    const ends = bundles.map((bundle) => ({ ...this._look(bundle), at: bundle.points.at(-1), bundle })).sort((a, b) => a.at.x - b.at.x);
    if (!ends.some(({ at }) => at.way) && this.model.isAdded(box, bundles)) return this._foot(box, ends);
    for (const { at: { x, y, way = DOWN }, width, edge, tip: fill, alpha } of ends) {
      const half = Math.max(3.5, width / 2 + 2);
      const side = (by) => [x - FOOT * way.x + by * way.y, y - FOOT * way.y + by * way.x];
      this._shape([side(-half), side(half), [x, y]], { edge, alpha, fill: width < 3 ? edge : fill });
    }
  }

  /** What comes along each ribbon has its share of Σ‖gᵢ‖; of what cancels a bar shows what is left. */
  _foot(box, ends) {
    const { context, model, scene: { theme } } = this;
    const { skip, cancelled } = model.meeting(box);
    const share = Math.max(...cancelled.filter(Boolean), 0);
    const skipped = skip.filter(Boolean).sort()[skip.filter(Boolean).length >> 1];
    const wide = Math.min(WIDE, box.width - 24);
    const [left, y] = [box.x + (box.width - wide) / 2, box.y - (share ? LEFT : 0)];
    // A single line may be of both a skip and what was added to it.
    const parts = ends.length > 1 || !skipped ? ends.map((end) => [end, Number(end.info?.norm ?? 0), 0, 1]) : [[ends[0], skipped, 0, skipped], [ends[0], 1 - skipped, skipped, 1]];
    const sum = parts.reduce((all, [, size]) => all + size, 0);
    let x = left;
    for (const [{ at, width, edge, tip: fill, alpha }, size, from, to] of parts) {
      const here = sum > 0 && sum < Infinity ? (wide * size) / sum : wide / parts.length;
      const top = at.x - width / 2;
      this._shape([[top + from * width, box.y - FOOT], [top + to * width, box.y - FOOT], [x + here, y], [x, y]], { edge, fill, alpha });
      x += here;
    }
    if (!share) return;
    context.fillStyle = context.strokeStyle = theme.teal;
    context.lineWidth = 1;
    context.fillRect(left, y, Math.max(wide * (1 - share), 1.5), LEFT);
    context.strokeRect(left, y, wide, LEFT);
  }

  _shape([[x, y], ...others], { edge, fill, alpha }) {
    const { context } = this;
    context.globalAlpha = alpha;
    context.beginPath();
    context.moveTo(x, y);
    for (const to of others) context.lineTo(...to);
    context.closePath();
    Object.assign(context, { fillStyle: fill, strokeStyle: edge, lineWidth: 0.75 });
    context.fill();
    context.stroke();
  }

  _label(bundle) {
    const { context, scene, model } = this;
    if (!bundle.label || !model.pass) return;
    const { theme, path } = scene;
    context.globalAlpha = path && !isOn(path, bundle) ? 0.35 : 1;
    const { info } = this._look(bundle);
    const bad = isBad(info);
    const { x, y, isLeft } = bundle.label;
    this._text(told(scene.shown.onLine(bundle)) || flowWords(model, bundle), x, y, { color: bad ? theme.bad : theme.faint, face: LABEL, halo: theme.page, align: isLeft ? "right" : "left" });
  }
}

const isOn = (path, bundle) => path !== null && bundle.edges.some((edge) => path.edges.has(edge));
