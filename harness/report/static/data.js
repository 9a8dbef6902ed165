// ---- rows, cells and targets by their places, and the elements that they become ----
/** @type {Target[]} */
const targets = data.targets.map((target, index) => ({ ...target, index }));
/** @type {Row[]} */
const rows = data.cases
  .flatMap((found) =>
    found.variants.map((variant) => ({ ...variant, case: found, id: `${found.name}.${variant.name}` })),
  )
  .map((row, index) => ({
    ...row,
    index,
    cells: targets.map(({ id }, at) => ({
      ...data.cells[data.places[index * targets.length + at]],
      id: `${row.id}-${id}`,
      case: row.case.name,
      variant: row.name,
      target: id,
    })),
    steps: data.steps.variants[index],
  }));
data.cells = rows.flatMap(({ cells }) => cells);
const rowOf = new Map(rows.map((row) => [row.id, row]));
const targetOf = new Map(targets.map((target) => [target.id, target]));
/** @type {PlaceOf} */
const placeOf = (id) =>
  targets.flatMap(({ id: name, index }) => {
    const row = rowOf.get(id.slice(0, -name.length - 1));
    return row?.cells[index].id === id ? [{ row, column: index }] : [];
  })[0];
/** @type {Promise<void> | undefined} */
let late;
// The fields of cells that only a panel or a tab shows are unpacked for the first of them.
const whole = () =>
  (late ||= unpacked("late").then((fields) =>
    data.cells.forEach((cell, at) => Object.assign(cell, fields[at])),
  ));
/** @type {(target: Target) => boolean} */
const ran = (target) => Boolean(target.stamps);
// Targets with a measurement, in this run or before it.
const seen = new Set(data.cells.filter(({ basis }) => basis === "measured").map(({ target }) => target));

// The words for what is known of a cell, the same wherever one is shown.
const STATES = words.states;
// What a cell is drawn as: its class, but for a version that lacks what came later, for an engine that builds and is
// known to fail when it is run, and for a finding against a graph that was not run.
/** @type {(cell: Cell) => string} */
const drawnAs = (cell) =>
  cell.not_yet
    ? "not_yet"
    : cell.verdict === "fails_when_run"
      ? "fails_when_run"
      : cell.class === "not_run" && cell.basis && cell.static
        ? cell.static.state
        : cell.class;
/** @type {(cell: Cell) => string} */
const stateOf = (cell) => words.marks[drawnAs(cell)].state;
/** @type {(cell: Cell) => boolean} */
const known = (cell) => cell.basis !== null && (cell.class !== "not_run" || Boolean(cell.stands));
/** @type {(cell: Cell) => boolean} */
const failing = (cell) => known(cell) && ["lost", "wrong", "fails", "removed"].includes(stateOf(cell));
/** @type {(cell: Cell) => string} */
const basisOf = (cell) =>
  !cell.basis
    ? "not known"
    : cell.evidence === false
      ? "measured before"
      : cell.verdict === "fails_when_run"
        ? "reported"
        : cell.basis;
/** @type {(cell: Cell) => string} */
const yetOf = ({ not_yet: yet }) => (yet ? `${yet.what}, from ${yet.since} on` : "");
/** @type {(cell: Cell) => string} */
const verdictOf = (cell) =>
  cell.basis
    ? `${cell.text}${cell.not_yet ? ` (not there yet: ${yetOf(cell)})` : ""}, ${basisOf(cell)}`
    : cell.class === "not_applicable"
      ? "does not apply here"
      : cell.stale
        ? "out of date"
        : "not known";
/** @type {(cell: Cell) => Advice | null} */
const causeOf = (cell) => cell.diagnosis || (cell.signature ? data.signatures[cell.signature] : null) || null;
/** @type {(cell: Cell, row: Row) => Claim[]} */
const claimsOf = (cell, row) => cell.claims.map((index) => row.claims[index]);
/** @type {(cell: Cell) => string} */
const sourcesOf = (cell) => {
  const row = rowOf.get(`${cell.case}.${cell.variant}`);
  const read = row ? claimsOf(cell, row).filter(({ basis }) => basis === "reported") : [];
  return read.map(({ title, of }) => `${title}${of ? ` (${of})` : ""}`).join("; ");
};

// ---- elements: everything strangers wrote reaches the page as text nodes or attribute values, never as markup ----
const SVG = new Set(["svg", "rect", "circle", "line", "title"]);
/** @type {Make} */
const make = (tag, attributes, ...children) => {
  const element = SVG.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false)
      element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...nodes(children));
  return /** @type {HTMLElement} */ (element);
};
/** @type {(content: Content) => any[]} */
const nodes = (content) => /** @type {any[]} */ ([content]).flat(Infinity).filter(Boolean);
const naming =
  (/** @type {string} */ tag, /** @type {Attributes} */ attributes = {}) =>
  (/** @type {Content[]} */ ...children) =>
    make(tag, attributes, ...children);
const [para, aside, bold, mono, small, item, heading] = [
  naming("p"),
  naming("p", { class: "quiet" }),
  naming("b"),
  naming("code"),
  naming("small"),
  naming("li"),
  naming("h3"),
];
/** @type {Listed} */
const listed = (items, most = items.length, by = ", ") => [
  items.slice(0, most).map((one, at) => [at ? by : "", one]),
  items.length > most ? ` and ${items.length - most} more` : "",
];
/** @type {(url: string, text: string) => Element} */
const link = (url, text) =>
  /^https:\/\//.test(url)
    ? make("a", { href: url, rel: "noreferrer", target: "_blank" }, text)
    : make("span", {}, text);
/** @type {(urls: string[]) => Content} */
const aways = (urls) =>
  urls.length > 0 &&
  aside(urls.map((url) => [link(url, url.replace(/^https:\/\/(?:github\.com\/)?/, "")), " "]));
/** @type {(text: string, limit?: number) => string} */
const cut = (text, limit = 160) =>
  text.length > limit ? text.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, "") + "…" : text;
/** @type {(text: string) => string} */
const capital = (text) => (/^[a-z]+[ ,;:.]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text);
/** @type {(cell: Cell) => Element} */
const badge = (cell) => {
  const mark = words.marks[drawnAs(cell)];
  return make(
    "b",
    { class: `badge ${mark.shape} k-${mark.state} b-${cell.basis || "none"}`, "aria-hidden": "true" },
    mark.letters,
  );
};
/** @type {(id: string, text?: string) => Element} */
const cellLink = (id, text) =>
  make("a", { href: `#${encodeURIComponent(id)}`, class: "cellref" }, text || id);
/** @type {(id: string, text: Content) => Element} */
const errorLink = (id, text) => make("a", { href: `#error=${id}` }, text);
/** @type {Counted} */
const counted = (count, one, many) => `${count} ${count === 1 ? one : many || `${one}s`}`;
/** @type {(value: number | null | undefined) => string} */
const ms = (value) =>
  typeof value !== "number"
    ? ""
    : value < 0.1
      ? `${Number((value * 1000).toPrecision(3))} µs`
      : `${value < 1000 ? Number(value.toPrecision(3)) : value.toFixed(0)} ms`;
/** @type {Table} */
const table = (headings, lines, attributes) =>
  make(
    "div",
    { class: "wide", tabindex: "0", role: "region", "aria-label": headings.join(", ") },
    make(
      "table",
      { class: "plain", ...attributes },
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          headings.map((text) => make("th", { scope: "col" }, text)),
        ),
      ),
      make(
        "tbody",
        {},
        lines.map((line) =>
          make(
            "tr",
            {},
            line.map((entry) => make("td", {}, entry)),
          ),
        ),
      ),
    ),
  );
/** @type {(title: Content, ...content: Content[]) => HTMLElement} */
const fold = (title, ...content) => make("details", {}, make("summary", {}, title), ...content);
/** @type {(id: string, event: string, act: (event: any) => unknown) => void} */
const on = (id, event, act) => byId(id).addEventListener(event, act);
/** @type {Button} */
const button = (label, act, attributes) => {
  const made = make("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
};
// The content is made when it is asked for.
/** @type {(title: Content, content: () => Content) => HTMLElement} */
const folded = (title, content) => {
  const details = fold(title);
  details.addEventListener("toggle", () => {
    if (details.children.length === 1) details.append(...nodes(content()));
  });
  return details;
};
/** @type {(label: string, text: () => string) => Element | null} */
const copying = (label, text) => {
  const copy = button(
    label,
    () =>
      navigator.clipboard.writeText(text()).then(() => {
        copy.textContent = "Copied";
      }),
    { class: "copy" },
  );
  return navigator.clipboard ? copy : null;
};
/** @type {(when: string, lines: string[]) => Content[]} */
const reportElement = (when, lines) => [
  para(
    `${when} this report, look through it`,
    words.issues
      ? [" and file it at ", link(words.issues, words.issues)]
      : " and send it to whoever you have this page from",
    ".",
  ),
  make("pre", { tabindex: "0" }, lines.join("\n")),
  copying("Copy the report", () => lines.join("\n")),
];
/** @type {(text: string) => Element} */
const command = (text) =>
  make(
    "div",
    { class: "cmd" },
    make("pre", { tabindex: "0" }, text),
    copying("Copy", () => text),
  );
