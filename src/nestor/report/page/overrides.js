// The overrides editor: lines that were clicked together, as the text of a file.

class Overrides {
  /** @param changed is called after every change */
  constructor(report, changed) {
    this.report = report;
    this.changed = changed;
    this.sets = report.data.decisions.map(() => new Map());
  }

  /** The overrides for the policy that is shown: comments and answers by key. */
  get lines() {
    return this.sets[this.report.policy];
  }

  /** Return the key of the override of a decision. */
  async keyOf(decisions, row) {
    const { kind, modules } = this.report.data.overrides;
    const { packed, columns } = decisions;
    const ids = await column(kind === "site" ? packed.columns.site : packed.columns.id);
    const id = ids[row].toString(16).padStart(16, "0");
    if (kind !== "site") return `function ${id}`;
    return `site ${id} in ${modules[columns.module[row]].split(" ")[1]}`;
  }

  /** Add the override that answers a decision the other way, or remove it. */
  async toggle(decisions, row) {
    const { kind, answers } = this.report.data.overrides;
    const { columns } = decisions;
    const key = await this.keyOf(decisions, row);
    const names = ["callee", "caller", "function"].filter((n) => columns[n]);
    const about = names.map((n) => functionName(this.report, columns[n][row])).join(" in ");
    const answer = kind === "site" ? answers[columns.answer[row] > 0 ? 0 : 1] : "stock";
    this.flip(key, answer, about);
  }

  /** Add an override that leaves a module to stock, or remove it. */
  toggleModule(module) {
    const { modules } = this.report.data.overrides;
    this.flip(modules[module], "stock", this.report.modules.names[module]);
  }

  flip(key, answer, about) {
    if (this.lines.has(key)) this.lines.delete(key);
    else this.lines.set(key, { answer, comment: oneLine(about) });
    this.changed();
  }

  clear() {
    this.lines.clear();
    this.changed();
  }

  /** Return the text of the file. */
  text() {
    const { data, policy } = this.report;
    const side = data.sides[policy + 1];
    const title = [data.overrides.header, `# program ${oneLine(data.program)}`,
      `# policy ${oneLine(side.policy)} ${side.digest}`];
    // The second word is the call or the function; of two lines about it the older may be stronger.
    const collected = new Set([...this.lines.keys()].map((key) => key.split(" ")[1]));
    const base = data.overrides.base.filter((line) => !collected.has(line.split(" ")[1]));
    const keys = [...this.lines.keys()].sort();
    const lines = keys.map((key) => {
      const { answer, comment } = this.lines.get(key);
      return `${key} ${answer}  # ${comment}`;
    });
    return [...title, ...base, ...lines].join("\n") + "\n";
  }

  /** Fill the panel. */
  show() {
    document.getElementById("count").textContent = String(this.lines.size);
    document.getElementById("override-text").value = this.text();
    const list = document.getElementById("override-list");
    list.replaceChildren();
    for (const key of [...this.lines.keys()].sort()) {
      const { answer, comment } = this.lines.get(key);
      const item = element("li");
      const button = element("button", "", "remove");
      button.setAttribute("aria-label", `Remove ${key}`);
      button.addEventListener("click", () => {
        this.lines.delete(key);
        this.changed();
      });
      item.append(button, element("code", "", `${key} ${answer}`), element("span", "", comment));
      list.append(item);
    }
    const name = oneLine(this.report.data.sides[this.report.policy + 1].policy);
    document.getElementById("override-note").textContent =
      `In use: nestor clang ${name} --overrides overrides.txt -- ${this.report.data.level} -c FILE.` +
      " Answers stand above the policy's" + (this.report.data.overrides.kind === "site"
      ? "; a line for a call also answers for copies of the call." : ", function by function.");
  }
}

/** Wire the buttons of the panel. */
function connectOverrides(overrides) {
  const said = document.getElementById("copied");
  const area = document.getElementById("override-text");
  document.getElementById("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(overrides.text());
    } catch {  // no permission, or opened from a file: the older way
      area.select();
      document.execCommand("copy");
    }
    said.textContent = "Copied.";
  });
  document.getElementById("save").addEventListener("click", () => {
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([overrides.text()], { type: "text/plain" }));
    link.download = "overrides.txt";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    said.textContent = "Saved.";
  });
  document.getElementById("clear").addEventListener("click", () => {
    overrides.clear();
    said.textContent = "";
  });
}
