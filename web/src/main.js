// Starts the page: takes the report out of it and shows it.
import { unpack } from "./model.js";
import { Viewer } from "./viewer.js";

const stored = (id) => document.getElementById(id)?.textContent;

unpack(stored("report")).then((data) => {
  const histograms = stored("histograms");
  window.gradscope = new Viewer(data, () => (histograms ? unpack(histograms) : Promise.resolve([])));
});
