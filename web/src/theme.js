// The colours of the drawing, on a light and on a dark ground.  The panel's are in viewer.css.
import { MAGENTA } from "./scale.js";

export const LIGHT = {
  page: "#fbfbfc", card: "#ffffff", tints: ["#f1f3f6", "#fafbfc"], ink: "#16181d", faint: "#4b5563",
  teal: "#0b5a79", line: "#8b95a3", border: "#4a5565", frame: "#ccd3dc", leaf: "#2f7d4f", path: "#6d28d9", bad: MAGENTA,
  warning: "#a14a06", track: "#e8ebf0", tint: 0.4,
};
export const DARK = {
  page: "#101317", card: "#1d222a", tints: ["#191d24", "#20252d"], ink: "#eceff3", faint: "#b4bdc9",
  teal: "#7bd0ee", line: "#6d7887", border: "#8a95a5", frame: "#39414d", leaf: "#62c48c", path: "#b794f6", bad: "#ff7fb0",
  warning: "#f0a94b", track: "#2d343f", tint: 0.32,
};
export const PAPER = { ...LIGHT, page: "#ffffff" };

export const severityColor = (severity, theme) => ({ error: theme.bad, warning: theme.warning, information: theme.teal })[severity];
