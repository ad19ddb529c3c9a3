// What is in sight as a picture, and text for the clipboard.
import { visible } from "./format.js";
import { Painter } from "./paint.js";
import { SvgContext } from "./svg_context.js";
import { widthOf } from "./text.js";
import { PAPER } from "./theme.js";

/** Pixels of a PNG for each of the screen: sharp in print and on fine screens. */
const FINE = 2;
/** And an SVG may be seen so many times as large. */
const LARGER = 8;

/** What is in sight, on white, without marks of pointer and selection. */
const sceneOf = (viewer, ratio) => ({ ...viewer.scene(), hovered: null, selected: null, bar: null, theme: PAPER, ratio, caption: viewer.shownScale });

export function saveSvg(viewer) {
  const scene = { ...sceneOf(viewer, 1), detail: LARGER };
  const context = new SvgContext(scene.size.width, scene.size.height, widthOf);
  new Painter(null, viewer.model).paintOn(context, scene);
  download(viewer, new Blob([context.text(document.title)], { type: "image/svg+xml" }), "svg");
}

export function savePng(viewer) {
  const canvas = document.createElement("canvas");
  new Painter(canvas, viewer.model).paint(sceneOf(viewer, FINE));
  canvas.toBlob((blob) => download(viewer, blob, "png"));
}

function download(viewer, blob, ending) {
  const target = visible(viewer.model.data.meta.target).split(/[\\/]/).at(-1).replace(/[^\w.-]+/g, "-").replace(/\.\w+$/, "");
  const link = document.createElement("a");
  const name = `${target.slice(0, 60) || "graph"}.${ending}`;
  Object.assign(link, { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  viewer.status.say(window.parent === window ? `Saved as ${name}.` : `Saved as ${name}, where the page around this one allows downloads.`);
}

/** Put text on the clipboard; returns whether the browser allowed it. */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedByHand(text);
  }
}

/** As it was done before: frames of other pages may not use the clipboard, but a selection can still be copied. */
function copiedByHand(text) {
  const { activeElement } = document;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "said";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  activeElement?.focus();
  return done;
}
