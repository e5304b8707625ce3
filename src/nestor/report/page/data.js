// Reading the data: blobs of the page, inflated when they are first needed.

const ARRAYS = {
  u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array, i4: Int32Array,
  f4: Float32Array, f8: Float64Array, u8: BigUint64Array,
};

const loaded = new Map();

/** Return the bytes of a blob as an ArrayBuffer. */
async function blob(place) {
  const text = document.getElementById(`blob-${place}`).textContent;
  let bytes;
  if (Uint8Array.fromBase64) {
    bytes = Uint8Array.fromBase64(text);
  } else {
    const characters = atob(text);
    bytes = new Uint8Array(characters.length);
    for (let i = 0; i < characters.length; i++) bytes[i] = characters.charCodeAt(i);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** Return the plain data of a blob of JSON. */
async function json(place) {
  return JSON.parse(new TextDecoder().decode(await blob(place)));
}

/** Return a column as a typed array; its blob is read once. */
function column(description) {
  if (!loaded.has(description.blob)) {
    const read = blob(description.blob).then((buffer) => new ARRAYS[description.type](buffer));
    loaded.set(description.blob, read);
  }
  return loaded.get(description.blob);
}

/** Return an object of columns. */
async function columnsOf(descriptions) {
  const names = Object.keys(descriptions);
  const arrays = await Promise.all(names.map((name) => column(descriptions[name])));
  return Object.fromEntries(names.map((name, i) => [name, arrays[i]]));
}

/** Read everything that the first view needs. */
async function readReport() {
  const data = await json(Number(document.body.dataset.first));
  const [names, readable, moduleScores, functionScores, module, name] = await Promise.all([
    json(data.names),
    json(data.readable),
    Promise.all(data.modules.scores.map(column)),
    Promise.all(data.functions.scores.map(column)),
    column(data.functions.module),
    column(data.functions.name),
  ]);
  const functions = { rows: data.functions.rows, module, name, scores: functionScores };
  const decisions = data.decisions.map(() => null);
  return {
    data, names, readable, functions, decisions,
    modules: {
      rows: data.modules.rows, names: data.modules.names, short: shortened(data.modules.names),
      scores: moduleScores,
    },
    policy: 0,
  };
}

/** Return the decisions under the policy that is shown; read once. */
async function readDecisions(report) {
  const { policy } = report;
  if (report.decisions[policy] === null) {
    const packed = report.data.decisions[policy];
    const wanted = { ...packed.columns };
    delete wanted.site;  // 8 bytes a row: read when an override needs it
    delete wanted.id;
    const [columns, measured] = await Promise.all([columnsOf(wanted), json(packed.measured)]);
    report.decisions[policy] = {
      rows: packed.rows, columns, packed, measured: new Map(measured),
    };
  }
  return report.decisions[policy];
}
