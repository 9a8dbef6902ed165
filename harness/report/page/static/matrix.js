// ---- the matrix: rows are static where the page has them, else made as far as they are scrolled to --------------
const STATIC = !grid.hasAttribute("data-drawn");
const BATCH = 10;
let watch = () => {};
// Rows beyond the first ones wait for what stands above the matrix.
let early = true;
const goOn = () => { early = false; watch(); };
/** @type {HTMLElement} */
const scroller = grid.closest(".scroller");
/** @type {HTMLTableCellElement[]} */
const families = [...grid.querySelectorAll(".families th[data-family]")];
/** @type {HTMLTableCellElement[]} */
const parts = [...grid.querySelectorAll(".gpus th")];
/** @type {HTMLTableCellElement[]} */
const heads = [...grid.querySelectorAll(".targets th")];
const firsts = new Set(heads.map((head, index) => (head.classList.contains("first") ? index : -1)));
/** @type {Map<Case, HTMLTableSectionElement>} */
const bodies = new Map();
/** @type {HTMLElement[]} */
const elements = [];
/** @type {HTMLAnchorElement[][]} */
const links = [];
let columns = targets.map(() => true);
let matching = order;
let lines = linesOf(matching);
/** @type {boolean[] | null} */
let hits = null;
let drawn = 0;

/** @type {(look: Look) => Element} */
const badge = (look) => make("b", { class: `badge ${look.classes}` }, look.letters);
/** @type {(anchor: HTMLAnchorElement, row: number, column: number) => void} */
const dress = (anchor, row, column) => {
  anchor.href = "#" + encodeURIComponent(idOf(row, column));
  anchor.setAttribute("aria-label", `${cut(rows[row].name)} on ${targets[column].id}. ${spoken(row, column)}. Shown: ${anchor.textContent.trim()}`);
  anchor.tabIndex = -1;
};
// Cells that look alike are copies of one: of thousands there are a few dozen looks.
/** @type {Map<Look, HTMLElement>} */
const cellOf = new Map();
/** @type {(look: Look) => HTMLElement} */
const cellLike = (look) => {
  const found = cellOf.get(look) || make("td", { class: look.classes }, make("a", {}, badge(look), look.corner ? [" ", make("sup", {}, look.corner)] : null,
    look.under ? [" ", make("i", { class: look.under === look.chip ? "chip" : null }, look.under)] : null));
  cellOf.set(look, found);
  return /** @type {HTMLElement} */ (found.cloneNode(true));
};
/** @type {(row: number, column: number) => Element} */
const tableCell = (row, column) => {
  const made = cellLike(lookOf(row, column));
  const time = timeOf(row, column);
  made.title = spoken(row, column);
  if (firsts.has(column)) made.classList.add("first");
  if (time) made.firstElementChild?.append(" ", make("i", { class: "time" }, time));
  return made;
};
/** @type {(row: Row) => HTMLElement} */
const rowElement = (row) => make("tr", { class: "variant" }, make("th", { scope: "row" }, make("div", { class: "row" },
  make("div", { class: "head" }, make("code", { title: cut(row.title, 400) }, cut(row.name)), " ",
    make("span", { class: `role r-${row.role}` }, row.role_name, row.counterpart ? make("span", { class: "of" }, ` of ${cut(row.counterpart)}`) : null),
    row.tags.length ? [" ", make("span", { class: "tags" }, cut(row.tags.join(" ")))] : null),
  make("div", { class: "claim" }, cut(row.title)),
  row.spans.map(({ series, text }) => make("div", { class: "span" }, make("b", {}, series), " ", text)))),
targets.map((_, column) => tableCell(row.index, column)));
/** @type {(found: Case) => any} */
const caseElement = (found) => {
  const head = make("tr", { class: "case" }, make("th", { scope: "rowgroup", colspan: targets.length + 1 },
    make("div", {}, make("h3", {}, cut(found.title)), " ", make("code", {}, cut(found.name)),
      make("p", {}, cut(found.summary, 1000), found.links.map(({ url, title }) => [" ", link(url, cut(title))])))));
  addTeller(head, found.name);
  return make("tbody", {}, head);
};
/** @type {Against | null} */
let against = null;
/** @type {(row: number, column: number) => string} */
const timeSaid = (row, column) => (against ? against.said(row, column) : timeOf(row, column));
/** @type {(row: number) => void} */
const measure = (row) => links[row].forEach((anchor, column) => {
  const time = anchor.querySelector(".time");
  if (time) time.textContent = timeSaid(row, column);
  dress(anchor, row, column);
});
/** @type {(row: number, element: HTMLElement) => void} */
const adopt = (row, element) => {
  elements[row] = element;
  links[row] = [...element.querySelectorAll("td > a")];
  addTeller(element, rows[row].name);
  if (against) measure(row);
  else links[row].forEach((anchor, column) => dress(anchor, row, column));
};
// What stands under the badges: "" for precision and latency, one of the two, or "against" a column.
let metricWanted = "";
/** @type {(metric: string, column: number) => Promise<void>} */
const showMetric = async (metric, column) => {
  const wanted = metric === "against" ? `${column}` : "";
  grid.dataset.metric = metric;
  if (wanted === metricWanted) return;
  metricWanted = wanted;
  const found = wanted ? await compareWith(column) : null;
  if (wanted !== metricWanted) return;
  against = found;
  links.forEach((_, row) => measure(row));
};
/** @type {(row: number) => void} */
const show = (row) => {
  links[row].forEach((anchor, column) => {
    const cell = /** @type {HTMLElement} */ (anchor.parentElement);
    cell.hidden = !columns[column];
    cell.classList.toggle("hit", Boolean(hits && columns[column] && hits[data.grid[row][column]]));
  });
  showSpans(row);
};
/** @type {(line: Line) => HTMLElement} */
const lineElement = (line) => {
  if (typeof line !== "number") return drawFold(line);
  if (!elements[line]) adopt(line, rowElement(rows[line]));
  show(line);
  return elements[line];
};
/** @type {(many: number) => void} */
const drawMore = (many) => {
  const until = Math.min(lines.length, drawn + many);
  for (; drawn < until; drawn += 1) {
    const line = lines[drawn];
    const inCase = rows[typeof line === "number" ? line : line.rows[0]].case;
    const body = bodies.get(inCase) || caseElement(inCase);
    bodies.set(inCase, body);
    if (body.parentElement !== grid) grid.append(body);
    body.append(lineElement(line));
    body.rows[0].cells[0].colSpan = columns.filter(Boolean).length + 1;
  }
};
if (STATIC) {
  [...grid.querySelectorAll("tr.variant")].forEach((element, row) => adopt(row, element));
  [...grid.querySelectorAll("tr.case")].forEach((element, at) => addTeller(element, data.cases[at].name));
  for (const { rows: [first, ...rest] } of folds) elements[first].after(...rest.map((row) => elements[row]));
} else {
  const sentinel = byId("more");
  // The margin is as wide because the sentinel is no wider than the window: scrolled sideways, it would be out of sight.
  const more = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting) || drawn === lines.length) return;
    drawMore(BATCH);
    watch();
  }, { root: scroller, rootMargin: "300px 1000000px" });
  // An observer speaks when a crossing changes; observed anew it speaks of a sentinel that is still in view.
  watch = () => { more.unobserve(sentinel); more.observe(sentinel); };
}
const drawHeads = () => {
  heads.forEach((head, index) => { head.hidden = !columns[index]; });
  for (const [above, key] of /** @type {[HTMLTableCellElement[], string][]} */ ([[families, "family"], [parts, "gpu"]])) {
    above.forEach((head) => {
      const left = heads.filter((entry) => entry.dataset[key] === head.dataset[key] && !entry.hidden).length;
      head.hidden = left === 0;
      head.colSpan = Math.max(1, left);
    });
  }
  grid.classList.toggle("few", columns.filter(Boolean).length < 3);
};
const drawRows = () => {
  lines = linesOf(matching);
  drawHeads();
  if (!STATIC) {
    for (const body of bodies.values()) {
      body.remove();
      body.replaceChildren(body.rows[0]);
    }
    drawn = 0;
    drawMore(BATCH);
    if (!early) watch();
    return;
  }
  const kept = new Set(lines);
  for (const fold of folds) {
    if (kept.has(fold)) elements[fold.rows[0]].before(drawFold(fold));
    else foldElements.get(fold)?.remove();
  }
  elements.forEach((element, row) => {
    element.hidden = !kept.has(row);
    if (!element.hidden) show(row);
  });
  for (const body of grid.tBodies) {
    body.hidden = !body.querySelector("tr.variant:not([hidden]), tr.fold");
    body.rows[0].cells[0].colSpan = columns.filter(Boolean).length + 1;
  }
};
// Sets what is shown; `hide` are families left out, `state` a class or verdict, `query` a parsed query. `pair` are the
// only columns that there is room for, unless the query or `cols`, which were chosen one by one, names others.
/** @type {(filter: Filter) => void} */
const filterRows = ({ query, hide, state, differs, measured, pair, cols }) => {
  const room = (/** @type {Target} */ target) => (cols.length ? cols.includes(target.id) : !pair || query.columns.length > 0 || pair.includes(target.index));
  columns = targets.map((target) => !hide.includes(target.family) && !(measured && !target.run) && room(target) && query.columns.every((fits) => fits(target)));
  const shown = shownColumns();
  const tests = [...query.cells, ...(state ? [(/** @type {Look} */ look) => look.bucket === state.slice(2) && state[0] === "b" || (look.cls === state.slice(2) && state[0] === "k")] : [])];
  const fits = looks.map((look) => tests.every((test) => test(look)));
  const banned = looks.map((look) => query.none.some((test) => test(look)));
  const sequences = query.sequences.map(([states, not]) => ({ follows: sequence(states, columns, (look) => look.measured), claimed: sequence(states, columns, (look) => Boolean(look.known)), not }));
  const altered = differs ? differing(columns) : null;
  hits = tests.length ? fits : null;
  const fitting = order.filter((index) => {
    const row = rows[index];
    if (!shown.length) return false;
    if (altered && !altered(row)) return false;
    if (!query.rows.every((test) => test(row))) return false;
    const cells = data.grid[index];
    if (tests.length && !shown.some((column) => fits[cells[column]])) return false;
    return !query.none.length || !shown.some((column) => banned[cells[column]]);
  });
  matching = fitting.filter((row) => sequences.every(({ follows, not }) => follows(rows[row]) !== not));
  standApart(query, matching);
  const kept = new Set(matching);
  const unrun = sequences.some(({ not }) => !not) ? fitting.filter((row) => !kept.has(row) && sequences.every(({ claimed, not }) => claimed(rows[row]) !== not)).length : 0;
  drawRows();
  byId("f-count").value = (matching.length === rows.length ? `${rows.length} rows` : `${matching.length} of ${rows.length} rows`)
    + (unrun ? `; ${unrun} more by what is reported, which seq: leaves out: it sees measured cells alone` : "");
  byId("empty").hidden = matching.length > 0;
  byId("empty-said").textContent = shown.length ? "No row fits these filters." : "No column fits these filters.";
  if (!home || !seen(home)) {
    const first = lines.find((line) => typeof line === "number");
    const anchor = typeof first === "number" ? links[first]?.[shown[0]] : null;
    if (anchor) setHome(anchor);
  }
};

// ---- keyboard -------------------------------------------------------------------------------------------------
/** @type {HTMLElement | null} */
let home = null;
/** @type {(element: Element) => boolean} */
const seen = (element) => element.isConnected && !element.closest("[hidden]");
/** @type {(anchor: HTMLElement) => void} */
const setHome = (anchor) => {
  if (home) home.tabIndex = -1;
  home = anchor;
  anchor.tabIndex = 0;
};
/** @type {(list: number[], now: number, by: number) => number} */
const step = (list, now, by) => list[Math.min(list.length - 1, Math.max(0, list.indexOf(now) + by))];
const rowsShown = () => lines.filter((line) => typeof line === "number");
const shownColumns = () => targets.map((_, index) => index).filter((index) => columns[index]);
/** @type {{ [key: string]: (row: number, column: number) => [row: number, column: number] }} */
const MOVES = {
  ArrowRight: (row, column) => [row, step(shownColumns(), column, 1)],
  ArrowLeft: (row, column) => [row, step(shownColumns(), column, -1)],
  ArrowDown: (row, column) => [step(rowsShown(), row, 1), column],
  ArrowUp: (row, column) => [step(rowsShown(), row, -1), column],
  Home: (row) => [row, shownColumns()[0]],
  End: (row) => [row, shownColumns().slice(-1)[0]],
};
/** @type {(anchor: HTMLAnchorElement) => [row: number, column: number]} */
const whereIs = (anchor) => {
  const row = elements.indexOf(anchor.closest("tr"));
  return [row, links[row].indexOf(anchor)];
};
grid.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
  const anchor = /** @type {Element} */ (event.target).closest("td > a");
  if (anchor && event.key === " ") {
    event.preventDefault();
    tellRow(anchor.closest("tr"));
    return;
  }
  const move = MOVES[event.key];
  if (!anchor || !move || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const [row, column] = move(...whereIs(anchor));
  const next = drawnCell(row, column);
  if (!next) return;
  setHome(next);
  next.focus({ preventScroll: true });
  reveal(next);
});
grid.addEventListener("focusin", (/** @type {FocusEvent} */ event) => {
  const anchor = /** @type {Element} */ (event.target).closest("td > a");
  if (anchor) setHome(anchor);
});
