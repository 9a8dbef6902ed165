// ---- the query language of the filter box ---------------------------------------------------------------------
const { states: STATES, pasts: PASTS, precisions: PRECISIONS, engines: ENGINES } = data.query;
const COLUMN_KEYS = ["target", ...Object.keys(ENGINES), "version", "gpu"];
const KEYS = ["state", "case", "variant", "tag", "role", "op", "precision", "past", "cause", ...COLUMN_KEYS, "seq"];
const CAUSES = [...new Set(looks.flatMap((look) => look.signature || []))].sort();
const ROLES = [...new Set(rows.map((row) => row.role))];
class BadQuery extends Error {}

/** @type {(word: string, words: string[]) => string | undefined} */
const nearest = (word, words) => words.find((other) => other.startsWith(word.slice(0, 3))) || words.find((other) => word.length > 1 && other.startsWith(word.slice(0, 2)));
/** @type {(key: string, value: string, words: string[]) => void} */
const check = (key, value, words) => {
  if (words.includes(value)) return;
  const hint = nearest(value, words);
  throw new BadQuery(`${key}:${value} – ${hint ? `did you mean ${hint}?` : `${key}: takes ${words.slice(0, 24).join(", ")}`}`);
};
/** @type {(text: string) => { not: boolean; key: string | null; value: string }[]} */
const tokens = (text) => {
  const found = [];
  // Two dashes begin a flag that somebody pastes.
  const pattern = /\s*((?:-(?!-))?)(?:([a-z]+):)?(?:"([^"]*)(")?|([^\s"]*))/giy;
  while (pattern.lastIndex < text.length) {
    const start = pattern.lastIndex;
    const match = pattern.exec(text);
    if (!match || pattern.lastIndex === start) break;
    const [, minus, key, quoted, closed, plain] = match;
    if (quoted !== undefined && !closed) throw new BadQuery(`the quote before “${cut(quoted, 30)}” is not closed`);
    const value = quoted ?? plain;
    if (!key && !value && !minus) continue;
    if (!value) throw new BadQuery(key ? `${key}: wants a value, as in ${key}:${key === "state" ? "fail" : "x"}` : "a - stands before a word, with no space");
    found.push({ not: minus === "-", key: key ? key.toLowerCase() : null, value });
  }
  return found;
};
/** @type {(version: string, value: string) => boolean} */
const versionFits = (version, value) => version === value || version.startsWith(value + ".");
// Returns a test for texts that are as one of the values says.
/** @type {(values: string[]) => (text: string) => boolean} */
const glob = (values) => {
  const escaped = values.map((value) => value.toLowerCase().replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*"));
  const pattern = new RegExp(`^(?:${escaped.join("|")})$`);
  return (text) => pattern.test(text.toLowerCase());
};
/** @type {(key: string, values: string[]) => (target: Target) => boolean} */
const columnTerm = (key, values) => {
  const named = glob(values);
  /** @type {{ [key: string]: (target: Target) => string }} */
  const own = { target: (target) => target.id, gpu: (target) => target.gpu };
  const ofTarget = own[key];
  const fits = (/** @type {Target} */ target) => (ofTarget ? named(ofTarget(target))
    : (key === "version" || target.engine === ENGINES[key]) && values.some((value) => versionFits(target.version, value)));
  if (!targets.some(fits)) throw new BadQuery(`${key}:${values.join(",")} – no target of this report fits; it has ${[...new Set(targets.filter((target) => !ENGINES[key] || target.engine === ENGINES[key]).map(ofTarget || ((target) => target.version)))].slice(0, 30).join(", ")}`);
  return fits;
};
/** @type {(key: string, values: string[]) => (row: Row) => boolean} */
const rowTerm = (key, values) => {
  const named = glob(values);
  if (key === "role") values.forEach((value) => check(key, value, ROLES));
  /** @type {{ [key: string]: (row: Row) => boolean }} */
  const terms = {
    case: (row) => named(row.case.name),
    variant: (row) => named(row.name),
    tag: (row) => row.tags.some(named),
    role: (row) => values.includes(row.role),
    op: (row) => row.wanted.some(({ op }) => values.some((value) => op.toLowerCase() === value.toLowerCase())),
  };
  return terms[key];
};
/** @type {Map<number, string>} */
const haystacks = new Map();
/** @type {(row: Row) => string} */
const haystack = (row) => {
  if (!haystacks.has(row.index)) {
    const parts = [row.full, row.name, row.title, row.role_name, ...row.tags, row.case.title, row.case.summary,
      ...row.wanted.map(({ node }) => node), ...row.spans.map(({ series, text }) => `${series} ${text}`), ...row.case.links.map(({ title }) => title)];
    haystacks.set(row.index, parts.join(" ").toLowerCase());
  }
  return haystacks.get(row.index) || "";
};
// A version is looked for as a number: 6.1 is not in 8.6.1, nor in 6.13.
/** @type {(word: string) => (text: string) => boolean} */
const wordTest = (word) => {
  if (!/^\d+(?:\.\d+)+$/.test(word)) return (text) => text.includes(word);
  const number = new RegExp(`(?<![\\d.])${word.replaceAll(".", "\\.")}(?!\\d)`);
  return (text) => number.test(text);
};
// Returns what rows, columns and cells are asked for; throws BadQuery with a sentence.
/** @type {(text: string) => Query} */
const parseQuery = (text) => {
  /** @type {Query} */
  const made = { rows: [], columns: [], cells: [], none: [], sequences: [], named: false };
  // A log's line is for the paste box: it filters nothing, and is not taken for filters.
  if (looksLikeLog(text)) return made;
  const { rest, products } = productsIn(text);
  for (const { columns } of products.filter((each) => each.columns.length)) made.columns.push((target) => columns.includes(target.index));
  /** @type {((row: Row) => boolean)[]} */
  const words = [];
  for (const { not, key, value } of tokens(rest)) {
    if (!key) {
      const fits = wordTest(value.toLowerCase());
      words.push((row) => fits(haystack(row)) !== not);
      made.named = made.named || !not;
      continue;
    }
    if (!KEYS.includes(key)) throw new BadQuery(`“${key}:” is no filter; there are ${KEYS.map((one) => one + ":").join(" ")} – put text with a colon into quotes`);
    const values = value.split(",").filter(Boolean);
    if (!values.length) throw new BadQuery(`${key}: wants a value`);
    if (key === "seq") {
      if (values.length < 2) throw new BadQuery("seq: wants two states or more, as in seq:fail,ok");
      values.forEach((one) => check(key, one, STATES));
      made.sequences.push([values, not]);
    } else if (COLUMN_KEYS.includes(key)) {
      const fits = columnTerm(key, values);
      made.columns.push((target) => fits(target) !== not);
    } else if (key === "state") {
      values.forEach((one) => check(key, one, STATES));
      (not ? made.none : made.cells).push((look) => values.some((one) => look.states.includes(one)));
    } else if (key === "precision") {
      values.forEach((one) => check(key, one.toLowerCase(), PRECISIONS));
      (not ? made.none : made.cells).push((look) => values.some((one) => look.ran.includes(one.toLowerCase())));
    } else if (key === "cause") {
      values.forEach((one) => check(key, one, CAUSES));
      (not ? made.none : made.cells).push((look) => look.signature !== null && values.includes(look.signature));
    } else if (key === "past") {
      values.forEach((one) => check(key, one, PASTS));
      (not ? made.none : made.cells).push((look) => values.some((one) => look.past.includes(one)));
    } else {
      const fits = rowTerm(key, values);
      made.rows.push((row) => fits(row) !== not);
      made.named = made.named || (key === "variant" && !not);
    }
  }
  // Words that no row has may be those of an error: then cells that end with it are asked for.
  const errors = words.length && !rows.some((row) => words.every((test) => test(row))) ? errorsLike(plainWords(rest)) : [];
  if (errors.length) made.cells.push((look) => look.signature !== null && errors.includes(look.signature));
  else made.rows.push(...words);
  return made;
};
// Returns a test for rows: the states follow one another along the shown columns of one series, those that are not `seen`
// left out.
/** @type {(states: string[], columns: boolean[], seen: LookTest) => (row: Row) => boolean} */
const sequence = (states, columns, seen) => {
  const shown = data.series.map((series) => series.filter((column) => columns[column]));
  const fits = states.map((state) => looks.map((look) => look.states.includes(state)));
  return (row) => shown.some((series) => {
    const known = series.map((column) => data.grid[row.index][column]).filter((number) => seen(looks[number]));
    return known.some((_, at) => at + states.length <= known.length && fits.every((fit, step) => fit[known[at + step]]));
  });
};
// Within a series two that were measured differ by their class, as Python has it; else "builds" and "works" are the same.
/** @type {(one: Look, other: Look, series: boolean) => boolean} */
const differ = (one, other, series) => one.known !== other.known && (!(one.good && other.good) || (series && one.measured && other.measured));
// Returns a test for rows: what is told of the shown columns differs within a series; across series where none has two.
/** @type {(columns: boolean[]) => (row: Row) => boolean} */
const differing = (columns) => {
  const runs = data.series.map((series) => series.filter((column) => columns[column]));
  const series = runs.some((run) => run.length > 1);
  const groups = series ? runs : [runs.flat()];
  return (row) => row.changes.some((ends) => ends.every((column) => columns[column])) || groups.some((group) => {
    const known = [...new Set(group.map((column) => lookOf(row.index, column)))].filter((look) => look.known);
    return known.some((one) => known.some((other) => differ(one, other, series)));
  });
};
