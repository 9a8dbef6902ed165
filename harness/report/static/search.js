// ---- the one box: a question is answered, keys filter rows and cells, a log is explained ----
/** @type {(text: string) => boolean} */
const looksLikeLog = (text) =>
  text.length > 160 ||
  /\[TRT\]|\[[EWIV]\]|Error Code \d+: |Error\[\d+\]|\.cpp(?::|\()|ERROR: |WARNING: |\S\s*\n\s*\S/.test(text);
class BadQuery extends Error {}
/** @type {Keys<Row>} */
const ROW_KEYS = {
  case: (row, value) => row.case.name === value,
  variant: (row, value) => row.name === value || row.id === value,
  op: (row, value) => row.graph.nodes.some(({ op }) => op.toLowerCase() === value),
  tag: (row, value) => [...row.tags, ...row.topics].some((tag) => tag.toLowerCase() === value),
};
/** @type {Keys<Cell>} */
const CELL_KEYS = {
  state: (cell, value) => [stateOf(cell), cell.class, cell.verdict, cell.basis].includes(value),
  cause: (cell, value) => cell.signature === value,
  precision: (cell, value) => Object.values(cell.precision).includes(value),
};
const KEYS = ["target", ...Object.keys(ROW_KEYS), ...Object.keys(CELL_KEYS)];
/** @type {() => Query} */
const noQuery = () => ({ rows: [], columns: [], cells: [], best: [], answer: null, question: "" });
// Takes key:value, "words in quotes" and what is excluded by a minus out of a text, and has the rest answered; throws
// BadQuery with a sentence.
/** @type {(text: string) => Query} */
const parseQuery = (text) => {
  const made = noQuery();
  const key = (/** @type {string} */ name, /** @type {string[]} */ values, /** @type {boolean} */ not) => {
    if (!KEYS.includes(name))
      throw new BadQuery(
        `“${name}:” is no filter; there are ${KEYS.map((one) => `${one}:`).join(" ")}. ` +
          "Put text with a colon into quotes.",
      );
    const own = ROW_KEYS[name];
    const anywhere = (/** @type {string} */ value) =>
      own ? rows.some((row) => own(row, value)) : data.cells.some((cell) => CELL_KEYS[name](cell, value));
    if (name !== "target" && !values.some(anywhere))
      throw new BadQuery(
        `Nothing here has ${name}:${values.join(" or ")}.` +
          (name === "state" ? ` States are ${Object.keys(STATES).join(", ")}.` : ""),
      );
    const test = (/** @type {Target} */ { id, short }) => values.includes(id) || values.includes(short);
    if (name === "target" && !targets.some(test))
      throw new BadQuery(`No column is called ${values.join(" or ")}; the tab Targets lists them.`);
    if (name === "target") made.columns.push((target) => test(target) !== not);
    else if (own) made.rows.push((row) => values.some((value) => own(row, value)) !== not);
    else made.cells.push((cell) => values.some((value) => CELL_KEYS[name](cell, value)) !== not);
    return " ";
  };
  made.question = text
    .replace(/(?<!\S)(-?)([a-z]+):(?!\/\/)(?:"([^"]*)"|([^\s"]+))/gi, (_, minus, name, quoted, plain) =>
      key(name.toLowerCase(), (quoted ?? plain).toLowerCase().split(","), minus === "-"),
    )
    .replace(/(?<!\S)(?:(-?)"([^"]+)"|-(\p{L}[^\s"]*))/gu, (_, minus, quoted, excluded) => {
      const word = asWords(quoted || excluded).slice(0, -1);
      made.rows.push(
        (row) => placesOf(row).some((place) => place.includes(word)) !== (minus === "-" || !quoted),
      );
      return " ";
    })
    .trim();
  if (!made.question) return made;
  const answer = answerTo(made.question);
  const wanted = new Set(answer.rows);
  if (wanted.size) made.rows.push((row) => wanted.has(row));
  if (answer.columns.length && !answer.step) made.columns.push(({ id }) => answer.columns.includes(id));
  return { ...made, best: answer.rows, answer };
};
