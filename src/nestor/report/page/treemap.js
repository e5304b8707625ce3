// Treemaps: areas by score, colours by change. Squarified (Bruls, Huizing, van Wijk 2000).

const MOST_TILES = 300;

/** Lay out items {value} in a rectangle; returns {item, x, y, width, height}. */
function squarified(items, width, height) {
  const total = items.reduce((sum, item) => sum + item.value, 0);
  const tiles = [];
  if (!total || !width || !height) return tiles;
  const scale = (width * height) / total;
  let [x, y, w, h] = [0, 0, width, height];
  let place = 0;
  while (place < items.length) {
    const side = Math.min(w, h);
    const strip = [];
    let sum = 0;
    let worst = Infinity;
    while (place + strip.length < items.length) {
      const item = items[place + strip.length];
      const next = sum + item.value * scale;
      const largest = (strip[0] ?? item).value * scale;
      const smallest = item.value * scale;
      const ratio = Math.max((side * side * largest) / (next * next), (next * next) / (side * side * smallest));
      if (ratio > worst) break;
      worst = ratio;
      sum = next;
      strip.push(item);
    }
    const thick = sum / side;
    let along = 0;
    for (const item of strip) {
      const long = (item.value * scale) / thick;
      tiles.push(w >= h
        ? { item, x, y: y + along, width: thick, height: long }
        : { item, x: x + along, y, width: long, height: thick });
      along += long;
    }
    if (w >= h) [x, w] = [x + thick, w - thick];
    else [y, h] = [y + thick, h - thick];
    place += strip.length;
  }
  return tiles;
}

/** Keep the largest items, and sum the others up as one. */
function largest(items, rest) {
  const sorted = items.filter((item) => item.value > 0).sort((a, b) => b.value - a.value);
  if (sorted.length <= MOST_TILES) return sorted;
  const others = sorted.slice(MOST_TILES);
  const sum = (name) => others.reduce((total, item) => total + item[name], 0);
  const one = { name: rest(others.length), before: sum("before"), after: sum("after"), value: sum("value") };
  return [...sorted.slice(0, MOST_TILES), one].sort((a, b) => b.value - a.value);
}

/**
 * Draw one treemap into a host.
 * @param items [{name, before, after, value, choose}]
 * @param part the share of the host's height that is used, so that areas of two maps compare
 */
function drawTreemap(host, title, items, part) {
  const figure = element("figure", "map");
  const area = element("div", "area");
  figure.append(element("figcaption", "", title), area);
  host.append(figure);
  const width = area.clientWidth;
  const height = Math.round(area.clientHeight * part);
  const shown = largest(items, (count) => `${count} others`);
  for (const tile of squarified(shown, width, height)) {
    const { item } = tile;
    const button = element("button", "tile");
    const text = `${item.name}: ${number(item.before)} → ${number(item.after)} ${change(item.after - item.before)}`;
    button.title = text;
    button.setAttribute("aria-label", text);
    const relative = item.before ? (item.after - item.before) / item.before : 1;
    const strength = Math.min(1, Math.abs(relative) / 0.25);
    button.classList.add(changeClass(item.after - item.before) || "same");
    button.style.setProperty("--strength", `${Math.round(25 + 75 * strength)}%`);
    button.style.left = `${tile.x}px`;
    button.style.top = `${tile.y}px`;
    button.style.width = `${Math.max(0, tile.width - 1)}px`;
    button.style.height = `${Math.max(0, tile.height - 1)}px`;
    if (tile.width > 44 && tile.height > 17) {
      button.append(element("span", "", item.short ?? item.name));
      const delta = change(item.after - item.before);
      if (tile.height > 34 && delta) button.append(element("small", "", delta));
    }
    if (tile.width < 12 || tile.height < 8) button.tabIndex = -1;
    if (item.choose) button.addEventListener("click", item.choose);
    area.append(button);
  }
}
