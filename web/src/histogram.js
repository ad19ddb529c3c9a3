// A gradient's elements by size: bars over log10|g|, zeros and what is not finite counted apart.
import { element, faint, svg } from "./element.js";
import { count, dotted, plural } from "./format.js";

/** Bars in a decade, as report.py's Histogram has them. */
const PER_DECADE = 4;
const HEIGHT = 60;
const BAR = 7;

/** @param bins [zeros, number of the first bar, counts...]; bar n holds 10^(n/4) <= |g| < 10^((n+1)/4) */
export function histogram([zeros, first, ...counts], info) {
  const words = dotted(plural(zeros, "zero"), `${count(info.nan)} NaN`, `${count(info.inf)} Inf`);
  const parts = counts.length ? [drawing(first, counts), axis(first, counts.length)] : [];
  return element("figure", {}, faint("figcaption", `elements by log₁₀|g|; apart from these ${words}`), ...parts);
}

function drawing(first, counts) {
  const most = Math.max(...counts);
  const peak = first + counts.indexOf(most);
  const figure = svg("svg", { viewBox: `0 0 ${counts.length * BAR} ${HEIGHT}`, preserveAspectRatio: "none", class: "bars", role: "img", "aria-label": `${plural(counts.reduce((a, b) => a + b, 0), "element")} between 1e${Math.floor(first / PER_DECADE)} and 1e${Math.ceil((first + counts.length) / PER_DECADE)}, most near ${(10 ** ((peak + 0.5) / PER_DECADE)).toExponential(0)}` });
  counts.forEach((value, i) => {
    if (!value) return;
    // A single element among a million must still be seen.
    const height = Math.max((HEIGHT * value) / most, 1.5);
    const bar = svg("rect", { x: i * BAR, y: HEIGHT - height, width: BAR - 1, height });
    const title = svg("title", {});
    title.textContent = `${count(value)} from ${edge(first + i)} to ${edge(first + i + 1)}`;
    bar.append(title);
    figure.append(bar);
  });
  return figure;
}

const edge = (bar) => (10 ** (bar / PER_DECADE)).toExponential(1);

const axis = (first, bars) => element("div", { class: "axis faint" }, element("span", { text: edge(first) }), element("span", { text: edge(first + bars) }));
