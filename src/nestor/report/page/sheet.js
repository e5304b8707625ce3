// A page of charts, bars and tables, one below the other; rows of a table may have details.

/** Draw sections into a host; in the details of a row, tables are plain. */
function drawSections(host, sections, plain = false) {
  let row = null;  // small charts stand side by side
  sections.forEach((section) => {
    if (!(section.kind === "chart" && section.small)) row = null;
    if (section.kind === "chart" && section.small) {
      if (!row) host.append(row = element("div", "charts"));
      drawChart(row, section);
    } else if (section.kind === "chart") drawChart(host, section);
    else if (section.kind === "bars") drawBars(host, section);
    else if (section.kind === "text") host.append(element("p", "note", section.text));
    else drawTable(host, section, plain);
  });
}

let tables = 0;

/** Draw a table: {title, columns: [{title, numeric}], rows: [[…]], details: [[section…]…] or null}. */
function drawTable(host, section, plain) {
  host.append(element("h2", "", section.title));
  if (plain || (section.rows.length <= 12 && !section.details)) {
    host.append(plainTable(section));
    return;
  }
  const bar = element("div", "bar");
  const label = element("label", "", "Search ");
  const query = element("input");
  query.type = "search";
  query.spellcheck = false;
  label.append(query);
  const count = element("output");
  bar.append(label, count);
  const split = element("div", section.details ? "split" : "");
  const place = element("div", "short");
  place.id = `table-${tables++}`;
  split.append(place);
  host.append(bar, split);
  const aside = element("aside", "details");
  if (section.details) {
    aside.setAttribute("aria-live", "polite");
    aside.setAttribute("aria-label", `The chosen row of ${section.title}`);
    aside.append(element("p", "note", "Choose a row to see more."));
    split.append(aside);
  }
  const { rows } = section;
  const columns = section.columns.map((column, i) => ({
    title: column.title, hint: column.hint, numeric: column.numeric, descending: column.numeric,
    width: column.numeric ? "minmax(3.6rem, 0.5fr)" : "minmax(5rem, 1.5fr)",
    text: (row) => cellText(rows[row][i]),
    value: (row) => rows[row][i] ?? (column.numeric ? -Infinity : ""),
  }));
  const choose = (row) => {
    aside.replaceChildren();
    drawSections(aside, section.details[row], true);
  };
  const table = new VirtualTable(place, section.title, columns, section.details ? { choose } : {});
  const texts = rows.map((row) => row.map(cellText).join(" ").toLowerCase());
  const filter = () => {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = matching(rows.length, words.map((word) => (row) => texts[row].includes(word)));
    table.show(found);
    count.textContent = `${number(found.length)} of ${number(rows.length)}`;
  };
  query.addEventListener("input", filter);
  filter();
  if (section.details && rows.length) choose(table.rows[0]);
}

function cellText(value) {
  return typeof value === "number" ? exact.format(value).replace("-", "−") : (value ?? "");
}

/** Make a small table of plain elements. */
function plainTable(section) {
  const table = element("table", "plain");
  const head = element("tr");
  for (const column of section.columns) {
    const cell = element("th", column.numeric ? "numeric" : "", column.title);
    cell.scope = "col";
    if (column.hint) cell.title = column.hint;
    head.append(cell);
  }
  table.append(head);
  for (const row of section.rows) {
    const line = element("tr", row.at(-1) === true ? "marked" : "");
    section.columns.forEach((column, i) => {
      line.append(element("td", column.numeric ? "numeric" : "", cellText(row[i])));
    });
    table.append(line);
  }
  return table;
}

async function start() {
  const data = await json(Number(document.body.dataset.first));
  document.title = `${data.title} · Nestor report`;
  document.getElementById("title").textContent = data.title;
  document.getElementById("subtitle").textContent = data.subtitle;
  drawSections(document.querySelector("main"), data.sections);
  document.body.dataset.ready = String(Math.round(performance.now()));
}

start().catch((error) => {
  const message = element("p", "", `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`);
  message.setAttribute("role", "alert");
  document.querySelector("main").prepend(message);
});
