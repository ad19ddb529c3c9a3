// The colours of the drawing, on a light and on a dark ground.  The panel's are in viewer.css.
// `tint` is how much of a gradient's colour a box takes: all text on it keeps a contrast of 4.5 : 1.

export const LIGHT = {
  page: "#fbfbfc", card: "#ffffff", tints: ["#f1f3f6", "#fafbfc"], ink: "#16181d", faint: "#4b5563",
  teal: "#0b5a79", line: "#8b95a3", border: "#4a5565", frame: "#ccd3dc", leaf: "#2f7d4f", path: "#6d28d9", bad: "#ad1450",
  warning: "#8f4205", track: "#e8ebf0", tint: 0.26,
};
export const DARK = {
  page: "#101317", card: "#1d222a", tints: ["#191d24", "#20252d"], ink: "#eceff3", faint: "#b4bdc9",
  teal: "#7bd0ee", line: "#6d7887", border: "#8a95a5", frame: "#39414d", leaf: "#62c48c", path: "#b794f6", bad: "#ff7fb0",
  warning: "#f0a94b", track: "#2d343f", tint: 0.17,
};
export const PAPER = { ...LIGHT, page: "#ffffff" };

const isDark = matchMedia("(prefers-color-scheme: dark)");
const isForced = matchMedia("(forced-colors: active)");

/** The colours that the reader's system asks for. */
export function screenTheme() {
  if (isForced.matches) return forced();
  return isDark.matches ? DARK : LIGHT;
}

/** The few colours that somebody has chosen for everything; a size is told by length alone. */
function forced() {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.forcedColorAdjust = "none";
  const [ground, ink, mark, link] = ["Canvas", "CanvasText", "Highlight", "LinkText"].map((name) => {
    probe.style.color = name;
    return hex(getComputedStyle(probe).color);
  });
  probe.remove();
  return { ...LIGHT, page: ground, card: ground, tints: [ground, ground], ink, faint: ink, teal: link, line: ink, border: ink, frame: ink, leaf: ink, path: mark, bad: mark, warning: mark, track: ground, tint: 0, size: ink };
}

const hex = (color) => `#${(color.match(/[\d.]+/g) ?? [0, 0, 0]).slice(0, 3).map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;

export const severityColor = (severity, theme) => ({ error: theme.bad, warning: theme.warning, information: theme.teal })[severity];
