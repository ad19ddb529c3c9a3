// Parts of the side panel that only need what they show.
import { element, faint, inParts, span } from "./element.js";
import { count, visible } from "./format.js";
import { severitySign } from "./words.js";

/** @param link an element that leads to its node, or null */
export function findingOf(finding, link) {
  const place = finding.location ? `${visible(finding.location.file)}:${finding.location.line}` : "";
  return element(
    "article",
    { class: `finding ${finding.severity}` },
    element("h3", { text: `${severitySign(finding.severity)}${finding.severity} ${finding.rule} ${finding.name}` }),
    element("p", { text: visible(finding.message) }),
    place && element("p", { class: "faint" }, ...inParts(place)),
    ...finding.evidence.map((line) => faint("p", visible(line))),
    finding.remedy ? element("p", { text: `→ ${visible(finding.remedy)}` }) : null,
    link,
  );
}

/** Sorted by a number of each, which is asked for once. */
export function byNumber(things, numberOf) {
  const pairs = things.map((thing) => [numberOf(thing), thing]);
  return pairs.sort(([a], [b]) => a - b).map(([, thing]) => thing);
}

/** A heading, rows, how many more there are, and what stands last. */
export function flows(head, rows, total, last = null) {
  const rest = total > rows.length ? faint("li", `… ${count(total - rows.length)} more`) : null;
  return element("section", { class: "flows" }, element("h3", { text: head }), element("ul", {}, ...rows, rest), last);
}
