// Starts the page: takes the report out of it and shows it.
import { precise } from "./format.js";
import { unpack } from "./unpack.js";
import { Viewer } from "./viewer.js";

const stored = (id) => document.getElementById(id)?.textContent;

// It stands in the page from the beginning: a page that was cut off has no script that could say so.
const notice = document.getElementById("notice");

async function start() {
  const data = await unpack(stored("report"));
  precise(data.digits);
  const histograms = stored("histograms");
  window.gradscope = new Viewer(data, () => (histograms ? unpack(histograms) : Promise.resolve([])));
  notice.remove();
}

start().catch((error) => {
  notice.textContent = `This page cannot be drawn: the file is damaged, or the browser is too old. (${error.message})`;
  throw error;
});
