// The program as a whole: figures, maps of modules and functions, and the tables of both.

/** Show the program's columns under each policy. */
function showFigures(host, report) {
  const { data } = report;
  host.replaceChildren();
  const table = element("table");
  const head = element("tr");
  head.append(element("th", "", ""), ...data.columns.map((name) => element("th", "", name)));
  table.append(head);
  const before = data.sides[0].columns;
  data.sides.forEach((side, i) => {
    const line = element("tr");
    const name = element("th", "", side.name);
    name.scope = "row";
    line.append(name);
    for (const columnName of data.columns) {
      const value = side.columns[columnName];
      const cell = element("td", "", value === undefined ? "" : number(value));
      if (i && value !== undefined) {
        const delta = percent(before[columnName], value);
        cell.append(element("span", changeClass(value - before[columnName]), ` ${delta}`));
      }
      line.append(cell);
    }
    table.append(line);
  });
  host.append(table);
}

/** Return the columns of a table of things with a score under each policy. */
function scoreColumns(report, scores) {
  const { data } = report;
  const before = scores[0];
  const columns = data.sides.map((side, i) => ({
    title: side.name, width: "6.5rem", numeric: true, descending: true,
    text: (row) => number(scores[i][row]), value: (row) => scores[i][row],
  }));
  const deltas = data.sides.slice(1).map((side, i) => ({
    title: data.sides.length > 2 ? `Δ ${side.name}` : "change", width: "7rem", numeric: true,
    hint: `${side.name} against ${data.sides[0].name}`,
    text: (row) => change(scores[i + 1][row] - before[row]),
    value: (row) => scores[i + 1][row] - before[row],
    className: (row) => changeClass(scores[i + 1][row] - before[row]),
  }));
  return [...columns, ...deltas];
}

/** Return the columns of how many questions were asked in a function, and how many left the default. */
function questionColumns(report) {
  const { functions, data } = report;
  return data.sides.slice(1).map((side, i) => ({
    title: data.sides.length > 2 ? `left, ${side.name}` : "left the default", width: "7rem",
    numeric: true, descending: true,
    hint: `questions in the function, and how many of them ${side.name} answers otherwise than ${data.sides[0].name}`,
    text: (row) => functions.asked[i][row]
      ? `${number(functions.left[i][row])} of ${number(functions.asked[i][row])}` : "",
    value: (row) => functions.left[i][row] + functions.asked[i][row] / 1e6,
  }));
}

/** Make the table of modules; a module leads to its functions in the maps. */
function moduleTable(report, overrides, choose) {
  const { names, scores, rows } = report.modules;
  const columns = [
    { title: "module", width: "minmax(10rem, 1fr)", text: (row) => names[row] },
    ...scoreColumns(report, scores),
  ];
  const keys = report.data.overrides.modules;
  const host = document.getElementById("module-table");
  const table = new VirtualTable(host, "Modules", columns, {
    choose,
    toggle: (row) => overrides.toggleModule(row),
    marked: (row) => overrides.lines.has(keys[row]),
  });
  table.show(Uint32Array.from({ length: rows }, (_, row) => row));
  table.sortBy(1 + report.data.sides.length, false);
  return table;
}

/** Draw both maps: of all modules, or of the functions of one. */
function showMaps(report, module, choose) {
  const { modules, functions, policy, data } = report;
  const after = policy + 1;
  const host = document.getElementById("maps");
  host.replaceChildren();
  let items;
  if (module === null) {
    items = modules.names.map((name, row) => ({
      name, short: modules.short[row], before: modules.scores[0][row],
      after: modules.scores[after][row], choose: () => choose(row),
    }));
  } else {
    items = [];
    for (let row = 0; row < functions.rows; row++) {
      if (functions.module[row] !== module) continue;
      items.push({
        name: functionName(report, functions.name[row]),
        before: functions.scores[0][row], after: functions.scores[after][row],
      });
    }
  }
  const sum = (name) => items.reduce((total, item) => total + item[name], 0);
  const [before, now] = [sum("before"), sum("after")];
  const most = Math.max(before, now) || 1;
  document.getElementById("map-title").textContent = module === null
    ? `Modules by ${data.quantity}` : `Functions of ${modules.names[module]}`;
  document.getElementById("map-up").hidden = module === null;
  const map = (title, key, total) => drawTreemap(
    host, `${title}: ${number(total)}`, items.map((item) => ({ ...item, value: item[key] })), total / most);
  map(data.sides[0].name, "before", before);
  map(data.sides[after].name, "after", now);
}

/** Make the table of functions; returns how to filter it. */
function functionTable(report, choose) {
  const { functions, modules, data } = report;
  const columns = [
    {
      title: "function", width: "minmax(12rem, 2fr)",
      text: (row) => functionName(report, functions.name[row]),
    },
    {
      title: "module", width: "minmax(6rem, 0.6fr)",
      text: (row) => modules.short[functions.module[row]],
      tip: (row) => modules.names[functions.module[row]],
    },
    ...scoreColumns(report, functions.scores),
    ...questionColumns(report),
  ];
  const places = functions.place.some((place) => place > 0);
  if (places) {
    columns.splice(2, 0, {
      title: "source", width: "minmax(6rem, 0.7fr)", text: (row) => report.places[functions.place[row]],
      cell: (row) => sourceElement(report, report.places[functions.place[row]], true),
      tip: (row) => report.places[functions.place[row]],
    });
  }
  const host = document.getElementById("function-table");
  const table = new VirtualTable(host, "Functions", columns, { choose });
  table.sort = { column: 2 + Number(places) + data.sides.length, descending: false };
  const query = document.getElementById("function-query");
  const changed = document.getElementById("function-changed");
  const filter = () => {
    const words = parseQuery(query.value).words;
    const tests = wordTests(report, words, functions.module, [functions.name], functions.place);
    const [before, ...after] = functions.scores;
    if (changed.checked) {
      tests.push((row) => after.some((scores) => Math.abs(scores[row] - before[row]) >= 0.05));
    }
    const rows = matching(functions.rows, tests);
    table.show(rows);
    document.getElementById("function-count").textContent =
      `${number(rows.length)} of ${number(functions.rows)}`;
  };
  query.addEventListener("input", filter);
  changed.addEventListener("change", filter);
  const counts = data.parts === "run"
    ? `A function counts with the ${data.unit} that it executes itself in the run.`
    : `A function counts as much as the build under ${data.sides[0].name} keeps of it: one of k equal copies` +
      " counts 1/k, and what the linker drops counts nothing.";
  document.getElementById("function-note").textContent =
    `${counts} Enter or a click shows the decisions about a function.`;
  filter();
  return table;
}
