// The side panel: everything known of one node, group, or of the whole report.  Text only, never markup.
import { element, faint, inParts, link, span } from "./element.js";
import { count, dotted, harmless, leavesOf, lookup, number, plural, shapeOf, targetName, tensor, visible } from "./format.js";
import { histogram } from "./histogram.js";
import { layerSwitch, standing } from "./layers_panel.js";
import { byNumber, findingOf, flows } from "./panel_parts.js";
import { apartNumbers, onEachRank, parametersOverRanks } from "./rank_panel.js";
import { CUT, endNames, groupWords, meetingWords, nodeName, seedWords, severitySign, told, toldSize, wallWords } from "./words.js";

const MOST_FLOWS = 200;
const MOST_LEAVES = 100;
const MOST_APART = 10;
const MOST_ON_PATH = 300;

export class Panel {
  /** @param histograms a function that promises them, for each gradient of each pass */
  constructor(root, viewer, histograms) {
    this.root = root;
    this.viewer = viewer;
    this.model = viewer.model;
    this.histograms = histograms;
  }

  /** @param path the edges of the way that is marked, or null */
  show(box, path) {
    const told = !box ? this._whole() : box.wall !== undefined ? this._wall(box.wall) : box.each?.length > 1 && !box.edges ? standing(this, box) : box.edges ? this._edges(box) : box.seed !== undefined ? this._seed(box.seed) : box.node === undefined ? this._group(box.group) : this._node(box.node, path);
    this.root.replaceChildren(...[layerSwitch(this.viewer, box), ...told, box && this._copying()].filter(Boolean));
    this.root.scrollTop = 0;
  }

  // ------------------------------------------------------------------ what can be selected

  _whole() {
    const { meta, notes, findings } = this.model.data;
    const { model } = this;
    return [
      element("h2", {}, ...inParts(targetName(meta.target) || "graph")),
      faint("p", `${plural(model.size, "node")}, ${leavesOf(model.data.leaves.node.length)} · torch ${meta.torch}`),
      model.pass?.error ? element("p", { class: "failed", text: `backward failed: ${visible(model.pass.error)}` }) : null,
      ...notes.map((note) => element("p", { text: visible(note) })),
      ...this._answer(model.data.answer),
      findings.length ? element("h3", { text: plural(findings.length, "finding") }) : null,
      ...findings.map((finding) => findingOf(finding, this._toNode(finding))),
      model.ranks?.of(model.rank)?.hasOtherShapes ? element("p", { text: `Shapes are of rank ${model.data.ranks.shown}, no values are shown: this rank's tensors have other shapes.` }) : null,
      parametersOverRanks(this.viewer),
      model.isSpread ? null : this._leaves(model.ranks ? `leaves on rank ${model.rank}` : "leaves", model.data.leaves.node),
    ];
  }

  /** What a command tells in words; of a comparison, whose tables are drawn, in sentences, and the leaves that differ most. */
  _answer(words) {
    const { model, viewer: { overlays: [first] } } = this;
    if (!first?.data.apart) return [words && element("pre", { class: "answer", tabindex: "0", role: "group", "aria-label": "the answer in words", text: words })];
    const apart = model.data.leaves.node.map((node) => [first.of({ node }), node]).filter(([{ norm }]) => norm > 0).sort(([a], [b]) => b.norm - a.norm);
    const rows = apart.slice(0, MOST_APART).map(([info, node]) => this._row(info.words, node));
    return [...(words.match(/.+/g) ?? []).map((text) => element("p", { text })), rows[0] && flows("leaves, largest difference first", rows, apart.length)];
  }

  /** The facts as text, for a message or an issue. */
  _copying() {
    const copy = (event) => {
      event.currentTarget.remove(); // what it says is no fact
      const text = this.root.innerText.trim();
      this.root.append(this._copying());
      this.root.lastChild.focus();
      this.viewer.copy(text, "What is said here is copied.");
    };
    return element("button", { class: "copy", text: "Copy as text", on: { click: copy } });
  }

  /** A line of the drawing: all edges that it stands for. */
  _edges(bundle) {
    const { model } = this;
    const { edges, seeds } = bundle;
    const rows = edges.slice(0, MOST_FLOWS).map((edge) => {
      const [from, to] = [model.source[edge], model.target[edge]];
      const value = model.pass ? told(model.onEdge(edge), shapeOf(model.shape(to, model.output[edge]))) : "";
      return element("li", {}, span("value", value), " from ", this._link(from), " to ", this._link(to));
    });
    const info = model.flowing(bundle);
    return [
      element("h2", { text: endNames(model, bundle).join(" → ") }),
      faint("p", `${plural(edges.length + seeds.length, "edge")} · the gradient flows this way`),
      info ? this.facts("", this._numbers(info)) : null,
      edges.length ? flows(edges.length > 1 ? "edges" : "edge", rows, edges.length) : element("p", { text: seeds.map((root) => seedWords(model, root)).join(", ") }),
    ];
  }

  _seed(root) {
    const { model } = this;
    const { node, output } = model.data.roots[root];
    const info = model.seed(root);
    return [
      element("h2", { text: seedWords(model, root) }),
      faint("p", "the gradient that backward starts with"),
      info ? this.facts("", this._numbers(info, model.shape(node, output))) : null,
      element("p", {}, "given for ", this._link(node)),
    ];
  }

  _wall(wall) {
    const { model } = this;
    const { origin, nodes } = model.walls[wall];
    const place = model.place(origin);
    return [
      element("h2", { text: wallWords(model, wall) }),
      faint("p", CUT),
      place && element("p", {}, ...inParts(visible(`${place.file}:${place.line}`))),
      flows("what came of it is used by", nodes.slice(0, MOST_FLOWS).map((node) => element("li", {}, this._link(node))), nodes.length),
    ];
  }

  _group(g) {
    const { model } = this;
    const { kind, type, label, title } = model.group(g);
    const { name, times, size } = groupWords(model, g);
    const nodes = model.inside(g);
    const leaves = nodes.filter((node) => model.isLeaf(node));
    const entering = model.entering(g);
    return [
      element("h2", { text: `${name}${times}` }),
      faint("p", dotted(...new Set([kind, visible(type), size, leavesOf(leaves.length)]))),
      this.facts("", [["module", kind === "module" ? visible(title) : ""], ["operations", kind === "repeat" && !type ? visible(title) : ""], ["called as", kind === "module" ? visible(label) : ""], ["expressions", kind === "repeat" && label !== name ? visible(label) : ""]]),
      this.shown({ group: g }),
      entering ? this.facts("gradient entering", [...this._numbers(entering), ["of it", meetingWords(model, { group: g })]]) : null,
      onEachRank(this.viewer, (pass) => model.enteringIn(pass, g)),
      this._rounds(g, kind),
      ...this.findings(nodes),
      this._leaves("leaves inside", leaves),
    ];
  }

  _node(node, path) {
    const { model } = this;
    const names = model.names(node).map(visible);
    const origin = model.origin(node);
    const kind = model.kind(node) === "op" ? "" : model.kind(node);
    const values = model.data.nodes.values[node]?.[0];
    return [
      element("h2", { text: names[0] ?? nodeName(model, node) }),
      faint("p", dotted(visible(model.op(node)), `#${node}`, visible(kind))),
      names.length > 1 ? faint("p", `also ${names.slice(1).join(", ")}`) : null,
      this.facts("", [
        ["shape", this._shapes(node)],
        ["value", values ? tensor(values, shapeOf(model.shape(node))) : ""],
        ["module", visible(model.module(node))],
        ["source", origin && inParts(visible(`${origin.file}:${origin.line}`))],
        ["function", origin ? visible(origin.function) : ""],
      ]),
      this.shown({ node }),
      ...this.findings([node]),
      model.troubles.births.includes(node) ? element("p", { class: "failed", text: "✖ NaN or Inf begins here." }) : null,
      ...model.troubles.marks.filter(([at]) => at === node).map(([, severity, words]) => element("p", { class: severity, text: `${severitySign(severity)}${words}` })),
      this.formula(node),
      ...this._upstream(node),
      onEachRank(this.viewer, (pass) => model.upstreamIn(pass, node), model.names(node)[0]),
      this._contributions(node),
      this._downstream(node),
      this._accumulated(node),
      this._path(node, path),
    ];
  }

  /** What all overlays say; findings are told in full. */
  shown(thing) {
    return this.facts("", this.viewer.overlays.map((one) => [one.name, one.name === "findings" ? "" : one.of(thing).words]));
  }

  // ------------------------------------------------------------------ facts

  _shapes(node) {
    const { model } = this;
    return model.data.nodes.shape[node].map((_, output) => model.shape(node, output)).filter(Boolean).join(", ");
  }

  facts(head, rows) {
    const known = rows.filter(([, value]) => value !== "" && value !== null && value !== undefined);
    if (!known.length) return null;
    const list = element("dl", {}, ...known.flatMap(([name, value]) => [element("dt", { text: name }), typeof value === "object" ? element("dd", {}, ...value) : element("dd", { text: value })]));
    return element("section", {}, head ? element("h3", { text: head }) : null, list);
  }

  _numbers(info, shapeText = "") {
    if (info.each) return apartNumbers(info);
    const shape = shapeText ? shapeOf(shapeText) : null;
    return [
      ["state", info.state],
      ["values", info.values ? tensor(info.values, shape ?? [info.values.length]) : ""],
      ["‖g‖", info.norm === null ? "" : number(info.norm)],
      ["largest |g|", info.absmax === null ? "" : number(info.absmax)],
      ["NaN", info.nan ? count(info.nan) : ""],
      ["Inf", info.inf ? count(info.inf) : ""],
      ["dtype", info.state === "none" || info.state === "not reached" ? "" : info.dtype],
    ];
  }

  /** What the operation does with the gradient, where that has a notation. */
  formula(node) {
    const { model } = this;
    const rows = lookup(model.data.formulas, model.strings[model.data.nodes.short[node]]);
    if (!rows || model.kind(node) !== "op") return null;
    return this.facts("formula", rows.map(([argument, isDerivative, text]) => [isDerivative ? `∂/∂${argument}` : `to ${argument}`, text]));
  }

  // ------------------------------------------------------------------ findings

  _toNode({ node }) {
    return node ? this._link(node.id, "show in the graph") : null;
  }

  findings(nodes) {
    const { findingsAt } = this.model.troubles;
    if (!findingsAt.size) return [];
    return nodes.flatMap((node) => findingsAt.get(node) ?? []).map((finding) => findingOf(finding, nodes.length > 1 ? this._toNode(finding) : null));
  }

  // ------------------------------------------------------------------ gradients

  _upstream(node) {
    const { model } = this;
    if (!model.pass) return [];
    const sections = model.pass.upstream[node].map((entry, output) => {
      const section = this.facts(output ? `upstream gradient of output ${output}` : "upstream gradient", this._numbers(model.upstream(node, output), model.shape(node, output)));
      this._histogram(section, entry);
      return section;
    });
    if (model.pass.altered.includes(node)) sections.push(element("p", { text: "A hook of the program replaced this gradient: it is not the sum of what arrived." }));
    return sections;
  }

  /** Added when it has been decoded, which happens at the first click. */
  async _histogram(section, entry) {
    const bins = (await this.histograms())[this.model.histogramAt]?.[entry];
    if (bins) section.append(histogram(bins, this.model.gradient(entry)));
  }

  /** Every incoming contribution, and that they add up. */
  _contributions(node) {
    const { model } = this;
    if (!model.pass) return null;
    const rows = model.incoming(node).slice(0, MOST_FLOWS).map((edge) => this._flow(model.onEdge(edge), model.source[edge], "from", model.shape(node, model.output[edge])));
    model.data.roots.forEach((root, i) => {
      if (root.node === node) rows.push(element("li", {}, span("value", told(model.seed(i), shapeOf(model.shape(node, root.output)))), ` given as ${seedWords(model, i)}`));
    });
    const total = rows.length + Math.max(model.incoming(node).length - MOST_FLOWS, 0);
    if (!total) return null;
    const words = meetingWords(model, { node });
    const sum = total > 1 ? element("p", { class: "sum" }, "Σ ", span("value", told(model.upstream(node), shapeOf(model.shape(node)))), words && faint("span", ` · ${words}`)) : null;
    return flows(total > 1 ? `sum of ${count(total)} contributions` : "arrives", rows, total, sum);
  }

  _downstream(node) {
    const { model } = this;
    const edges = model.outgoing(node);
    if (!edges.length) return null;
    const rows = edges.slice(0, MOST_FLOWS).map((edge) => this._flow(model.onEdge(edge), model.target[edge], "to", model.shape(model.target[edge], model.output[edge])));
    return flows("passes on", rows, edges.length);
  }

  _flow(info, node, word, shape) {
    return element("li", {}, span("value", info ? told(info, shapeOf(shape)) : ""), ` ${word} `, this._link(node));
  }

  _row(value, node) {
    return element("li", {}, span("value", value), " ", this._link(node));
  }

  _link(node, text = nodeName(this.model, node)) {
    return link("", () => this.viewer.reveal({ node }), ...inParts(text));
  }

  _accumulated(node) {
    const { model } = this;
    const position = model.leafOf.get(node);
    if (position === undefined || !model.pass || model.isSpread) return null;
    const [now, before, after] = model.pass.accumulations[position];
    if (after === null) return null;
    const shape = shapeOf(model.shape(node));
    const say = (entry) => (entry === null ? "None" : told(model.gradient(entry), shape));
    return this.facts(".grad", [["before", say(before)], ["new", say(now)], ["after", say(after)]]);
  }

  _leaves(which, leaves) {
    const { model } = this;
    if (!leaves.length || !model.pass) return null;
    const sorted = byNumber(leaves, (node) => -Number(model.upstream(node).norm ?? -1));
    // Of many the largest and the smallest are of interest.
    const shown = sorted.length > MOST_LEAVES ? [...sorted.slice(0, MOST_LEAVES / 2), null, ...sorted.slice(-MOST_LEAVES / 2)] : sorted;
    const rows = shown.map((node) =>
      node === null
        ? faint("li", `… ${count(sorted.length - MOST_LEAVES)} between …`)
        : this._row(toldSize(model.upstream(node)), node),
    );
    return flows(`${which}, ${model.isSpread ? "furthest apart" : "largest ‖g‖"} first`, rows, rows.length);
  }

  /** Where the rounds of a repeat get most and least. */
  _rounds(g, kind) {
    const { model } = this;
    if (!["repeat", "part"].includes(kind) || !model.pass) return null;
    const rounds = model.rounds(g);
    const sorted = byNumber(rounds, (round) => -Number(model.arriving(round)?.norm ?? 0));
    const name = (round) => (round.group === undefined ? nodeName(model, round.node) : groupWords(model, round.group).name);
    const row = (word, round) => element("li", {}, `${word} `, span("value", toldSize(model.arriving(round))), " enters ", link(name(round), () => this.viewer.reveal(round)));
    const ends = model.isSpread ? ["furthest apart", "least apart"] : ["largest", "smallest"];
    const rows = [["first", rounds[0]], ["last", rounds.at(-1)], [ends[0], sorted[0]], [ends[1], sorted.at(-1)]].map(([word, round]) => row(word, round));
    return flows(`${count(rounds.length)} rounds, in backward order`, rows, rows.length);
  }

  _path(node, path) {
    const { model } = this;
    if (!path) {
      if (!model.incoming(node).length) return null;
      return element("p", {}, element("button", { text: "Mark the strongest way from the root", on: { click: () => this.viewer.markPath(node) } }));
    }
    if (!path.length) return null;
    const rows = path.slice(-MOST_ON_PATH).map((edge) => this._flow(model.onEdge(edge), model.target[edge], "to", model.shape(model.target[edge], model.output[edge])));
    const list = flows(`strongest way from the root, ${plural(path.length, "edge")}`, rows, path.length);
    list.append(faint("p", "The way whose weakest edge is largest."));
    return list;
  }
}
