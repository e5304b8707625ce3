// Charts as SVG: curves, and bars with intervals. Every mark has its numbers as a title.

const SVG = "http://www.w3.org/2000/svg";

/** Make an SVG element with attributes. */
function shape(tag, attributes, text = null) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  if (text !== null) made.textContent = text;
  return made;
}

/** Return about `count` round numbers that cover a range. */
function ticks(low, high, count) {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) found.push(n * step || 0);
  return found;
}

/** Return the lowest and highest of numbers, with some room between if they are equal. */
function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!(high > low)) [low, high] = [low - Math.abs(low || 1) / 10, high + Math.abs(high || 1) / 10];
  return [low, high];
}

/** Draw curves: {title, x, y, series: [{name, points: [[x, y], …]}]}. */
function drawChart(host, chart) {
  const [width, height, left, bottom] = [640, 260, 58, 34];
  const points = chart.series.flatMap((series) => series.points);
  const figure = element("figure", "chart");
  figure.append(element("figcaption", "", chart.title));
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  svg.setAttribute("aria-label", `${chart.title}: ${chart.y} against ${chart.x}, ${chart.series.map((s) => s.name).join(", ")}`);
  const [x0, x1] = extent(points.map((point) => point[0]));
  const [y0, y1] = extent(points.map((point) => point[1]));
  const across = (x) => left + ((x - x0) / (x1 - x0)) * (width - left - 12);
  const up = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - bottom - 20);
  for (const y of ticks(y0, y1, 5)) {
    svg.append(shape("line", { x1: left, x2: width - 12, y1: up(y), y2: up(y), class: "grid" }));
    svg.append(shape("text", { x: left - 6, y: up(y) + 4, class: "end" }, exact.format(y)));
  }
  for (const x of ticks(x0, x1, 6)) {
    svg.append(shape("text", { x: across(x), y: height - bottom + 15, class: "middle" }, exact.format(x)));
  }
  svg.append(shape("text", { x: (left + width) / 2, y: height - 4, class: "middle axis" }, chart.x));
  if (chart.y !== chart.title) svg.append(shape("text", { x: 4, y: 10, class: "axis" }, chart.y));
  chart.series.forEach((series, number) => {
    const path = series.points.map(([x, y]) => `${across(x).toFixed(1)},${up(y).toFixed(1)}`).join(" ");
    svg.append(shape("polyline", { points: path, class: `curve s${number % 6}` }));
    if (series.points.length > 60) return;
    for (const [x, y] of series.points) {
      const mark = shape("circle", { cx: across(x), cy: up(y), r: 2.6, class: `mark s${number % 6}` });
      mark.append(shape("title", {}, `${series.name}: ${exact.format(x)}, ${exact.format(y)}`));
      svg.append(mark);
    }
  });
  figure.append(svg);
  if (chart.series.length > 1) {
    const legend = element("p", "legend");
    chart.series.forEach((series, number) => {
      const line = shape("svg", { viewBox: "0 0 24 8", class: "key-line", "aria-hidden": "true" });
      line.append(shape("polyline", { points: "0,4 24,4", class: `curve s${number % 6}` }));
      legend.append(line, element("span", "", series.name));
    });
    figure.append(legend);
  }
  host.append(figure);
}

/** Draw bars: {title, unit, rows: [{name, value, low, high, note}]}; low and high may be null. */
function drawBars(host, bars) {
  const figure = element("figure", "bars");
  figure.append(element("figcaption", "", `${bars.title}, ${bars.unit}`));
  const ends = bars.rows.flatMap((row) => [row.value, row.low ?? row.value, row.high ?? row.value]);
  const [low, high] = extent([0, ...ends]);
  const place = (value) => (100 * (value - low)) / (high - low);
  for (const row of bars.rows) {
    const line = element("div", "bar-row");
    const track = element("div", "track");
    const bar = element("i", bars.plain ? "plain" : row.value < 0 ? "fill-saved" : "fill-cost");
    bar.style.left = `${place(Math.min(0, row.value))}%`;
    bar.style.width = `${place(Math.max(0, row.value)) - place(Math.min(0, row.value))}%`;
    track.append(bar);
    if (row.low !== null && row.low !== undefined) {
      const whisker = element("b");
      whisker.style.left = `${place(row.low)}%`;
      whisker.style.width = `${place(row.high) - place(row.low)}%`;
      track.append(whisker);
    }
    const interval = row.low === null || row.low === undefined
      ? "" : ` (${exact.format(row.low)} … ${exact.format(row.high)})`;
    line.append(
      element("span", "bar-name", row.name), track,
      element("span", "bar-value", `${exact.format(row.value)}${interval}`),
      element("span", "note", row.note ?? ""));
    figure.append(line);
  }
  host.append(figure);
}
