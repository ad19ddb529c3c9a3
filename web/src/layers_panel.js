// What the panel says of a box that stands for the same place in several layers.
import { element, faint, link, span } from "./element.js";
import { dotted, plural, visible } from "./format.js";
import { flows } from "./panel_parts.js";
import { boxName, boxWords, meetingWords, roundName, told } from "./words.js";

/** Layers of which each has a row. */
const MOST = 200;

/** Which layer is shown, and the way to the others; nothing for a box that is of one only. */
export function layerSwitch(viewer, box) {
  if (!box?.bars) return null;
  const { model } = viewer;
  const button = (text, name, click, isOff = false) => element("button", { text, "aria-label": name, title: name, disabled: isOff ? "" : null, on: { click } });
  // A line to the next round is not there in the last.
  const one = box.bars[box.picked];
  const words = one ? roundName(model, one) : `all ${plural(box.bars.length, "layer")}`;
  return element(
    "p", { class: "layers", role: "group", "aria-label": "Layer" },
    button("‹", "previous layer (,)", () => viewer.nextLayer(-1)),
    element("span", { text: words }),
    button("›", "next layer (.)", () => viewer.nextLayer(1)),
    !one ? null : button("All", "all layers", () => viewer.showBar(box, box.picked)),
  );
}

/** What colours mean in each layer, and what they have in common. */
export function standing(panel, box) {
  const { model, viewer } = panel;
  const isNode = box.node !== undefined;
  const what = isNode ? visible(model.op(box.node)) : visible(model.group(box.group).type);
  const title = isNode ? boxName(model, box) : boxWords(model, box).name;
  const { shown, isOfGradients } = viewer;
  const words = (one) => (isOfGradients ? told(model.arriving(one)) : told(shown.of(one)) || "–");
  const rows = [...box.bars.entries()].filter(([, one]) => one).slice(0, MOST).map(([number, one]) =>
    element("li", {}, span("value", words(one)), " ", link(roundName(model, one), () => viewer.showBar(box, number)), isOfGradients && meetingWords(model, one) ? ` · ${meetingWords(model, one)}` : ""),
  );
  return [
    element("h2", { text: title }),
    faint("p", dotted(what, `drawn once for ${box.each.length}`)),
    model.pass ? panel.facts(isNode ? "upstream gradient" : "gradient entering", [["‖g‖", told(model.arriving(box))], ["shape", isNode ? model.shape(box.node) : ""], ["of it", meetingWords(model, box)]]) : null,
    panel.shown(box),
    flows(`${isOfGradients ? "" : `${shown.name}: `}${plural(box.each.length, "layer")}, in backward order`, rows, box.each.length),
    ...(isNode ? [panel.formula(box.node)] : []),
    ...panel.findings(box.each.flatMap(({ node, group }) => (node === undefined ? model.inside(group) : [node]))),
  ];
}
