// ---- what of the matrix is in sight: the two targets that are compared, and the cell that is open ---------------
// Between the sticky header, the sticky first column and the panel; a panel that leaves no room is not counted.
const sight = () => {
  const view = scroller.getBoundingClientRect();
  const corner = grid.querySelector(".corner").getBoundingClientRect();
  const left = view.left + corner.width;
  // Not its rectangle, which is elsewhere while the panel slides in.
  const edge = document.documentElement.clientWidth - panel.offsetWidth;
  return { left, right: edge - left > 60 ? Math.min(view.right, edge) : view.right, top: view.top + grid.tHead.getBoundingClientRect().height, bottom: view.bottom };
};
/** @type {(anchor: Element) => void} */
const reveal = (anchor) => {
  if (!seen(anchor)) return;
  const view = sight();
  const box = anchor.getBoundingClientRect();
  if (box.top < view.top) scroller.scrollTop -= view.top - box.top;
  else if (box.bottom > view.bottom) scroller.scrollTop += box.bottom - view.bottom + 12;
  if (box.left < view.left) scroller.scrollLeft -= view.left - box.left;
  else if (box.right > view.right) scroller.scrollLeft += box.right - view.right + 12;
};
// A cell of a row that is far down is drawn with all rows before it, where these are not too many to wait for.
const MOST_DRAWN = 20000;
/** @type {(row: number, column: number) => HTMLAnchorElement | undefined} */
const drawnCell = (row, column) => {
  unfold(row);
  const missing = lines.indexOf(row) + 1 - drawn;
  if (!STATIC && missing > 0 && missing * shownColumns().length <= MOST_DRAWN) drawMore(missing + BATCH);
  return links[row]?.[column];
};
/** @type {(from: number, to: number) => void} */
const markPair = (from, to) => {
  grid.querySelectorAll(".end").forEach((/** @type {Element} */ mark) => mark.remove());
  /** @type {[string, number][]} */
  const said = from === to ? [["from, to", from]] : [["from", from], ["to", to]];
  for (const [words, index] of said) heads[index].prepend(make("b", { class: "end" }, words));
};
// Sideways and in the matrix's own box alone: the page stays where its reader is. Where not both fit, B is shown.
/** @type {(pair: number[]) => void} */
const showPair = (pair) => {
  const view = sight();
  const boxes = pair.filter((index) => columns[index]).map((index) => heads[index].getBoundingClientRect());
  if (boxes.every((box) => box.left >= view.left && box.right <= view.right)) return;
  const ends = (/** @type {DOMRect[]} */ found) => [Math.min(...found.map((box) => box.left)), Math.max(...found.map((box) => box.right))];
  let [left, right] = ends(boxes);
  if (right - left > view.right - view.left) [left, right] = ends(boxes.slice(-1));
  scroller.scrollLeft += (left + right - view.left - view.right) / 2;
};

// ---- the filter: the term of the switch "Only the two above", and the whole in words for paper ------------------
/** @type {(a: string, b: string) => string} */
const termOf = (a, b) => `target:${a},${b}`;
/** @type {(a: string, b: string) => (word: string) => boolean} */
const isTerm = (a, b) => (word) => word === termOf(a, b) || word === termOf(b, a);
/** @type {(state: Pick<State, "q" | "a" | "b">) => boolean} */
const onlyTwo = ({ q, a, b }) => q.split(" ").some(isTerm(a, b));
/** @type {(state: Pick<State, "q" | "a" | "b">) => string} */
const toggleTwo = ({ q, a, b }) => {
  const left = q.split(" ").filter((word) => word && !isTerm(a, b)(word));
  return [...left, ...(onlyTwo({ q, a, b }) ? [] : [termOf(a, b)])].join(" ");
};
// The switch stays on when another pair is chosen.
/** @type {(old: State, now: State) => State} */
const followTwo = (old, now) => (onlyTwo(old) && now.q === old.q ? { ...now, q: old.q.split(" ").map((word) => (isTerm(old.a, old.b)(word) ? termOf(now.a, now.b) : word)).join(" ") } : now);
/** @type {(state: State, pair: number[] | null) => string} */
const filterSaid = ({ q, state: wanted, hide, only: kept, cols }, pair) => {
  const said = [q, wanted && byId("f-state").selectedOptions[0]?.textContent.replace(/ \(\d+\)$/, ""), hide && `without ${hide.split("|").join(", ")}`,
    kept.includes("d") && "differs between versions", kept.includes("m") && "only targets run here",
    cols && `only ${cols.split(",").join(", ")}`, !cols && pair && `only ${pair.map((index) => targets[index].id).join(" and ")}`].filter(Boolean);
  return said.length ? `Filter: ${said.join("; ")} (${byId("f-count").value})` : "";
};
