// A table of any length: only the visible rows are in the page.

const ROW_HEIGHT = 30; // pixels, as in style.css
const GAP = 0.7; // rem between columns, as in style.css
const OVERSCAN = 12; // rows drawn above and below the visible ones

class Table {
  // columns: {key, title, width, cell(row) -> nodes or text, right, value(row) to sort by, hint}
  // keyOf(row): what stays the same when the rows are loaded again
  constructor({ label: name, columns, open, sort, onSort, rowClass, keyOf }) {
    Object.assign(this, { columns, open, sort, onSort, rowClass, keyOf });
    this.rows = [];
    this.at = 0;
    this.drawn = new Map();
    this.space = h("div", { class: "space", role: "rowgroup" });
    this.element = h("div", { class: "table", role: "grid", "aria-label": name, tabindex: "-1" },
      h("div", { class: "scroll-content", role: "presentation" },
        h("div", { role: "rowgroup", class: "heads" }, this.head()), this.space));
    const least = columns.reduce((sum, c) => sum + parseFloat(c.width.replace("minmax(", "")) + GAP, 1);
    this.element.firstChild.style.minWidth = `${least}rem`;
    this.element.style.setProperty("--columns", columns.map((c) => c.width).join(" "));
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.resizeObserver = new ResizeObserver(() => this.draw());
    this.resizeObserver.observe(this.element);
  }

  head() {
    return h("div", { class: "row head", role: "row", "aria-rowindex": "1" },
      this.columns.map((column) => {
        const direction = this.sort?.replace("-", "") === column.key
          ? (this.sort.startsWith("-") ? "descending" : "ascending") : "none";
        const sign = { ascending: " \u2191", descending: " \u2193", none: "" }[direction];
        const press = () => this.onSort(direction === "descending" ? column.key
          : direction === "ascending" ? `-${column.key}` : column.first ?? column.key);
        return h("div", {
          role: "columnheader", class: column.right ? "right" : "", "aria-sort": direction,
        }, column.value
          ? h("button", { type: "button", title: column.hint ?? `Sort by ${column.title}`, on: { click: press } },
            column.title || "\u00a0", sign)
          : column.title);
      }));
  }

  fill(rows, at = 0) {
    this.rows = rows;
    this.at = Math.max(0, Math.min(at, rows.length - 1));
    this.element.setAttribute("aria-rowcount", String(rows.length + 1));
    this.space.style.height = `${rows.length * ROW_HEIGHT}px`;
    this.space.replaceChildren();
    this.drawn.clear();
    this.draw();
  }

  draw() {
    const top = this.element.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - OVERSCAN);
    const last = Math.min(this.rows.length,
      Math.ceil((top + this.element.clientHeight) / ROW_HEIGHT) + OVERSCAN);
    for (const [n, element] of this.drawn) {
      if ((n < first || n >= last) && n !== this.at) {
        element.remove();
        this.drawn.delete(n);
      }
    }
    for (let n = first; n < last; n += 1) if (!this.drawn.has(n)) this.put(n);
  }

  put(n) {
    const row = this.rows[n];
    const element = h("div", {
      class: `row ${this.rowClass?.(row) ?? ""}`, role: "row", "aria-rowindex": String(n + 2),
      tabindex: n === this.at ? "0" : "-1", "aria-selected": String(n === this.at),
      on: { click: (event) => {
        if (event.target.closest("button, input, a")) return;
        this.choose(n, false);
        this.open(row);
      } },
    }, this.columns.map((c) => h("div", { role: "gridcell", class: c.right ? "right" : "" }, c.cell(row))));
    element.style.top = `${n * ROW_HEIGHT}px`;
    this.drawn.set(n, element);
    this.space.append(element);
    return element;
  }

  // Selects a row, scrolls it into view and gives it the focus.
  choose(n, focus = true) {
    if (!this.rows.length) return;
    const before = this.drawn.get(this.at);
    before?.setAttribute("tabindex", "-1");
    before?.setAttribute("aria-selected", "false");
    this.at = Math.max(0, Math.min(n, this.rows.length - 1));
    const top = this.at * ROW_HEIGHT;
    const bodyHeight = this.element.clientHeight - ROW_HEIGHT; // the headings stay visible
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW_HEIGHT > this.element.scrollTop + bodyHeight) {
      this.element.scrollTop = top + ROW_HEIGHT - bodyHeight;
    }
    this.draw();
    const element = this.drawn.get(this.at) ?? this.put(this.at);
    element.setAttribute("tabindex", "0");
    element.setAttribute("aria-selected", "true");
    if (focus) element.focus({ preventScroll: true });
  }

  // Returns what is selected and in sight, for `restore` of a table with newer rows.
  place() {
    const { scrollTop, scrollLeft } = this.element;
    const key = this.rows.length ? this.keyOf(this.rows[this.at]) : null;
    return { key, scrollTop, scrollLeft, focused: this.element.contains(document.activeElement) };
  }

  restore({ key, scrollTop, scrollLeft, focused }) {
    this.fill(this.rows, this.rows.findIndex((row) => this.keyOf(row) === key));
    Object.assign(this.element, { scrollTop, scrollLeft });
    this.draw();
    if (focused && this.rows.length) (this.drawn.get(this.at) ?? this.put(this.at)).focus({ preventScroll: true });
  }

  get page() {
    return Math.max(1, Math.floor(this.element.clientHeight / ROW_HEIGHT) - 2);
  }

  // Returns the keyboard shortcuts of a table, as [keys, description, action].
  keys() {
    const go = (n) => () => this.choose(this.at + n);
    return [
      [["j", "ArrowDown"], "next row", go(1)],
      [["k", "ArrowUp"], "previous row", go(-1)],
      [["PageDown"], "a page down", () => this.choose(this.at + this.page)],
      [["PageUp"], "a page up", () => this.choose(this.at - this.page)],
      [["g", "Home"], "first row", () => this.choose(0)],
      [["G", "End"], "last row", () => this.choose(this.rows.length - 1)],
      [["Enter"], "open the row", () => this.rows.length && this.open(this.rows[this.at])],
    ];
  }

  close() {
    this.resizeObserver.disconnect();
  }
}

// Returns rows in the order of a sort key ("reward", "-turns"); unknown values come last.
function sorted(rows, sort, columns) {
  const value = columns.find((c) => c.key === sort?.replace("-", ""))?.value;
  if (!value) return rows;
  const factor = sort.startsWith("-") ? -1 : 1;
  const missing = (v) => v === null || v === undefined || v === "";
  return rows.map((row) => [value(row), row]).sort(([a], [b]) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    return factor * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  }).map(([, row]) => row);
}
