// The search field and the list below it.
import { element, faint, span } from "./element.js";
import { plural } from "./format.js";
import { Search } from "./search.js";

export class Finder {
  /** @param back the element that gets the focus afterwards */
  constructor(viewer, back) {
    this.viewer = viewer;
    this.back = back;
    this.search = new Search(viewer.model);
    this.found = [];
    this.chosen = 0;
    this.input = element("input", {
      type: "search", placeholder: "Search op, name, module, line…  /", "aria-label": "Search", role: "combobox", "aria-expanded": "false", "aria-controls": "results", "aria-autocomplete": "list", autocomplete: "off",
      on: { input: () => (this.finding = this._find()), keydown: (event) => this._key(event), blur: () => this._hide() },
    });
    this.results = element("ul", { class: "results", id: "results", role: "listbox", "aria-label": "Matches", hidden: "" });
    this.element = element("div", { class: "search" }, this.input, this.results);
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  /** Look for what is typed; what was typed since is looked for instead. */
  async _find() {
    const words = this.input.value;
    if (words.trim() && !this.search.entries) {
      this._list([], [faint("li", "reading all names…")]);
      await this.search.prepare(true);
      if (this.input.value !== words) return;
    }
    this._show();
  }

  _show() {
    const { found, total } = this.search.find(this.input.value);
    const rows = found.map((entry, i) => {
      // Before the field loses the focus, which hides the list.
      const mousedown = () => this._take(entry);
      return element("li", { role: "option", id: `match${i}`, on: { mousedown } }, element("span", { text: entry.shown }), span("kind", entry.kind));
    });
    if (total > found.length) rows.push(faint("li", `${plural(total, "match", "matches")}, the first ${found.length} shown`));
    if (!total && this.input.value.trim()) rows.push(faint("li", "nothing found"));
    this._list(found, rows);
  }

  _list(found, rows) {
    this.found = found;
    this.results.replaceChildren(...rows);
    this.results.hidden = !rows.length;
    this.input.ariaExpanded = rows.length > 0;
    this._choose(0);
  }

  _choose(number) {
    if (!this.found.length) return;
    this.chosen = (number + this.found.length) % this.found.length;
    const options = this.results.querySelectorAll("[role=option]");
    options.forEach((option, i) => (option.ariaSelected = i === this.chosen));
    options[this.chosen].scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", `match${this.chosen}`);
  }

  _key(event) {
    const actions = {
      Escape: () => this._clear(),
      Enter: () => this._takeFirst(),
      ArrowDown: () => this._choose(this.chosen + 1),
      ArrowUp: () => this._choose(this.chosen - 1),
    };
    event.stopPropagation();
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  _clear() {
    this.input.value = "";
    this.finding = this._find();
    this.back.focus();
  }

  /** Who types fast is not too early. */
  async _takeFirst() {
    await this.finding;
    if (this.found[this.chosen]) this._take(this.found[this.chosen]);
  }

  _take(entry) {
    this.back.focus();
    this.viewer.reveal(entry);
  }

  _hide() {
    this.results.hidden = true;
    this.input.ariaExpanded = false;
  }
}
