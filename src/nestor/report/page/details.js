// One decision in full: names, answers, credit, features.

/** Add a term and its description to a list. */
function term(list, name, text, className = "") {
  list.append(element("dt", "", name), element("dd", className, text));
}

/** Show a decision beside the table. */
async function showDetails(host, report, decisions, overrides, row) {
  const { columns, packed, measured } = decisions;
  const key = await overrides.keyOf(decisions, row);
  const features = await columnsOf(packed.features);
  host.replaceChildren();
  const heads = ["callee", "caller", "function"].filter((name) => columns[name]);
  const list = element("dl");
  for (const name of heads) {
    term(list, name, functionName(report, columns[name][row]), "name");
  }
  term(list, "default", answerWord(packed.words, columns.default[row]));
  term(list, "answer", answerWord(packed.words, columns.answer[row]));
  if (columns.overridden?.[row]) term(list, "by", "an override");
  if (columns.logit) term(list, "logit", exact.format(columns.logit[row]));
  if (columns.effect) term(list, "effect", packed.effects[columns.effect[row]] ?? "");
  const { unit } = report.data;
  if (columns.left[row]) {
    const share = columns.share[row];
    const text = `${change(share) || "0"} ${unit}, its share of ${change(columns.change[row]) || "0"} in the functions that it can reach`;
    term(list, "credit", text, changeClass(share));
  }
  if (measured.has(row)) {
    const value = measured.get(row);
    term(list, "measured", `${change(value) || "0"} ${unit}, by compiling the module without it`, changeClass(value));
  }
  const button = element("button", "primary");
  const label = () => {
    const add = report.data.overrides.kind === "site" ? "Override this decision" : "Leave this function to stock";
    button.textContent = overrides.lines.has(key) ? "Remove the override" : add;
  };
  label();
  button.addEventListener("click", async () => {
    await overrides.toggle(decisions, row);
    label();
  });
  host.append(element("h2", "", "Decision"), list, button, element("code", "key", key));
  if (Object.keys(features).length) showFeatures(host, features, row);
  const places = element("dl");
  term(places, "module", report.modules.names[columns.module[row]], "name");
  for (const name of heads) {
    const place = columns[name][row];
    if (report.readable[place]) term(places, name, report.names[place], "name symbol");
  }
  host.append(element("h2", "", "Module and symbols"), places);
}

/** List the features of a decision; zeros by name only. */
function showFeatures(host, features, row) {
  const table = element("dl", "features");
  const zero = [];
  for (const name of Object.keys(features)) {
    const value = Number(features[name][row]);
    if (value === 0) zero.push(name);
    else term(table, name, exact.format(value));
  }
  host.append(element("h2", "", "Features"), table);
  if (zero.length) host.append(element("p", "note", `0: ${zero.join(", ")}`));
}
