// Starts the page: takes a graph out of it and shows it.
import { read } from "./address.js";
import { precise } from "./format.js";
import { colored } from "./scale.js";
import { unpack } from "./unpack.js";
import { Viewer } from "./viewer.js";

const stored = (name, graph) => document.getElementById(`${name}${graph || ""}`)?.textContent;

// It stands in the page from the beginning: a page that was cut off has no script that could say so.
const notice = document.getElementById("notice");

/** The graphs that have been looked at; the first holds what is said of all. */
const graphs = [];
let viewer = null;

/** Show a graph of the page; each is unpacked when it is first asked for. */
async function show(graph, address, isStep) {
  graphs[graph] ??= { ...(await unpack(stored("report", graph))), graph };
  const isSwitch = viewer?.leave();
  const { calls, answer } = graphs[0];
  const histograms = async () => (stored("histograms", graph) ? unpack(stored("histograms", graph)) : []);
  viewer = window.gradscope = new Viewer({ ...graphs[graph], calls, answer }, histograms, { address, isStep, trail: viewer?.trail, elsewhere });
  if (isSwitch) viewer.passes.focus();
}

/** Show what an address says; returns whether there is such a graph. */
function elsewhere(address, isStep) {
  const { graph } = read(address, 0);
  if (!stored("report", graph)) return false;
  show(graph, address, isStep);
  return true;
}

async function start() {
  notice.hidden = true;
  const [first] = (graphs[0] = { ...(await unpack(stored("report"))), graph: 0 }).calls.filter(([number]) => number === graphs[0].call);
  precise(graphs[0].digits);
  colored(graphs[0].colors);
  const address = location.hash.slice(1) || `show=${graphs[0].overlay}${first ? `&graph=${first[1]}&pass=${first[2]}` : ""}`;
  const { graph } = read(address, 0);
  await show(stored("report", graph) ? graph : 0, address, true);
}

start().catch((error) => {
  notice.hidden = false;
  notice.textContent = `This page cannot be drawn: the file is damaged, or the browser too old. (${error.message})`;
  throw error;
});
