// What the side panel says of ranks: one gradient on each, and all parameters beside each other.
import { element, faint, link, span } from "./element.js";
import { count, number, visible } from "./format.js";
import { STATES } from "./model.js";
import { SPREAD, apart, toldApart } from "./ranks.js";
import { told, toldSize } from "./words.js";

/** Rows of the list of parameters, beside the leaves of one rank, and where it stands alone. */
const MOST_ROWS = { one: 12, all: 100 };

/** What a gradient is on each rank; of a parameter those that were told, and its `.grad`. */
export function onEachRank(viewer, read, name) {
  const { model } = viewer;
  const { ranks } = model;
  if (!ranks || !model.pass) return null;
  const parameter = allParameters(model).find((one) => one.name === name);
  const each = parameter ? parameter.each : model.onRanks(read);
  if (each.length < 2 || each.some(([, info]) => !info)) return null;
  const rows = each.map(([rank, info]) => element("li", {}, span("value", toldSize(info)), " on ", rankLink(viewer, rank)));
  return element(
    "section", { class: "flows" },
    element("h3", { text: "‖g‖ on each rank" }),
    element("ul", {}, ...rows),
    parameter?.odd ? element("p", { class: "odd", text: visible(parameter.odd) }) : null,
    parameter?.after ? faint("p", `.grad: ${parameter.after}`) : null,
  );
}

function rankLink(viewer, rank) {
  const { model } = viewer;
  if (!model.ranks.of(rank) || model.rank === rank) return `rank ${rank}${model.rank === rank ? " (shown)" : ""}`;
  return link(`rank ${rank}`, () => viewer.choosePass(model.passNumber, rank));
}

/** What was told of every parameter for the first call; for later ones what the graph says. */
function allParameters(model) {
  if (model.passNumber === 0) {
    const told = model.ranks.parameters.filter((one) => one.local.length);
    return told.map((one) => ({ name: model.strings[one.name], each: one.local.map(decoded), odd: one.odd, after: afterWords(one) }));
  }
  return model.data.leaves.node.map((node) => ({ name: model.names(node)[0], each: model.onRanks((pass) => model.upstreamIn(pass, node)), odd: "", after: "" }));
}


const decoded = ([rank, state, norm, nan, inf]) => [rank, { state: STATES[state], norm, nan, inf, values: null, absmax: null, dtype: "" }];

function afterWords({ after, whole }) {
  if (whole !== null) return `${number(whole)} over all shards`;
  const each = after.map(decoded);
  if (each.length > 1) return `differs: ${each.map(([rank, info]) => `${told(info)} on rank ${rank}`).join(", ")}`;
  return each.length ? told(each[0][1]) : "";
}

/** How far a gradient is apart over ranks, as facts. */
export function apartNumbers({ state, norm, least, most, nan, inf }) {
  const end = (pair) => (pair ? `${toldSize(pair[1])} on rank ${pair[0]}` : "");
  return [
    ["smallest ‖g‖", end(least)],
    ["largest ‖g‖", end(most)],
    ["largest ÷ smallest", state === "finite" && Number.isFinite(norm) && norm !== null ? `${number(norm)}×` : ""],
    ["NaN", nan ? count(nan) : ""],
    ["Inf", inf ? count(inf) : ""],
  ];
}

/** Every parameter with its smallest and its largest gradient: what is odd first, then what is furthest apart. */
export function parametersOverRanks(viewer) {
  const { model } = viewer;
  const { ranks } = model;
  if (!ranks || !model.pass) return null;
  const nodes = new Map(model.data.leaves.node.map((node) => [model.names(node)[0], node]));
  const sorted = allParameters(model).map((one) => ({ ...one, info: apart(one.each) }));
  if (!sorted.length) return null;
  const size = ({ odd, info }) => (odd ? Infinity : Number(info.norm ?? 0));
  sorted.sort((a, b) => (size(a) === size(b) ? 0 : size(b) - size(a)));
  const most = model.isSpread ? MOST_ROWS.all : MOST_ROWS.one;
  const rows = sorted.slice(0, most).map((one) => row(viewer, one, nodes));
  const more = sorted.length - most;
  return element(
    "section", { class: "flows" },
    element("h3", { text: `parameters over ${count(ranks.size)} ranks, furthest apart first` }),
    element("ul", {}, ...rows, more > 0 ? faint("li", `… ${count(more)} more${model.isSpread ? "" : ": choose the spread over ranks"}`) : null),
  );
}

function row(viewer, { name, info, odd, after }, nodes) {
  const node = nodes.get(name);
  const title = node === undefined ? visible(name) : link(visible(name), () => viewer.reveal({ node }));
  return element(
    "li", {},
    span("value", toldApart(info, told)), " ", title,
    after.startsWith("differs") ? faint("span", " · .grad\u00a0differs") : null,
    odd ? element("div", { class: "odd", text: visible(odd) }) : null,
  );
}

/** A switch between ranks, and what is said of those whose gradients are not here. */
export function rankSwitch(viewer) {
  const { ranks } = viewer.model;
  if (!ranks || !viewer.model.data.passes.length) return null;
  const here = ranks.choices.map((choice) => element("option", { value: choice, text: choice === SPREAD ? `spread over ${ranks.known.length === ranks.size ? "" : `${ranks.known.length} of `}${count(ranks.size)} ranks` : `rank ${choice} of ${count(ranks.size)}` }));
  const gone = ranks.without.map(([rank, why]) => element("option", { disabled: "", text: `rank ${rank}: ${why}` }));
  const change = ({ target }) => viewer.choosePass(viewer.model.passNumber, target.value === SPREAD ? SPREAD : Number(target.value));
  const select = element("select", { "aria-label": "Rank", title: "whose gradients are shown; R goes to the next", on: { change } }, ...here, ...gone);
  select.value = String(viewer.model.rank);
  return select;
}
