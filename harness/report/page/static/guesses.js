// ---- guesses: hidden until they are asked for; Python says what is known with them and without -------------------
const guessedGrid = data.grid.map((line) => line.map((look) => looks[look].guess ?? look));
// The rows that guesses change, in a cell or in a sentence.
const guessedRows = rows.filter((row) => row.spans.some((span) => span.guesses) || plainGrid[row.index].some((look, column) => look !== guessedGrid[row.index][column]));
/** @type {(row: Row) => void} */
const drawAnew = (row) => {
  const old = elements[row.index];
  if (!old) return;
  const made = rowElement(row);
  old.replaceWith(made);
  adopt(row.index, made);
};
// Counts that guesses change stand in the page with both numbers; a list's entry has its name beside them.
const countAgain = () => document.querySelectorAll("[data-on]").forEach((/** @type {HTMLElement} */ place) => {
  const { on = "", off = "", name = "" } = place.dataset;
  const many = asked.guesses ? on : off;
  const number = place.querySelector(".n");
  (number || place).textContent = number ? many : `${name} (${many})`;
  const whole = /** @type {HTMLElement} */ (place.closest("li") || place);
  whole.hidden = many === "0";
  whole.classList.toggle("zero", many === "0");
  place.toggleAttribute("disabled", many === "0");
});
// Tells whether anything is to be drawn anew.
/** @type {(shown: boolean) => boolean} */
const showGuesses = (shown) => {
  if (shown === asked.guesses) return false;
  asked.guesses = shown;
  data.grid = shown ? guessedGrid : plainGrid;
  guessedRows.forEach(drawAnew);
  countAgain();
  return true;
};
/** @type {(step: Step) => Step} */
const toldStep = (step) => (asked.guesses ? { ...step, ...step.guesses } : step);
/** @type {(cell: Cell) => Cell} */
const toldCell = (cell) => (asked.guesses ? { ...cell, ...cell.guess } : cell);
