// The program's own source beside the graph: at each line the gradient that arrives at what it made.
import { append } from "./bucket.js";
import { element, faint, hear, span } from "./element.js";
import { leavesOf, number, shorten, visible } from "./format.js";
import { isBad } from "./gradients.js";
import { font, widthOf } from "./text.js";
import { ofLeaves } from "./trouble.js";
import { CUT, inside, severitySign, told, toldSize } from "./words.js";

const FLOW = font(11);
/** Pixels of the numbers beside the code. */
const [LEAST, WIDEST] = [60, 150];
const HEAD = /^\s*(async +)?def /;
/** Blanks before a line below which what does not fit beside it goes on. */
const DEEPEST = 8;
/** Colours of a strip that fit below a number, leaves that are named at a line, and signs of a name and of a short one. */
const [CELLS, NAMED, NAME, SHORT] = [24, 6, 34, 20];
/** A window that has room for it beside the graph and the facts. */
const ROOM = "(min-width: 1160px)";
/** More lines would only be slow. */
const MOST = 2000;

/** What a leaf gets; of a single number that number, for its sign tells which of several uses pull against each other. */
const toldLeaf = (info) => told(info && { ...info, values: info.values?.length === 1 ? info.values : null });

export class Code {
  constructor(viewer) {
    this.viewer = viewer;
    this.model = viewer.model;
    this.lines = null;
    this.at = new Map();
    this.guilts = new Map();
    const hidden = this.isThere ? null : "";
    // Until it is asked for or sent away it is there where there is room.
    this.element = element("div", { class: "code auto", role: "group", "aria-label": "The program, line by line", hidden });
    this.button = element("button", { text: "Code", hidden, title: "the program beside the graph (S)", on: { click: () => this.toggle() } });
    this._press();
    hear(matchMedia(ROOM), "change", () => this._press());
  }

  /** Whether there is a line that made something. */
  get isThere() {
    return this.model.data.listing.some(([, , rows]) => rows.some((row) => row?.[2].length));
  }

  get isShown() {
    const { hidden, classList } = this.element;
    return !hidden && (!classList.contains("auto") || matchMedia(ROOM).matches);
  }

  toggle() {
    this.element.hidden = this.isShown || !this.isThere;
    this.element.classList.remove("auto");
    this._press();
  }

  _press() {
    this.button.ariaPressed = this.isShown;
    this.show();
  }

  // ------------------------------------------------------------------ lines

  _build() {
    this.lines = [];
    for (const [i, one] of this.model.data.listing.entries()) if (this.lines.length < MOST) this.element.append(...this._function(one, i));
  }

  _function([file, name, rows], i) {
    const { strings, data } = this.model;
    const names = [strings[file].split(/[\\/]/).at(-1), strings[name]].filter((word) => word && word !== "<module>");
    const found = data.findings.filter(({ location }) => location?.file === strings[file]);
    const most = rows.slice(0, MOST);
    const known = most.filter(Boolean).map(([, text]) => strings[text]).filter((text) => text.trim());
    const ins = known.map((text) => text.search(/\S/));
    // The head of a function may stand as far left as its body.
    const margin = Math.min(...(HEAD.test(known[0]) && ins.length > 1 ? ins.slice(1) : ins));
    if (most.length < rows.length) most.push(null);
    return [element("h2", { text: names.map(visible).join(" · "), class: i ? null : "first" }), ...most.flatMap((row) => (row ? this._row(row, strings[file], margin, found) : [element("div", { class: "faint gap", text: "…" })]))];
  }

  _row([number, text, steps, leaves], file, margin, found) {
    let node = 0;
    const each = steps.map((step) => ({ node: (node += step) }));
    const whole = this.model.strings[text];
    const words = whole.slice(Math.min(margin, whole.search(/\S|$/))).trimEnd();
    const blanks = words.search(/\S|$/);
    const [flow, guilt, used] = [span("flow"), span("guilt"), span("used")];
    const parts = [flow, span("at", number), element("span", { class: "text", style: `--in: ${Math.min(blanks, DEEPEST)}` }, element("code", {}, span("in", words.slice(0, blanks).replaceAll(" ", "\u00a0")), ...broken(inside(words.slice(blanks)))), guilt, used)];
    const said = found.filter(({ location }) => location.line === number).map((finding) => this._finding(finding));
    const place = `${file}:${number}`;
    this.guilts.set(place, guilt);
    // What ran with and without a history, as a model that is its own teacher, is cut in some calls only.
    const isCut = this.model.walls.some((wall) => placeOf(this.model.place(wall.origin)) === place && !(each.length && wall.function === "no grad"));
    if (isCut) parts[2].append(faint("span", ` ${CUT}`));
    if (!each.length) {
      this.at.set(place, element("div", { class: "line faint" }, ...parts));
      return [this.at.get(place), ...said];
    }
    const root = element("button", { class: "line", on: { click: () => this._take(each) } }, ...parts);
    this.lines.push({ each, place, leaves, flow, used });
    this.at.set(place, root);
    return [root, ...said];
  }

  _finding({ severity, rule, name, message, node }) {
    const text = visible(`${severitySign(severity)}${rule} ${name}: ${message}`);
    return element("p", { class: `finding ${severity}`, text, on: { click: () => node && this.viewer.reveal({ node: node.id }) } });
  }

  /** To the box that stands for what a line made. */
  _take(each) {
    const key = each.map((one) => this.viewer.keyOf(one)).find((one) => this.viewer.boxes.get(one)?.node !== undefined);
    if (key) this.viewer.goTo(key);
    else this.viewer.reveal(each[0]);
  }

  // ------------------------------------------------------------------ what is told

  /** Say it anew: other gradients, or other colours. */
  show() {
    // Like the river it waits until the graph is drawn, and so do its lines, which take long to lay out.
    if (!this.isShown || !this.viewer.isSeen) return;
    const isNew = !this.lines;
    if (isNew) this._build();
    const { model, viewer: { shown, shownScale } } = this;
    this.bad = this._guilty();
    for (const [place, guilt] of this.guilts) guilt.replaceChildren(...(this.bad.get(place) ?? []).flatMap(([severity, words]) => [" ", element("span", { class: severity, text: `${severitySign(severity)}${words}` })]));
    let widest = 0;
    for (const { each: results, place, leaves, flow, used } of this.lines) {
      const each = shown.isOfAll ? this._made.get(place) : results;
      const info = shown.ofAll(each);
      flow.textContent = short(info);
      widest = Math.max(widest, widthOf(flow.textContent, FLOW));
      flow.title = told(info);
      flow.style.backgroundImage = strip(each.map((one) => shown.of(one)), shownScale);
      used.textContent = model.pass && leaves.length ? ` ●\u00a0${this._leaves(leaves, place)}` : "";
    }
    // No number is broken, and none takes room from the code that it does not need.
    this.element.style.setProperty("--flow", `${Math.min(Math.max(Math.ceil(widest) + 12, LEAST), WIDEST)}px`);
    if (!isNew) return;
    this.begin();
    this.mark(this.viewer.thing(this.viewer.selected));
  }

  /** What is wrong at each line: where the first NaN is made, and what the verdict is about; of a leaf without a line of its own at those that take it. */
  _guilty() {
    const { model, lines } = this;
    const { births, marks } = model.troubles;
    const found = new Map();
    const note = (place, ...what) => found.get(place)?.some(([, words]) => words === what[1]) || append(found, place, what);
    for (const node of births) note(this._place(node), "error", "first NaN or Inf");
    for (const [, severity, words, origin] of marks) if (origin >= 0) note(placeOf(model.place(origin)), severity, words);
    for (const { place, leaves } of lines) {
      const words = ofLeaves(marks.filter(([node, , , , , leaf, silent]) => leaf && !silent?.includes(place) && leaves.includes(model.leafOf.get(node))));
      if (words) note(place, "information", words);
    }
    return found;
  }

  /** The line that made a node. */
  _place(node) {
    return placeOf(this.model.origin(node));
  }

  /** All nodes that each line made, also those that are only parts of its values. */
  get _made() {
    if (this.made) return this.made;
    const { model } = this;
    this.made = new Map();
    for (let node = 0; node < model.size; node++) {
      const isMade = !model.isLeaf(node) && !model.derived.has(node) && model.origin(node);
      if (isMade) append(this.made, this._place(node), { node });
    }
    return this.made;
  }

  /** Each leaf with what it gets; of many those that have one place in every layer, or how many they are. */
  _leaves(leaves, place) {
    const { model } = this;
    // A short name and its number stay together.
    const got = (each, name) => `${name}${name.length > SHORT ? " " : "\u00a0"}${toldLeaf(model.arriving(each[1] ? { each } : each[0]))}${this._here(each, place)}`;
    const alike = new Map();
    const named = leaves.map((leaf) => {
      const node = model.data.leaves.node[leaf];
      const name = visible(model.names(node)[0] ?? `#${node}`);
      append(alike, name.replace(/\b\d+\b/g, "*"), { node });
      return [name, [{ node }]];
    });
    const shown = [...alike.values()].some((each) => each.length > 2) ? [...alike] : named;
    if (shown.length > NAMED) return got(named.flatMap(([, each]) => each), leavesOf(leaves.length));
    return shown.map(([name, each]) => got(each, each[1] ? `${ending(name.replace(/.*\*\.(?=.*\.)/, ""))}\u00a0×${each.length}` : ending(name))).join(", ");
  }

  /** ` (0.559 here)`, what leaves get at a line, where each of them gets one gradient there, and more elsewhere. */
  _here(leaves, place) {
    const { model } = this;
    const nodes = leaves.map(({ node }) => node);
    const all = nodes.flatMap((node) => model.incoming(node)).filter((edge) => model.onEdge(edge).state !== "not reached");
    const here = all.filter((edge) => this._place(model.source[edge]) === place).map((edge) => ({ edges: [edge], seeds: [] }));
    const isChanged = nodes.some((node) => model.rootNodes.has(node) || model.passes.some(({ altered }) => altered.includes(node)));
    if (here.length !== nodes.length || here.length === all.length || isChanged) return "";
    return ` (${toldLeaf(model.flowing(here[1] ? { each: here } : here[0]))} here)`.replaceAll(" ", "\u00a0").replace("\u00a0", " ");
  }

  /** Begin with the head of the function that made the first of these nodes, or of one from which on the worst line is in sight. */
  begin(nodes = this.nodes) {
    this.nodes = nodes;
    const { element } = this;
    const { style, clientHeight } = element;
    const headOf = (row) => {
      while (row && row.tagName !== "H2") row = row.previousElementSibling;
      return row;
    };
    // Headings that stick are elsewhere while it is scrolled.
    element.scrollTop = 0;
    style.paddingBottom = "";
    const worst = this.at.get(this.bad?.keys().next().value);
    const isGood = (head) => head && (!worst || (head.offsetTop < worst.offsetTop && worst.offsetTop + worst.offsetHeight < head.offsetTop + clientHeight));
    const head = [headOf(nodes?.map((node) => this.at.get(this._place(node))).find(Boolean)), ...element.querySelectorAll("h2")].find(isGood);
    if (!head) return intoSight(worst);
    if (element.scrollHeight <= clientHeight) return;
    // The last functions need room below.
    style.paddingBottom = `${Math.max(head.offsetTop + clientHeight - element.scrollHeight, 0) + 14}px`;
    element.scrollTop = head.offsetTop;
  }

  /** Mark the lines that made what is selected, and bring the first into sight. */
  mark(thing) {
    for (const one of this.marked ?? []) one.classList.remove("here");
    const { model } = this;
    const nodes = !thing || thing.edges || thing.wall !== undefined ? [] : thing.node === undefined ? (thing.group === undefined ? [] : model.inside(thing.group)) : [thing.node];
    const origins = thing?.wall === undefined ? nodes.map((node) => model.origin(node)) : [model.place(model.walls[thing.wall].origin)];
    const places = origins.map((origin) => this.at.get(placeOf(origin)));
    this.marked = [...new Set(places.filter(Boolean))];
    for (const one of this.marked) one.classList.add("here");
    intoSight(this.marked.at(-1));
  }
}

const intoSight = (line) => line?.scrollIntoView({ block: "nearest" });

/** A line of code that breaks before a dot or behind a bracket or comma rather than in a word. */
const broken = (text) => text.split(/(?<=[([{,])(?=\w)|(?<=\w{3}|[)\]])(?=\.[A-Za-z_])/).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));

/** The last parts of a path that have room. */
function ending(path) {
  const parts = path.split(".");
  while (parts.length > 1 && parts.join(".").length > NAME) parts.shift();
  const end = shorten(parts.join("."), NAME, true);
  return end === path || end.startsWith("…") ? end : `….${end}`;
}

const placeOf = (origin) => `${origin?.file}:${origin?.line}`;

/** What fits beside a line: of several the smallest and the largest in three digits, or how many are not finite. */
function short(info) {
  if (!info?.span) return toldSize(info);
  if (!["finite", "non-finite"].includes(info.state)) return told(info);
  const { state, span, many, of } = info;
  const ends = [...new Set(span.map(({ norm }) => number(Number(Number(norm).toPrecision(3)))))].join("–");
  return state === "finite" ? ends : `✖ ${many} of ${of}`;
}

/** The colours of what a line made, in the order of backward: of those that share a cell the largest. */
function strip(infos, scale) {
  const cells = Math.min(infos.length, CELLS);
  const colors = [...Array(cells).keys()].map((cell) => {
    const shared = infos.slice(Math.floor((infos.length * cell) / cells), Math.floor((infos.length * (cell + 1)) / cells));
    if (shared.some(isBad)) return "var(--bad)";
    const norm = shared.map((info) => info?.norm ?? null).reduce((a, b) => (Number(b) > Number(a) || a === null ? b : a), null);
    return (norm !== null && scale.color(norm)) || "transparent";
  });
  return `linear-gradient(90deg, ${colors.map((color, i) => `${color} ${(100 * i) / cells}% ${(100 * (i + 1)) / cells}%`).join(", ")})`;
}
