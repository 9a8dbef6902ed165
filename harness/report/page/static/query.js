// ---- the query language of the filter box ---------------------------------------------------------------------
const STATES = {
  fail: (look) => look.known !== null && !GOOD.has(look.known),
  ok: (look) => GOOD.has(look.known),
  lost: (look) => look.known === "precision_lost",
  known: (look) => look.known !== null,
  unknown: (look) => look.known === null,
  measured: (look) => Boolean(look.measured),
  unexpected: (look) => ["regressed", "new", "fixed"].includes(look.bucket),
  claimed: (look) => look.bucket === "claimed",
};
const STATE_WORDS = [...new Set([...Object.keys(STATES), ...Object.keys(data.marks), ...Object.keys(data.buckets)])];
const isState = (look, word) => (STATES[word] ? STATES[word](look) : look.known === word || look.cls === word || look.bucket === word);
const ENGINES = { trt: "tensorrt", rtx: "tensorrt_rtx", ort: "onnxruntime" };
const KEYS = ["state", "case", "variant", "tag", "role", "op", "precision", "past", "cause", "target", "trt", "rtx", "ort", "version", "gpu", "seq"];
const PASTS = ["new_failure", "fixed", "changed", "flaky", "slower", "faster", "spike", "steady", "first"];
const CAUSES = [...new Set(looks.map((look) => look.signature).filter(Boolean))].sort();
const ROLES = [...new Set(rows.map((row) => row.role))];
const PRECISIONS = ["fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "uint8", "int4", "int32", "int64", "bool"];
class BadQuery extends Error {}

const nearest = (word, words) => words.find((other) => other.startsWith(word.slice(0, 3))) || words.find((other) => word.length > 1 && other.startsWith(word.slice(0, 2)));
const check = (key, value, words) => {
  if (words.includes(value)) return;
  const hint = nearest(value, words);
  throw new BadQuery(`${key}:${value} – ${hint ? `did you mean ${hint}? ` : ""}${key}: takes ${words.slice(0, 24).join(", ")}`);
};
const tokens = (text) => {
  const found = [];
  const pattern = /\s*(-?)(?:([a-z]+):)?(?:"([^"]*)(")?|([^\s"]*))/giy;
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
const versionFits = (version, value) => version === value || version.startsWith(value + ".");
// Returns a test for texts that are as one of the values says.
const glob = (values) => {
  const escaped = values.map((value) => value.toLowerCase().replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*"));
  const pattern = new RegExp(`^(?:${escaped.join("|")})$`);
  return (text) => pattern.test(text.toLowerCase());
};
const columnTerm = (key, values) => {
  const named = glob(values);
  const ofTarget = { target: (target) => target.id, gpu: (target) => target.gpu }[key];
  const fits = (target) => (ofTarget ? named(ofTarget(target))
    : (key === "version" || target.engine === ENGINES[key]) && values.some((value) => versionFits(target.version, value)));
  if (!targets.some(fits)) throw new BadQuery(`${key}:${values.join(",")} – no target of this report fits; it has ${[...new Set(targets.filter((target) => !ENGINES[key] || target.engine === ENGINES[key]).map(ofTarget || ((target) => target.version)))].slice(0, 30).join(", ")}`);
  return fits;
};
const rowTerm = (key, values) => {
  const named = glob(values);
  if (key === "role") values.forEach((value) => check(key, value, ROLES));
  return {
    case: (row) => named(row.case.name),
    variant: (row) => named(row.name),
    tag: (row) => row.tags.some(named),
    role: (row) => values.includes(row.role),
    op: (row) => row.wanted.some(([, , op]) => values.some((value) => op.toLowerCase() === value.toLowerCase())),
  }[key];
};
const haystacks = new Map();
const haystack = (row) => {
  if (!haystacks.has(row.index)) {
    const parts = [row.full, row.name, row.title, row.roleName, ...row.tags, row.case.title, row.case.summary,
      ...row.wanted.map(([node]) => node), ...row.spans.map(([series, text]) => `${series} ${text}`), ...row.case.links.map(([, title]) => title)];
    haystacks.set(row.index, parts.join(" ").toLowerCase());
  }
  return haystacks.get(row.index);
};
// Returns what rows, columns and cells are asked for; throws BadQuery with a sentence.
const parseQuery = (text) => {
  const made = { rows: [], columns: [], cells: [], none: [], sequences: [] };
  for (const { not, key, value } of tokens(text)) {
    if (!key) {
      const word = value.toLowerCase();
      made.rows.push((row) => haystack(row).includes(word) !== not);
      continue;
    }
    if (!KEYS.includes(key)) throw new BadQuery(`“${key}:” is no filter; there are ${KEYS.map((one) => one + ":").join(" ")} – put text with a colon into quotes`);
    const values = value.split(",").filter(Boolean);
    if (!values.length) throw new BadQuery(`${key}: wants a value`);
    if (key === "seq") {
      if (values.length < 2) throw new BadQuery("seq: wants two states or more, as in seq:fail,ok");
      values.forEach((one) => check(key, one, STATE_WORDS));
      made.sequences.push([values, not]);
    } else if (["target", "trt", "rtx", "ort", "version", "gpu"].includes(key)) {
      const fits = columnTerm(key, values);
      made.columns.push((target) => fits(target) !== not);
    } else if (key === "state") {
      values.forEach((one) => check(key, one, STATE_WORDS));
      (not ? made.none : made.cells).push((look) => values.some((one) => isState(look, one)));
    } else if (key === "precision") {
      values.forEach((one) => check(key, one.toLowerCase(), PRECISIONS));
      (not ? made.none : made.cells).push((look) => values.some((one) => look.ran.includes(one.toLowerCase())));
    } else if (key === "cause") {
      values.forEach((one) => check(key, one, CAUSES));
      (not ? made.none : made.cells).push((look) => values.includes(look.signature));
    } else if (key === "past") {
      values.forEach((one) => check(key, one, PASTS));
      (not ? made.none : made.cells).push((look) => values.some((one) => look.past.includes(one)));
    } else {
      const fits = rowTerm(key, values);
      made.rows.push((row) => fits(row) !== not);
    }
  }
  return made;
};
// Versions of one series in order, as the sequence of a row is read along them.
const part = (version) => version.split(/[^0-9]+/).map(Number);
const older = (one, two) => {
  const [a, b] = [part(one.version), part(two.version)];
  for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
    if ((a[at] || 0) !== (b[at] || 0)) return (a[at] || 0) - (b[at] || 0);
  }
  return one.index - two.index;
};
const seriesOf = [...new Set(targets.map((target) => target.series))]
  .map((series) => targets.filter((target) => target.series === series).sort(older).map((target) => target.index));
// Returns a test for rows: the states follow one another along the shown columns of one series, those not measured left out.
const sequence = (states, columns) => {
  const shown = seriesOf.map((series) => series.filter((column) => columns[column]));
  const fits = states.map((state) => looks.map((look) => isState(look, state)));
  return (row) => shown.some((series) => {
    const known = series.map((column) => data.grid[row.index][column]).filter((number) => looks[number].measured);
    return known.some((_, at) => at + states.length <= known.length && fits.every((fit, step) => fit[known[at + step]]));
  });
};
