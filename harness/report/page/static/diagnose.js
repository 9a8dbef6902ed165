// ---- what an engine complained of, as harness/judge has it: diagnosis.py, engine_errors.py and place.py -----------
const PLACES = ["errors", "parser", "warnings", "native", "missing_api"];
const NETWORK_INPUT = "network input";
const WHOLE_MODEL = "model";
const MOST_REFUSED = 50;
const ERRORS = new Set(["ERROR", "INTERNAL_ERROR"]);
/** @type {(text: string) => string[]} */
const textLines = (text) => text.split(/\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/);
/** @type {(text: string) => string} */
const firstLine = (text) => text.trim().split("\n", 1)[0];

// Patterns arrive as JavaScript has them (harness/judge/portable.py); they count in code points, as Python's do.
/** @type {(found: PackedKnown) => Known} */
const compiled = ({ signatures, finders, operators }) => ({
  signatures: signatures.map((each) => ({ ...each, patterns: each.patterns.map(([where, source]) => [where, new RegExp(source, "u")]) })),
  finders: Object.fromEntries(Object.entries(finders).map(([name, source]) => [name, new RegExp(source, "u")])),
  operators: new Set(operators),
});
/** @type {Promise<Known> | null} */
let knownSoon = null;
/** @type {() => Promise<Known>} */
const knownErrors = () => {
  knownSoon = knownSoon || opening(data.errors).then((entryAt) => compiled(entryAt(0)));
  return knownSoon;
};

/** @type {(known: Known, text: string) => string} */
const withoutNoise = ({ finders }, text) => textLines(text).filter((line) => line.trim() && !finders.noise.test(line)).join("\n").trim();
// Returns the texts to search, by place; each once, for a flood of one line says no more than the line.
/** @type {(known: Known, said: Said) => { [place: string]: string[] }} */
const searched = (known, said) => {
  const { messages, parserErrors, native, errors, missing } = said;
  const severe = messages.filter(([severity]) => ERRORS.has(severity)).map(([, text]) => text);
  const told = (/** @type {string[]} */ texts) => [...new Set(texts)].filter(Boolean);
  return {
    errors: told([...severe, ...parserErrors.map(({ text }) => text), ...errors].map((text) => withoutNoise(known, text))),
    parser: told(parserErrors.map(({ operator, code, text }) => [operator, code, withoutNoise(known, text)].filter(Boolean).join(": "))),
    warnings: told(messages.filter(([severity]) => !ERRORS.has(severity)).map(([, text]) => text)),
    native: told(textLines(native).filter((line) => line.trim() && !known.finders.noise.test(line))),
    missing_api: told(missing),
  };
};
// Yields what a signature finds, pattern by pattern; null between two patterns, where a long search may rest.
/** @type {(known: Known, signature: Signature, texts: { [place: string]: string[] }) => Generator<Hit | null>} */
const hitsOf = function* (known, signature, texts) {
  for (const [where, pattern] of signature.patterns) {
    for (const text of texts[where]) {
      const match = pattern.exec(text);
      if (!match) continue;
      /** @type {{ [name: string]: string }} */
      const groups = Object.fromEntries(Object.entries(match.groups || {}).filter(([, value]) => value !== undefined));
      if (!signature.standard_op || known.operators.has(groups.op || "")) yield { where, text, groups };
    }
    yield null;
  }
};
/** @type {(said: Said, signature: Signature) => boolean} */
const canExplain = (said, { phases }) => !phases.length || phases.includes(said.failedPhase);

// The place that the logger told just before it repeated a complaint of the parser.
/** @type {(known: Known, said: Said, line: string) => ErrorPlace} */
const loggedPlace = ({ finders }, said, line) => {
  let current = { operator: "", node: "" };
  for (const [, text] of said.messages) {
    const parsing = finders.parsing.exec(text)?.groups;
    const importing = parsing ? null : finders.importing.exec(text)?.groups;
    const importer = finders.importer.exec(text)?.groups;
    if (parsing) current = { operator: parsing.operator, node: parsing.output ? `node_of_${parsing.output}` : "" };
    else if (importing) current = { operator: NETWORK_INPUT, node: importing.tensor };
    else if (importer && !current.operator) current = { operator: importer.operator, node: "" };
    if (line && text.includes(line) && current.operator) return current;
  }
  return line ? { operator: "", node: "" } : current;
};
/** @type {(known: Known, said: Said, text: string, operator: string) => ErrorPlace[]} */
const lookedUp = (known, said, text, operator) => {
  const line = firstLine(text);
  const refused = said.parserErrors.filter((error) => error.text.includes(line)).slice(0, MOST_REFUSED);
  const others = said.parserErrors.filter((error) => !operator || error.operator === operator).slice(0, 1);
  /** @type {Map<string, ErrorPlace>} */
  const logged = new Map();
  const found = (refused.length ? refused : others).map((error) => {
    const first = firstLine(error.text);
    const place = logged.get(first) || loggedPlace(known, said, first);
    logged.set(first, place);
    return error.operator ? { operator: error.operator, node: error.node || place.node } : place;
  });
  const numbered = known.finders.numbered.exec(text)?.groups;
  return numbered ? [...found, { operator: numbered.operator, node: numbered.node }] : found;
};
// What a text complains of; what it names itself comes first. The model is not at hand, so no name is looked up in it.
/** @type {(known: Known, said: Said, text: string, operator: string, node: string) => ErrorPlace} */
const findPlace = (known, said, text, operator, node) => {
  if (known.finders.recipe.test(text)) return { operator: "", node: "" };
  if (known.finders.stamp.test(text)) return { operator: WHOLE_MODEL, node: "" };
  if (node) return { operator, node };
  for (const found of lookedUp(known, said, text, operator)) {
    operator = operator || found.operator;
    if (found.node && operator === found.operator) return found;
  }
  return { operator, node: "" };
};
/** @type {(known: Known, said: Said, signature: Signature, hit: Hit) => Found} */
const foundBy = (known, said, signature, { where, text, groups }) => {
  const place = where === "missing_api" ? { operator: "", node: "" } : findPlace(known, said, text, groups.op ?? signature.operator, groups.node || "");
  return { id: signature.id, message: text, groups, ...place };
};
// Returns the most specific known cause of what failed, or null: what `diagnose` returns for the same words.
/** @type {(known: Known, said: Said) => Found | null} */
const diagnosed = (known, said) => {
  const texts = searched(known, said);
  for (const signature of known.signatures) {
    if (signature.note || signature.innocent || !canExplain(said, signature)) continue;
    for (const hit of hitsOf(known, signature, texts)) {
      if (hit) return foundBy(known, said, signature, hit);
    }
  }
  return null;
};
