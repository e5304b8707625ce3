// Text and elements. Whatever comes from a log is put in as text, never as markup.

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });

/** Make an element with a class and a text. */
function element(tag, className = "", text = null) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== null) made.textContent = text;
  return made;
}

/** Return a number as text. */
function number(value) {
  return numbers.format(value).replace("-", "−");
}

/** Return a change with its sign; empty for none. */
function change(value) {
  if (Math.abs(value) < 0.05) return "";
  return (value > 0 ? "+" : "") + number(value);
}

/** Return a change in per cent. */
function percent(before, after) {
  if (!before) return after ? "new" : "";
  const value = (100 * (after - before)) / before;
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(2)} %`;
}

/** Return the class that colours a change. */
function changeClass(value) {
  return value < -0.05 ? "saved" : value > 0.05 ? "cost" : "";
}

/** Return a function's name as people write it. */
function functionName(report, place) {
  return report.readable[place] || report.names[place];
}

/** Return the shortest ends of paths that tell each from the others, at least their last parts. */
function shortened(paths) {
  const ends = (length) => paths.map((path) => path.split("/").slice(-length).join("/"));
  const most = Math.max(1, ...paths.map((path) => path.split("/").length));
  const found = ends(1);
  for (let length = 2; length <= most; length++) {
    const count = new Map();
    for (const text of found) count.set(text, (count.get(text) ?? 0) + 1);
    if (count.size === paths.length) break;
    ends(length).forEach((text, i) => {
      if (count.get(found[i]) > 1) found[i] = text;
    });
  }
  return found;
}

/** Return an answer in words. */
function answerWord(words, value) {
  return words[String(value)] ?? exact.format(value);
}

/** Return text in one line: what a name holds must not begin another line of a file. */
function oneLine(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ");
}
