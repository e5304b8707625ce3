// A table of any length: only the rows in view are elements. Moved through by keyboard.

const ROW = 26;
const MOST_HEIGHT = 8_000_000;  // pixels; browsers have no taller elements
const PRINTED = 200;

class VirtualTable {
  /**
   * @param host the element to fill
   * @param label what the table is, for screen readers
   * @param columns [{title, width, text(row)}], and as wanted {numeric, hint: about the title,
   *   descending: how the first click sorts, value(row) to sort by, className(row), tip(row)}
   * @param actions {choose(row), toggle(row), marked(row)}, each optional
   */
  constructor(host, label, columns, actions = {}) {
    Object.assign(this, { host, columns, actions, rows: new Uint32Array(0), active: 0 });
    this.sort = { column: -1, descending: false };
    this.elements = new Map();
    host.replaceChildren();
    host.classList.add("table");
    this.head = element("div", "row head");
    this.head.setAttribute("role", "row");
    this.body = element("div", "body");
    this.body.tabIndex = 0;
    this.space = element("div", "space");
    this.space.setAttribute("role", "presentation");
    this.body.append(this.space);
    host.append(this.head, this.body);
    host.setAttribute("role", "presentation");
    this.body.setAttribute("role", "grid");
    this.body.setAttribute("aria-label", label);
    this.body.setAttribute("aria-colcount", String(columns.length));
    host.style.setProperty("--columns", columns.map((c) => c.width).join(" "));
    this.makeHead();
    this.body.addEventListener("scroll", () => this.draw());
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(this.body);
    window.addEventListener("beforeprint", () => this.print());
    window.addEventListener("afterprint", () => {
      this.printing = false;
      this.redraw();
    });
  }

  makeHead() {
    this.heads = this.columns.map((column, number) => {
      const cell = element("div", column.numeric ? "cell numeric" : "cell");
      cell.setAttribute("role", "columnheader");
      const button = element("button", "", column.title);
      if (column.hint) button.title = column.hint;
      button.addEventListener("click", () => this.sortBy(number));
      cell.append(button);
      this.head.append(cell);
      return cell;
    });
  }

  /** Show these rows, sorted as before. */
  show(rows) {
    this.rows = rows;
    this.active = Math.min(this.active, Math.max(0, rows.length - 1));
    this.order();
    this.body.setAttribute("aria-rowcount", String(rows.length));
    this.redraw();
  }

  sortBy(number, descending = null) {
    const same = this.sort.column === number;
    const first = Boolean(this.columns[number].descending);
    this.sort = { column: number, descending: descending ?? (same ? !this.sort.descending : first) };
    this.order();
    this.body.scrollTop = 0;
    this.active = 0;
    this.redraw();
  }

  order() {
    const { column, descending } = this.sort;
    this.heads.forEach((head, i) => {
      const order = i !== column ? "none" : descending ? "descending" : "ascending";
      head.setAttribute("aria-sort", order);
    });
    if (column < 0) return;
    const key = this.columns[column].value ?? this.columns[column].text;
    const keys = Array.from(this.rows, key);
    const sign = descending ? -1 : 1;
    const places = Uint32Array.from(keys.keys());
    const compare = typeof keys[0] === "string"
      ? (a, b) => (keys[a] < keys[b] ? -sign : keys[a] > keys[b] ? sign : a - b)
      : (a, b) => sign * (keys[a] - keys[b]) || a - b;
    places.sort(compare);
    this.rows = Uint32Array.from(places, (place) => this.rows[place]);
  }

  redraw() {
    for (const line of this.elements.values()) line.remove();
    this.elements.clear();
    const height = Math.min(this.rows.length * ROW, MOST_HEIGHT);
    this.space.style.height = `${height}px`;
    this.draw();
  }

  /** Return the first row in view, and the pixels at which it stands. */
  first() {
    const { scrollTop, clientHeight, scrollHeight } = this.body;
    if (this.rows.length * ROW <= MOST_HEIGHT) {
      const place = Math.floor(scrollTop / ROW);
      return [place, place * ROW];
    }
    const part = scrollTop / Math.max(1, scrollHeight - clientHeight);
    const last = this.rows.length - Math.floor(clientHeight / ROW);
    return [Math.floor(part * last), scrollTop];
  }

  draw() {
    if (this.printing) return;
    const [place, top] = this.first();
    const count = Math.ceil(this.body.clientHeight / ROW) + 1;
    const end = Math.min(this.rows.length, place + count);
    for (const [number, line] of this.elements) {
      if (number < place || number >= end) {
        line.remove();
        this.elements.delete(number);
      }
    }
    for (let number = place; number < end; number++) {
      let line = this.elements.get(number);
      if (!line) {
        line = this.line(number);
        this.elements.set(number, line);
        this.space.append(line);
      }
      line.style.top = `${top + (number - place) * ROW}px`;
      line.classList.toggle("active", number === this.active);
    }
    const active = this.elements.get(this.active);
    if (active) this.body.setAttribute("aria-activedescendant", active.id);
    else this.body.removeAttribute("aria-activedescendant");
  }

  line(number) {
    const row = this.rows[number];
    const line = element("div", "row");
    line.id = `${this.host.id}-${number}`;
    line.dataset.number = number;
    line.setAttribute("role", "row");
    line.setAttribute("aria-rowindex", String(number + 1));
    if (this.actions.marked?.(row)) line.classList.add("marked");
    for (const column of this.columns) {
      const text = column.text(row);
      const cell = element("div", column.numeric ? "cell numeric" : "cell", text);
      cell.setAttribute("role", "gridcell");
      const name = column.className?.(row);
      if (name) cell.classList.add(name);
      if (column.tip) cell.title = column.tip(row);
      else if (!column.numeric && text.length > 12) cell.title = text;
      line.append(cell);
    }
    return line;
  }

  move(number) {
    this.active = Math.max(0, Math.min(this.rows.length - 1, number));
    const { scrollHeight, clientHeight } = this.body;
    if (this.rows.length * ROW > MOST_HEIGHT) {
      const last = this.rows.length - Math.floor(clientHeight / ROW);
      const [place] = this.first();
      if (this.active < place || this.active >= place + Math.floor(clientHeight / ROW)) {
        this.body.scrollTop = (Math.min(this.active, last) / last) * (scrollHeight - clientHeight);
      }
    } else if (this.active * ROW < this.body.scrollTop) {
      this.body.scrollTop = this.active * ROW;
    } else if ((this.active + 1) * ROW > this.body.scrollTop + clientHeight) {
      this.body.scrollTop = (this.active + 1) * ROW - clientHeight;
    }
    this.draw();
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.body.clientHeight / ROW) - 1);
    const moves = {
      ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page,
      PageUp: this.active - page, Home: 0, End: this.rows.length - 1,
    };
    if (event.key in moves) this.move(moves[event.key]);
    else if (event.key === "Enter") this.actions.choose?.(this.rows[this.active]);
    else if (event.key === " ") this.toggle(this.active);
    else return;
    event.preventDefault();
  }

  click(event) {
    const line = event.target.closest(".row");
    if (!line || line === this.head) return;
    this.active = Number(line.dataset.number);
    this.draw();
    if (event.detail === 2) this.toggle(this.active);
    else this.actions.choose?.(this.rows[this.active]);
  }

  toggle(number) {
    if (!this.actions.toggle || !this.rows.length) return;
    this.actions.toggle(this.rows[number]);
  }

  /** Lay the first rows out as a plain list: paper does not scroll. */
  print() {
    this.printing = true;
    const end = Math.min(this.rows.length, PRINTED);
    for (const line of this.elements.values()) line.remove();
    this.elements.clear();
    for (let number = 0; number < end; number++) {
      const line = this.line(number);
      this.elements.set(number, line);
      this.space.append(line);
    }
  }
}
