const grid = byId("grid");
const panel = byId("panel");
const TITLE = document.title;

/** @type {Target[]} */
const targets = data.targets.map((target, index) => ({ ...target, index }));
const byTarget = new Map(targets.map((target) => [target.id, target]));
/** @type {Row[]} */
const rows = data.rows.map((row, index) => ({
  ...row, index, case: data.cases[row.case], wanted: row.wanted.map(([node, want, op]) => ({ node, want, op })), full: `${data.cases[row.case].name}.${row.name}`,
}));
const looks = data.looks;
/** @type {(row: number, column: number) => Look} */
const lookOf = (row, column) => looks[data.grid[row][column]];
const times = new Map(data.times.map((time) => [`${time.row} ${time.column}`, time]));
/** @type {(row: number, column: number) => Time | undefined} */
const timed = (row, column) => times.get(`${row} ${column}`);
/** @type {(row: number, column: number) => string} */
const idOf = (row, column) => `${rows[row].full}-${targets[column].id}`;
const rowOf = new Map(rows.map((row) => [row.full, row.index]));
/** @type {Map<string, [row: number, column: number]> | null} */
let places = null;
/** @type {(id: string) => [row: number, column: number] | null} */
const placeOf = (id) => {
  // Made when it is first asked for: the page may hold a hundred thousand ids.
  places ??= new Map(rows.flatMap((row) => targets.map((target) => /** @type {[string, [number, number]]} */ ([idOf(row.index, target.index), [row.index, target.index]]))));
  return places.get(id) ?? null;
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

// ---- what stands behind the script, so that nothing waits for it: the evidence of each row, and models ------------
// Also where somebody stops the loading of the page.
const parsed = document.readyState === "loading" ? new Promise((done) => { document.addEventListener("readystatechange", done); }) : Promise.resolve();
/** @type {Promise<Behind>} */
const behind = parsed.then(() => JSON.parse(byId("behind").textContent));
const chunkOf = behind.then(({ evidence: chunks }) => new Map(chunks.flatMap((chunk) => chunk.rows.map((row, at) => /** @type {const} */ ([row, { chunk, at }])))));
// The panel says what is wrong, where it is asked.
chunkOf.catch(() => {});
/** @type {(row: number) => Promise<Evidence | null>} */
const evidence = async (row) => {
  const found = (await chunkOf).get(row);
  return found ? (await opening(found.chunk))(found.at) : null;
};
/** @type {Promise<ArrayBuffer> | null} */
let models = null;
// Returns a model that the page holds, byte by byte a letter.
/** @type {(pieces: [start: number, length: number][]) => Promise<string>} */
const modelOf = async (pieces) => {
  models = models || behind.then((held) => inflated(held.models.packed).arrayBuffer());
  const all = await models;
  return pieces.map((piece) => Array.from(new Uint8Array(all, ...piece), (byte) => String.fromCharCode(byte)).join("")).join("");
};
