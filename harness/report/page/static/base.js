const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const grid = byId("grid");
const panel = byId("panel");
const TITLE = document.title;

const targets = data.targets.map((target, index) => ({ ...target, index }));
const byTarget = new Map(targets.map((target) => [target.id, target]));
const cases = data.cases.map(([name, title, summary, links]) => ({ name, title, summary, links }));
const rows = data.rows.map(([inCase, name, title, role, roleName, counterpart, tags, wanted, spans, differs, rest], index) => ({
  index, case: cases[inCase], name, title, role, roleName, counterpart, tags, wanted, spans, differs, rest,
  full: `${cases[inCase].name}[${name}]`,
}));
const LOOK = ["cls", "bucket", "letters", "classes", "corner", "under", "words", "known", "grade", "graded", "chip", "nodes", "why", "signature", "proofs", "flaky", "ran", "measured", "rest", "past"];
const looks = data.looks.map((entry) => Object.fromEntries(LOOK.map((key, index) => [key, entry[index]])));
const lookOf = (row, column) => looks[data.grid[row][column]];
const boxOf = (row, column) => {
  const found = data.boxes[row].find((entry) => entry[0] === column);
  if (!found) return null;
  const [, median, stack, ...interval] = found;
  // Samples that carry no comparison have no interval.
  return { median, stack, interval: interval.length ? interval : null };
};
const idOf = (row, column) => `${rows[row].full}-${targets[column].id}`;
const rowOf = new Map(rows.map((row) => [row.full, row.index]));
// A target's name may hold a hyphen, a variant's a bracket: the longest target that ends the id is its target.
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
const make = (tag, attributes, ...children) => {
  const element = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
};
const link = (url, text) =>
  /^https:\/\//.test(url) ? make("a", { href: url, rel: "noreferrer" }, text) : make("span", {}, text);
const cellLink = (id, text) => make("a", { href: "#" + encodeURIComponent(id), class: "cellref" }, text || id);
const cut = (text, limit = 160) => (text.length > limit ? text.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, "") + "…" : text);
const figures = (value, digits) => String(Number(value.toPrecision(digits)));
const ms = (value) => {
  if (typeof value !== "number") return "";
  return value < 0.1 ? `${figures(value * 1000, 3)} µs` : `${value < 1000 ? figures(value, 3) : value.toFixed(0)} ms`;
};
const timeOf = (row, column) => {
  const box = boxOf(row, column);
  return box ? (box.interval ? "" : "≈") + ms(box.median) : "";
};
const spoken = (row, column) => {
  const box = boxOf(row, column);
  return lookOf(row, column).words + (box ? `. median ${ms(box.median)}${box.interval ? "" : ", too noisy"}` : "");
};

// ---- evidence: unpacked when it is asked for ------------------------------------------------------------------
const chunkOf = new Map(data.evidence.flatMap(([, ...numbers], chunk) => numbers.map((row, at) => [row, [chunk, at]])));
const opened = new Map();
const unpack = async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(plain).text());
};
// `table` holds what occurs more than once in a chunk; {"$": n} stands for entry n.
const resolve = (value, table) => {
  if (Array.isArray(value)) return value.map((entry) => resolve(entry, table));
  if (value === null || typeof value !== "object") return value;
  if ("$" in value) return resolve(table[value.$], table);
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, resolve(entry, table)]));
};
const evidence = async (row) => {
  if (!chunkOf.has(row)) return null;
  const [chunk, at] = chunkOf.get(row);
  if (!opened.has(chunk)) opened.set(chunk, unpack(data.evidence[chunk][0]));
  const found = await opened.get(chunk);
  return resolve(found.rows[at], found.table);
};
