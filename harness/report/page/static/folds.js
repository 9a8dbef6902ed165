// ---- rows that are folded into one, and what a line leaves untold until it is asked for --------------------------
/** @type {Fold[]} */
const folds = data.folds;
const foldOf = new Map(folds.flatMap((fold) => fold.rows.map((row) => /** @type {const} */ ([row, fold]))));
// The rows as they stand in the matrix: those of a fold together, where its first one is.
const order = rows.flatMap(({ index }) => { const fold = foldOf.get(index); return !fold ? [index] : fold.rows[0] === index ? fold.rows : []; });
/** @type {Set<Fold>} */
const openFolds = new Set();
let allOpen = false;
/** @type {(fold: Fold) => boolean} */
const isOpen = (fold) => allOpen || openFolds.has(fold);
// Who asks for rows by words looks for them, and not for what they share, where they are few enough to look through.
const MOST_APART = 30;
let apart = false;
/** @type {(query: Query, matching: number[]) => void} */
const standApart = ({ named }, matching) => { apart = named && matching.length <= MOST_APART; };
// A fold stands where all its rows fit the filter; those that were asked for one by one stand by themselves.
/** @type {(matching: number[]) => Line[]} */
const linesOf = (matching) => {
  if (apart) return matching;
  const there = new Set(matching);
  const whole = (/** @type {Fold} */ fold) => fold.rows.every((row) => there.has(row));
  return matching.flatMap((row) => {
    const fold = foldOf.get(row);
    if (!fold || !whole(fold)) return [row];
    return [...(fold.rows[0] === row ? [fold] : []), ...(isOpen(fold) ? [row] : [])];
  });
};
/** @type {(one: Look, other: Look) => boolean} */
const alike = (one, other) => one.known === other.known && one.grade === other.grade && one.bucket === other.bucket;
// What a fold shows in a column: the worst that is known of its rows, and of how many.
/** @type {(fold: Fold, column: number) => { look: Look; many: number }} */
const worstOf = (fold, column) => {
  const found = fold.rows.map((row) => lookOf(row, column));
  const look = found.reduce((one, other) => (other.bad > one.bad ? other : one));
  return { look, many: found.filter((other) => alike(other, look)).length };
};
/** @type {(fold: Fold, column: number, cell: HTMLElement) => boolean} */
const drawFolded = (fold, column, cell) => {
  const { look, many } = worstOf(fold, column);
  const all = fold.rows.length;
  cell.className = (firsts.has(column) ? "first " : "") + look.classes;
  cell.title = many < all ? `${many} of ${all}: ${look.words}` : look.words;
  cell.replaceChildren(make("span", { class: "cell" }, badge(look), many < all ? [" ", make("i", { class: "many" }, `${many}/${all}`)] : null, make("span", { class: "vh" }, cell.title)));
  return many === all;
};
/** @type {Map<Fold, HTMLElement>} */
const foldElements = new Map();
/** @type {(fold: Fold) => HTMLElement} */
const foldElement = (fold) => {
  const names = fold.rows.map((row) => rows[row].name).join(", ");
  const made = make("tr", { class: "fold" }, make("th", { scope: "row", title: cut(`${fold.said}: ${names}`, 400) }, make("div", { class: "row" }, make("div", { class: "head" },
    make("button", { type: "button", class: "unfold" }, make("code", {}, cut(fold.name)), make("span", { class: "count" }, String(fold.rows.length)), make("span", { class: "vh" }, " variants")),
    make("span", { class: "alike" })),
  make("div", { class: "claim" }, cut(`${fold.said}: ${names}`, 400)))), targets.map(() => make("td")));
  made.addEventListener("click", () => toggleFold(fold));
  return made;
};
// Draws a fold as it is in the columns that are shown.
/** @type {(fold: Fold) => HTMLElement} */
const drawFold = (fold) => {
  const made = foldElements.get(fold) || foldElement(fold);
  foldElements.set(fold, made);
  let same = true;
  [.../** @type {HTMLTableRowElement} */ (made).cells].slice(1).forEach((cell, column) => {
    cell.hidden = !columns[column];
    if (columns[column]) same = drawFolded(fold, column, cell) && same;
  });
  made.querySelector(".alike").textContent = same ? "all alike here" : "the worst shown";
  made.querySelector("button").setAttribute("aria-expanded", String(isOpen(fold)));
  made.classList.toggle("unfolded", isOpen(fold));
  return made;
};
/** @type {(fold: Fold) => void} */
const toggleFold = (fold) => {
  if (allOpen) return;
  if (!openFolds.delete(fold)) openFolds.add(fold);
  drawRows();
};
// Unfolds what holds a row that is gone to.
/** @type {(row: number) => void} */
const unfold = (row) => {
  const fold = foldOf.get(row);
  if (!fold || isOpen(fold) || !lines.includes(fold)) return;
  openFolds.add(fold);
  drawRows();
};
/** @type {(open: boolean) => void} */
const unfoldAll = (open) => {
  if (open === allOpen) return;
  allOpen = open;
  if (folds.length) drawRows();
};

// ---- a row's title, tags and sentences: of one row, or of all ------------------------------------------------------
/** @type {(element: HTMLElement, name: string) => void} */
const addTeller = (element, name) => {
  element.querySelector(".head, div").prepend(make("button", { type: "button", class: "tell", tabindex: "-1", "aria-expanded": "false", "aria-label": `Details of ${cut(name)}` }));
};
/** @type {(element: HTMLElement) => void} */
const tellRow = (element) => {
  const told = element.classList.toggle("told");
  element.querySelector(".tell")?.setAttribute("aria-expanded", String(told));
  const row = elements.indexOf(element);
  if (row >= 0) showSpans(row);
};
// Of the sentences on versions, those of the series that are shown.
/** @type {(row: number) => void} */
const showSpans = (row) => {
  const element = elements[row];
  if (!grid.classList.contains("detailed") && !element.classList.contains("told")) return;
  const series = new Map(targets.map((target) => [target.series, false]));
  targets.forEach((target, column) => { if (columns[column]) series.set(target.series, true); });
  const told = rows[row].spans;
  element.querySelectorAll(".span").forEach((/** @type {HTMLElement} */ span, /** @type {number} */ at) => {
    span.hidden = series.get(told[at]?.series || "") === false;
  });
};
/** @type {(detailed: boolean) => void} */
const showDetails = (detailed) => {
  if (grid.classList.toggle("detailed", detailed)) elements.forEach((_, row) => showSpans(row));
};
grid.addEventListener("click", (/** @type {MouseEvent} */ event) => {
  const target = /** @type {Element} */ (event.target);
  const head = target.closest("tr.variant > th, tr.case > th");
  if (head && !target.closest("a") && !getSelection()?.toString()) tellRow(head.parentElement);
});
