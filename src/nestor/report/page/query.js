// Search: words in names, and comparisons of columns, such as "logit<0.5 callee_users>3 parse".

const COMPARISONS = {
  "=": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
};

const ALIASES = { credit: "share", reach: "change" };

/** Split a query into words and comparisons. */
function parseQuery(text) {
  const words = [];
  const tests = [];
  for (const part of text.trim().split(/\s+/)) {
    const found = /^([A-Za-z_]\w*)(<=|>=|!=|<|>|=)([-+−]?[\d.]+(?:e[-+]?\d+)?)$/.exec(part);
    if (found) {
      const value = Number(found[3].replace("−", "-"));
      tests.push({ name: found[1], compare: COMPARISONS[found[2]], value });
    } else if (part) {
      words.push(part.toLowerCase());
    }
  }
  return { words, tests };
}

/** Return which of the texts hold a word, as an array of 0 and 1. */
function holding(texts, others, word) {
  return Uint8Array.from(texts, (text, i) =>
    Number(text.toLowerCase().includes(word) || (others?.[i] ?? "").toLowerCase().includes(word)));
}

/** Return a test of rows for each word: some of these columns names it. */
function wordTests(report, words, modules, nameColumns) {
  return words.map((word) => {
    const inName = holding(report.names, report.readable, word);
    const inModule = holding(report.modules.names, null, word);
    return (row) => inModule[modules[row]] || nameColumns.some((names) => inName[names[row]]);
  });
}

/** Return the rows for which all tests hold. */
function matching(rows, tests) {
  const found = new Uint32Array(rows);
  let count = 0;
  for (let row = 0; row < rows; row++) {
    if (tests.every((test) => test(row))) found[count++] = row;
  }
  return found.subarray(0, count);
}

/** Return the tests of decisions for a query; reads the features that it names. */
async function decisionTests(report, decisions, text) {
  const { words, tests } = parseQuery(text);
  const { columns, packed } = decisions;
  const names = ["caller", "callee", "function"].filter((n) => columns[n]).map((n) => columns[n]);
  const found = wordTests(report, words, columns.module, names);
  for (const { name, compare, value } of tests) {
    const own = columns[ALIASES[name] ?? name];
    const feature = packed.features[name];
    if (!own && !feature) throw new Error(`there is no column ${name}`);
    const values = own ?? (await column(feature));
    found.push((row) => compare(values[row], value));
  }
  return found;
}
