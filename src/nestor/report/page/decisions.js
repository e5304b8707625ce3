// The table of decisions, its search and filters.

const KINDS = {
  left: ["left the default", ({ left }) => (row) => left[row] === 1],
  all: ["all", () => () => true],
  cost: ["cost most", ({ left, share }) => (row) => left[row] === 1 && share[row] > 0],
  saved: ["saved most", ({ left, share }) => (row) => left[row] === 1 && share[row] < 0],
  other: ["differ between the policies",
    ({ other, answer }) => (row) => other[row] >= 0 && other[row] !== answer[row]],
  overridden: ["overridden in this page", null],
};

class DecisionView {
  constructor(report, overrides) {
    Object.assign(this, { report, overrides, table: null, decisions: null, marks: new Set() });
    this.query = document.getElementById("decision-query");
    this.kind = document.getElementById("decision-kind");
    this.error = document.getElementById("query-error");
    this.details = document.getElementById("details");
    this.query.addEventListener("input", () => this.filter());
    this.kind.addEventListener("change", () => this.filter(true));
    for (const [name, [text]] of Object.entries(KINDS)) {
      if (name === "other" && report.data.sides.length < 3) continue;
      const option = element("option", "", text);
      option.value = name;
      this.kind.append(option);
    }
  }

  /** Show the decisions under the policy that is chosen. */
  async open() {
    this.decisions = await readDecisions(this.report);
    if (this.kind.value === "left" && !this.decisions.columns.left.includes(1)) this.kind.value = "all";
    this.details.replaceChildren(element("p", "note", "Choose a decision to see its features."));
    const host = document.getElementById("decision-table");
    this.table = new VirtualTable(host, "Decisions", this.columns(), {
      choose: (row) => showDetails(this.details, this.report, this.decisions, this.overrides, row),
      toggle: (row) => this.toggle(row),
      marked: (row) => this.marks.has(row),
    });
    const credit = this.table.columns.findIndex((c) => c.title === "credit");
    this.table.sort = { column: credit, descending: false };
    await this.filter();
    const { unit, sides } = this.report.data;
    document.getElementById("credit-note").textContent =
      `Credit by function, in ${unit}: what the functions that a decision can reach changed against` +
      ` ${sides[0].name}, shared equally by the decisions that left the default there. It is no` +
      " measurement of one decision; those that were measured by compiling without them are in the column 'measured'.";
  }

  columns() {
    const { report, decisions } = this;
    const { columns, packed, measured } = decisions;
    const named = ["callee", "caller", "function"].filter((name) => columns[name]).map((name) => ({
      title: name, width: "minmax(6em, 2fr)",
      text: (row) => functionName(report, columns[name][row]),
    }));
    const answer = (title, values, absent = false) => ({
      title, width: "4.4em", value: (row) => values[row],
      text: (row) => (absent && values[row] < 0 ? "" : answerWord(packed.words, values[row])),
    });
    const left = ({ left: values }) => (row) => (values[row] ? "left" : "");
    const found = [
      ...named,
      {
        title: "module", width: "minmax(5em, 0.9fr)",
        text: (row) => report.modules.short[columns.module[row]],
        tip: (row) => report.modules.names[columns.module[row]],
      },
      answer("default", columns.default),
      { ...answer("answer", columns.answer), className: left(columns) },
    ];
    if (columns.other) {
      const theirs = report.data.sides[2 - report.policy].name;
      const hint = `what ${theirs} answers; empty where it is not asked`;
      found.push({ ...answer(theirs, columns.other, true), width: "6.2em", hint });
    }
    if (columns.logit) {
      found.push({
        title: "logit", width: "4.2em", numeric: true, hint: "the policy's margin; sorted by its size",
        text: (row) => exact.format(columns.logit[row]), value: (row) => Math.abs(columns.logit[row]),
      });
    }
    found.push({
      title: "credit", width: "4.9em", numeric: true, hint: "by function; negative is a saving",
      text: (row) => (columns.left[row] ? change(columns.share[row]) || "0" : ""),
      value: (row) => columns.share[row],
      className: (row) => (columns.left[row] ? changeClass(columns.share[row]) : ""),
    });
    if (measured.size) {
      found.push({
        title: "measured", width: "6.2em", numeric: true, hint: "compiled without this decision",
        text: (row) => (measured.has(row) ? change(measured.get(row)) || "0" : ""),
        value: (row) => measured.get(row) ?? 0,
        className: (row) => changeClass(measured.get(row) ?? 0),
      });
    }
    if (columns.effect) {
      found.push({
        title: "effect", width: "5.8em", text: (row) => packed.effects[columns.effect[row]] ?? "",
      });
    }
    return found;
  }

  /** Show what matches the search; after a new kind in the order that suits it. */
  async filter(reorder = false) {
    const { columns, rows } = this.decisions;
    const text = this.query.value;
    let tests;
    try {
      tests = await decisionTests(this.report, this.decisions, text);
      this.error.textContent = "";
    } catch (error) {
      this.error.textContent = error.message;
      return;
    }
    if (text !== this.query.value) return;  // typed on while a feature was read
    const kind = this.kind.value;
    tests.unshift(kind === "overridden" ? (row) => this.marks.has(row) : KINDS[kind][1](columns));
    const found = matching(rows, tests);
    if (reorder && (kind === "cost" || kind === "saved")) {
      const credit = this.table.columns.findIndex((c) => c.title === "credit");
      this.table.sort = { column: credit, descending: kind === "cost" };
    }
    this.table.show(found);
    document.getElementById("decision-count").textContent =
      `${number(found.length)} of ${number(rows)}`;
  }

  async toggle(row) {
    await this.overrides.toggle(this.decisions, row);
  }

  /** Mark the rows of the overrides, which may be several to a line. */
  async mark() {
    if (!this.decisions) return;
    this.marks.clear();
    if (this.overrides.lines.size) {
      const { kind, modules } = this.report.data.overrides;
      const { packed, columns, rows } = this.decisions;
      const ids = await column(kind === "site" ? packed.columns.site : packed.columns.id);
      const wanted = new Set([...this.overrides.lines.keys()].map((key) => BigInt(`0x${key.split(" ")[1]}`)));
      for (let row = 0; row < rows; row++) {
        if (!wanted.has(ids[row])) continue;
        const id = ids[row].toString(16).padStart(16, "0");
        const module = modules[columns.module[row]].split(" ")[1];
        if (this.overrides.lines.has(kind === "site" ? `site ${id} in ${module}` : `function ${id}`)) {
          this.marks.add(row);
        }
      }
    }
    this.table.redraw();
  }
}
