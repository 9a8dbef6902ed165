// ---- the one box: words and keys filter rows and columns, a log is explained ----
/** @type {(text: string) => boolean} */
const looksLikeLog = (text) =>
  text.length > 160 ||
  /\[TRT\]|\[[EWIV]\]|Error Code \d+: |Error\[\d+\]|\.cpp(?::|\()|ERROR: |WARNING: |\S\s*\n\s*\S/.test(text);
/** @type {Map<number, string>} */
const haystacks = new Map();
// All that the page prints of a row: its own words, those of its cells, and what the errors in it are called.
/** @type {(row: Row) => string} */
const haystack = (row) => {
  let found = haystacks.get(row.index);
  if (found === undefined) {
    const cells = row.cells
      .filter(known)
      .flatMap((cell) => [cell.text, ...(cell.lost || []), causeOf(cell)?.title || "", cell.signature || ""]);
    found = [
      row.id,
      row.title,
      row.role,
      ...row.tags,
      ...row.topics,
      row.case.title,
      row.case.summary,
      ...row.graph.nodes.flatMap(({ name, op }) => [name, op]),
      ...row.sentences.map(({ series, text }) => `${series} ${text}`),
      ...row.claims.flatMap(({ title, says, of, note }) => [title, says, of, note]),
      ...new Set(cells),
    ]
      .join(" ")
      .toLowerCase();
    haystacks.set(row.index, found);
  }
  return found;
};
// A version is looked for as a number: 6.1 is not in 8.6.1, nor in 6.13.
/** @type {(word: string) => (text: string) => boolean} */
const wordTest = (word) => {
  if (!/^\d+(?:\.\d+)+$/.test(word)) return (text) => text.includes(word);
  const number = new RegExp(`(?<![\\d.])${word.replaceAll(".", "\\.")}(?!\\d)`);
  return (text) => number.test(text);
};
/** @type {(text: string) => string} */
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
/** @type {(target: Target) => string[]} */
const hardware = (target) =>
  [
    ...target.gpus
      .toLowerCase()
      .split(/[(),]| or /)
      .map((name) => name.replace("jetson ", "").trim()),
    ...(target.jetpack
      ? [
          "jetson",
          `jetpack ${target.jetpack.split(".")[0]}`,
          ...(target.jetpack.match(/\d+\.\d+/g)?.map((release) => `jetpack ${release}`) || []),
        ]
      : []),
    ...(target.series.match(/SM [\d.]+/g) || []).map((name) => name.toLowerCase()),
  ].filter(Boolean);
const HARDWARE = [...new Set(targets.flatMap(hardware))]
  .sort((one, other) => other.length - one.length)
  .map((name) => ({ name, pattern: new RegExp(`(?<![\\w:.-])${escaped(name)}(?![\\w.-])`, "giu") }));
// Cards and boards by the names that people have for them, as the columns name their generation.
const SM = /** @type {{ [sm: string]: string }} */ ({
  75: "turing",
  80: "ampere",
  86: "ampere",
  87: "orin",
  89: "ada",
  90: "hopper",
  100: "blackwell",
  110: "thor",
  120: "blackwell",
});
/** @type {(text: string) => string} */
const hardwareWords = (text) =>
  text
    .replace(/^(\s*why\b.*)\bfp(?:16|32)\b/i, "$1 state:lost")
    .replace(/(?:geforce )?\b(?:rtx |gtx )?([2-5]0)[5-9]0(?: ?ti)?(?: super)?\b/gi, "rtx $1")
    .replace(/(?:geforce )?\bgtx (1[06])[5-8]0(?: ?ti)?\b/gi, "gtx $1")
    .replace(/\bsm_?(75|8[0679]|90|1[012]0)\b/gi, (_, sm) => SM[sm])
    .replace(/\b(?:agx orin|orin (?:nano|nx|agx))\b/gi, "orin");
const STOP = new Set(
  (
    "a an and any are be break breaks can cell cells do does fail fails for from gone has " +
    "have how i in into is it its me my not of on or run still support supported than " +
    "that the there this to version versions was were what when where which who will with work works you your"
  ).split(" "),
);
// Words that a part of the page answers, and no row.
const LEADS = /** @type {[RegExp, string, string][]} */ ([
  [
    /^(?:drivers?|cuda|ngc|containers?|images?|gpus?|cards?|measured)$/,
    "targets",
    "Targets: image, CUDA, driver, GPUs, last run",
  ],
  [/^why$/, "", "Click on a cell for its reason"],
  [
    /^(?:docker|trtexec|reproduce|download)$/,
    "",
    "Click on a cell: “Run it” has its docker line and its model",
  ],
  [/^(?:operators?|ops?|unsupported)$/, "operators", "Operators"],
  [
    /^(?:report|send|submit|contribute|problems?|bugs?|issues?|feedback|measurements?|results?)$/,
    "data",
    "Data: where to send measurements",
  ],
  [
    /^(?:report|wrong|problems?|bugs?|issues?)$/,
    "",
    "Click on a cell: “Report this cell as wrong” has a filled text",
  ],
  [/^(?:slow|slower|slowest|fast|faster|latency|speed|performance)$/, "latency", ""],
]);
// What a word and its relatives begin with: calibration, calibrator, calibrated.
/** @type {(word: string) => string} */
const stem = (word) =>
  word.length > 6 ? word.replace(/(?:ations?|ators?|ating|ated|isations?|izations?|ised|ized|s)$/, "") : word;
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
  state: (cell, value) =>
    stateOf(cell) === value || cell.class === value || cell.verdict === value || cell.basis === value,
  cause: (cell, value) => cell.signature === value,
  precision: (cell, value) => Object.values(cell.precision).includes(value),
};
const KEYS = ["target", ...Object.keys(ROW_KEYS), ...Object.keys(CELL_KEYS)];
const OPERATORS = new Map(Object.keys(words.errors.operators).map((name) => [name.toLowerCase(), name]));
// Returns what rows, columns and cells are asked for; throws BadQuery with a sentence.
/** @type {(text: string) => Query} */
const parseQuery = (text) => {
  /** @type {Query} */
  const made = { rows: [], columns: [], cells: [], words: [], step: null, leads: new Set(), operators: [] };
  let rest = looksLikeLog(text) ? "" : hardwareWords(text).replace(/(?<=[\p{L}\d])[?!.,;]+(?=\s|$)/gu, "");
  for (const { name, pattern } of HARDWARE) {
    const without = rest.replace(pattern, " ");
    if (without !== rest) made.columns.push((target) => hardware(target).includes(name));
    rest = without;
  }
  const fits = (/** @type {string} */ version) =>
    targets.filter((target) => target.short === version || `${target.version}.`.startsWith(`${version}.`));
  rest = rest
    .replace(/(\d[\d.]*) than (?:(?:in|on|with) )?(\d[\d.]*)/, "$2 to $1")
    .replace(/(?<![\w.:])(\d+(?:\.\d+)*) *(?:to|->|→|–|-) *(\d+(?:\.\d+)*)(?![\w.])/, (whole, from, to) => {
      const [ends, named] = [
        [from, to].map(fits),
        made.columns.length
          ? targets.filter((target) => made.columns.every((asked) => asked(target)))
          : targets,
      ];
      const near = ends.map(
        (found) =>
          [
            ...found
              .filter((target) => named.includes(target))
              .sort(
                (one, other) =>
                  Number(seen.has(other.id)) - Number(seen.has(one.id)) || byVersion(other, one),
              ),
            ...found,
          ][0],
      );
      made.step = near[0] && near[1] ? /** @type {[string, string]} */ (near.map(({ id }) => id)) : null;
      return made.step ? " " : whole;
    })
    .replace(/\b(?:in|on|with|version|trt|tensorrt) v?(\d+(?:\.\d+)*)(?![\w.])/gi, (whole, version) => {
      if (!fits(version).length) return whole;
      made.columns.push((target) => fits(version).includes(target));
      return " ";
    });
  for (const [, minus, key, quoted, plain] of rest.matchAll(
    /(-?)(?:\b([a-z]+):)?(?:"([^"]*)"|([^\s"]+))/giu,
  )) {
    const values = (quoted ?? plain).toLowerCase().split(key ? "," : /(?!)/);
    const not = minus === "-";
    const month = !quoted && /^\d\d\.\d\d$/.test(values[0]) ? values[0] : "";
    if (!key && month && targets.some(({ image }) => image.includes(`:${month}-`)))
      made.columns.push((target) => target.image.includes(`:${month}-`) !== not);
    else if (!key && !quoted && STOP.has(values[0])) continue;
    else if (!key && !quoted && LEADS.some(([word]) => word.test(values[0])))
      LEADS.filter(([word]) => word.test(values[0])).forEach((lead) => made.leads.add(lead));
    else if (!key) {
      const test = wordTest(quoted ? values[0] : stem(values[0]));
      made.rows.push((row) => test(haystack(row)) !== not);
      if (!not) made.words.push(test);
      if (OPERATORS.has(values[0])) made.operators.push(/** @type {string} */ (OPERATORS.get(values[0])));
    } else if (key === "target")
      made.columns.push(
        (target) => values.some((value) => target.id === value || target.short === value) !== not,
      );
    else if (ROW_KEYS[key])
      made.rows.push((row) => values.some((value) => ROW_KEYS[key](row, value)) !== not);
    else if (CELL_KEYS[key])
      made.cells.push((cell) => values.some((value) => CELL_KEYS[key](cell, value)) !== not);
    else
      throw new BadQuery(
        `“${key}:” is no filter; there are ${KEYS.map((one) => `${one}:`).join(" ")}. ` +
          "Put text with a colon into quotes.",
      );
  }
  return made;
};
const errorWords = new Map(
  Object.entries(data.signatures).map(([id, one]) => [
    id,
    [
      [id, one.title],
      [
        id,
        one.title,
        one.cause,
        one.advice,
        ...one.texts.map((each) => each.text),
        ...one.seen.map(({ where }) => where),
      ],
    ].map((all) => all.join(" ").toLowerCase()),
  ]),
);
/** @type {(text: string) => string[]} */
const errorsLike = (text) => {
  const tests = text
    .trim()
    .toLowerCase()
    .replace(/[?!.,;]+(?=\s|$)/g, "")
    .split(/\s+/)
    .filter((word) => !STOP.has(word))
    .map((word) => wordTest(stem(word)));
  /** @type {(own: string) => number} */
  const held = (own) => tests.filter((test) => test(own)).length;
  const found =
    text.trim().length < 4
      ? []
      : [...errorWords].map(([id, [called, all]]) => ({ id, called: held(called), all: held(all) }));
  return found
    .filter(({ all }) => all === tests.length)
    .sort((one, other) => other.called - one.called)
    .map(({ id }) => id);
};
