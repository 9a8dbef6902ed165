/** @type {PageData} */
const data = JSON.parse(document.getElementById("data")?.textContent || "{}");
/** @type {(id: string) => any} */
const byId = (id) => document.getElementById(id);
const grid = byId("grid");
const panel = byId("panel");
const TITLE = document.title;

// Rows of named fields come as a table, and become objects by the names that stand in it.
/** @type {<T>(table: Table<T>) => T[]} */
const zipped = ({ fields, rows: lines }) => lines.map((line) => /** @type {any} */ (Object.fromEntries(fields.map((field, at) => [field, line[at]]))));
/** @type {Target[]} */
const targets = data.targets.map((target, index) => ({ ...target, index }));
const byTarget = new Map(targets.map((target) => [target.id, target]));
/** @type {Row[]} */
const rows = zipped(data.rows).map((row, index) => ({
  ...row, index, case: data.cases[row.case], wanted: row.wanted.map(([node, want, op]) => ({ node, want, op })), full: `${data.cases[row.case].name}[${row.name}]`,
}));
const looks = zipped(data.looks);
// What is only guessed is shown where the reader asks for it: other looks, other sentences, other steps.
const asked = { guesses: false };
const plainGrid = data.grid;
/** @type {(row: Row) => Span[]} */
const spansOf = (row) => row.spans.map((span) => ({ ...span, text: (asked.guesses && span.guesses) || span.text })).filter((span) => span.text);
/** @type {(row: number, column: number) => Look} */
const lookOf = (row, column) => looks[data.grid[row][column]];
const times = new Map(zipped(data.times).map((time) => [`${time.row} ${time.column}`, time]));
/** @type {(row: number, column: number) => Time | undefined} */
const timed = (row, column) => times.get(`${row} ${column}`);
/** @type {(error: unknown) => string} */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));
/** @type {(row: number, column: number) => string} */
const idOf = (row, column) => `${rows[row].full}-${targets[column].id}`;
const rowOf = new Map(rows.map((row) => [row.full, row.index]));
// A target's name may hold a hyphen, a variant's a bracket: the longest target that ends the id is its target.
/** @type {(id: string) => [row: number, column: number] | null} */
const placeOf = (id) => {
  const fits = targets.filter((target) => id.endsWith("-" + target.id)).sort((one, two) => two.id.length - one.id.length);
  for (const target of fits) {
    const row = rowOf.get(id.slice(0, -target.id.length - 1));
    if (row !== undefined) return [row, target.index];
  }
  return null;
};

// Everything strangers wrote reaches the page as text nodes or attribute values, never as markup.
const SVG = new Set(["svg", "g", "rect", "circle", "line", "path", "text", "tspan", "title", "defs", "pattern", "marker"]);
/** @type {(tag: string, attributes?: Attributes, ...children: Content[]) => HTMLElement} */
const make = (tag, attributes, ...children) => {
  const element = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(.../** @type {any[]} */ (children).flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return /** @type {HTMLElement} */ (element);
};
/** @type {(url: string, text: string) => Element} */
const link = (url, text) =>
  /^https:\/\//.test(url) ? make("a", { href: url, rel: "noreferrer" }, text) : make("span", {}, text);
/** @type {(id: string, text?: string) => Element} */
const cellLink = (id, text) => make("a", { href: "#" + encodeURIComponent(id), class: "cellref" }, text || id);
/** @type {(text: string, limit?: number) => string} */
const cut = (text, limit = 160) => (text.length > limit ? text.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, "") + "…" : text);
/** @type {(value: number, digits: number) => string} */
const figures = (value, digits) => String(Number(value.toPrecision(digits)));
/** @type {(value: number | null | undefined) => string} */
const ms = (value) => {
  if (typeof value !== "number") return "";
  return value < 0.1 ? `${figures(value * 1000, 3)} µs` : `${value < 1000 ? figures(value, 3) : value.toFixed(0)} ms`;
};
/** @type {(row: number, column: number) => string} */
const timeOf = (row, column) => {
  const time = timed(row, column);
  return time ? (time.noisy ? "≈" : "") + ms(time.median) : "";
};
/** @type {(row: number, column: number) => string} */
const spoken = (row, column) => {
  const time = timed(row, column);
  return lookOf(row, column).words + (time ? `. median ${ms(time.median)}${time.noisy ? ", too noisy" : ""}` : "");
};

// ---- what is packed: unpacked when it is asked for -------------------------------------------------------------
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
/** @type {Promise<ArrayBuffer> | null} */
let models = null;
// Returns a model that the page holds, byte by byte a letter.
/** @type {(pieces: [start: number, length: number][]) => Promise<string>} */
const modelOf = async (pieces) => {
  models = models || inflated(data.models.packed).arrayBuffer();
  const all = await models;
  return pieces.map((piece) => Array.from(new Uint8Array(all, ...piece), (byte) => String.fromCharCode(byte)).join("")).join("");
};
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
/** @type {Map<Chunk, Promise<any[]>>} */
const opened = new Map();
// Returns the rows of a chunk; each is unpacked once.
/** @type {(chunk: Chunk) => Promise<any[]>} */
const opening = (chunk) => {
  const found = opened.get(chunk) || unpack(chunk.packed).then(({ rows: packed, table }) => packed.map((row) => resolve(row, table)));
  opened.set(chunk, found);
  return found;
};
const chunkOf = new Map(data.evidence.flatMap((chunk) => chunk.rows.map((row, at) => /** @type {const} */ ([row, { chunk, at }]))));
/** @type {(row: number) => Promise<Evidence | null>} */
const evidence = async (row) => {
  const found = chunkOf.get(row);
  return found ? (await opening(found.chunk))[found.at] : null;
};
