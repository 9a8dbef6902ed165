// ---- what the page's data are packed into -----------------------------------------------------------------------
/** @type {(id: string) => any} */
const byId = (id) => document.getElementById(id);
/** @type {(error: unknown) => string} */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));
const DIGITS = new Map([..."0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;.=:?@^_`{|}~"].map((letter, at) => [letter, at]));
// Five digits of 85 are four bytes; of the last ones those that are missing are the highest.
/** @type {(packed: string) => Uint8Array<ArrayBuffer>} */
const bytesOf = (packed) => {
  const bytes = new DataView(new ArrayBuffer(Math.ceil(packed.length / 5) * 4));
  for (let at = 0; at < packed.length; at += 5) {
    let value = 0;
    for (let digit = at; digit < at + 5; digit += 1) value = value * 85 + (DIGITS.get(packed[digit]) ?? 84);
    bytes.setUint32((at / 5) * 4, value);
  }
  return new Uint8Array(bytes.buffer, 0, Math.floor((packed.length * 4) / 5));
};
/** @type {(packed: string) => Response} */
const inflated = (packed) => new Response(new Blob([bytesOf(packed)]).stream().pipeThrough(new DecompressionStream("deflate")));
/** @type {(packed: string) => Promise<{ rows: unknown[]; table: unknown[] }>} */
const unpack = async (packed) => JSON.parse(await inflated(packed).text());
// Rows of named fields come as a table, and become objects by the names that stand in it.
/** @type {(table: { fields: string[]; rows: unknown[][] }) => object[]} */
const zipped = ({ fields, rows: lines }) => lines.map((line) => Object.fromEntries(fields.map((field, at) => [field, line[at]])));
// Rows come by their fields too.
/** @type {(columns: [field: string, values: unknown[]][]) => object[]} */
const downwards = (columns) => columns[0][1].map((_, at) => Object.fromEntries(columns.map(([field, values]) => [field, values[at]])));
// `table` holds what occurs more than once in a chunk; {"$": n} stands for entry n.
/** @type {(value: any, table: unknown[]) => any} */
const resolve = (value, table) => {
  if (Array.isArray(value)) return value.map((entry) => resolve(entry, table));
  if (value === null || typeof value !== "object") return value;
  if ("$" in value) return resolve(table[value.$], table);
  /** @type {any} */
  const made = Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, resolve(entry, table)]));
  if ("columns" in made) return downwards(Object.entries(made.columns));
  return "fields" in made && "rows" in made ? zipped(made) : made;
};
/** @type {Map<Chunk, Promise<(at: number) => any>>} */
const opened = new Map();
// Returns what has the entries of a chunk by their numbers. A chunk is unpacked once, an entry when it is asked for.
/** @type {(chunk: Chunk) => Promise<(at: number) => any>} */
const opening = (chunk) => {
  const found = opened.get(chunk) || unpack(chunk.packed).then(({ rows: packed, table }) => {
    /** @type {Map<number, any>} */
    const made = new Map();
    return (at) => {
      if (!made.has(at)) made.set(at, resolve(packed[at], table));
      return made.get(at);
    };
  });
  opened.set(chunk, found);
  return found;
};
// Returns the data: what the first screen needs unpacked, and the rest as it is. The steps are wanted next.
/** @type {() => Promise<PageData>} */
const allData = async () => {
  const held = JSON.parse(byId("data").textContent);
  try {
    const [start] = await Promise.all([held.start, held.steps, held.rowsOfSteps].map(opening));
    return { ...held, ...start(0) };
  } catch (error) {
    byId("stranger").textContent = `This browser cannot unpack the page's data (${messageOf(error)}): Chromium 80, Firefox 113 and Safari 16.4 can. Without scripts the page has more than here.`;
    byId("stranger").hidden = false;
    throw error;
  }
};
