// ---- the paste box: what is pasted is searched here and goes nowhere -------------------------------------------------
// A search rests when it has held the page this long (ms), so that typing and scrolling go on.
const REST_AFTER = 12;
const MOST_PASTED = 4000000;
const rest = () => new Promise((done) => { setTimeout(done, 0); });
const KIND_OF = (/** @type {Signature} */ one) => (one.innocent ? 2 : one.note ? 1 : 0);

// The texts by place, and under "any" whatever was said at all: where what is innocent is looked for.
/** @type {(known: Known, said: Said) => { [place: string]: string[] }} */
const everything = (known, said) => {
  const any = [...new Set([...said.messages.map(([, text]) => text), ...said.verbose, ...said.native.split("\n")])];
  return { ...searched(known, said), any };
};
// Finds all signatures: failures in the order in which the harness tries them, then warnings, then what is innocent.
// What an earlier one explains is not told again; `known` are all texts that a signature knows. Returns null where another
// paste came meanwhile.
/** @type {(known: Known, said: Said, stale: () => boolean) => Promise<{ found: Found[]; told: Set<string> } | null>} */
const findAll = async (known, said, stale) => {
  const texts = everything(known, said);
  const any = Object.fromEntries(PLACES.map((place) => [place, texts.any]));
  /** @type {Found[]} */
  const found = [];
  const explained = new Set();
  /** @type {Set<string>} */
  const told = new Set();
  let since = performance.now();
  for (const signature of [...known.signatures].sort((one, two) => KIND_OF(one) - KIND_OF(two))) {
    if (!signature.note && !signature.innocent && !canExplain(said, signature)) continue;
    let first = null;
    /** @type {Set<string>} */
    const others = new Set();
    for (const hit of hitsOf(known, signature, signature.innocent ? any : texts)) {
      if (performance.now() - since > REST_AFTER) {
        await rest();
        if (stale()) return null;
        since = performance.now();
      }
      if (hit) told.add(hit.text);
      if (!hit || explained.has(hit.text)) continue;
      // Of a failure one line is told.
      if (first && (signature.note || signature.innocent)) others.add(hit.text);
      first = first || hit;
    }
    if (!first) continue;
    for (const text of first.text.split("\n").concat(first.text)) explained.add(text);
    others.delete(first.text);
    found.push({ ...foundBy(known, said, signature, first), others: [...others] });
  }
  return { found, told };
};
// The line of the paste on which a text begins; 0 where it is in none as it stands.
/** @type {(said: Said, text: string) => number} */
const lineOf = ({ at }, text) => at.get(text) || ([...at].find(([whole]) => whole.includes(text)) || ["", 0])[1];
const MOST_UNKNOWN = 200;
// The lines that are marked as errors and that no signature knows: they may be what matters.
/** @type {(said: Said, told: Set<string>) => Content} */
const othersTold = (said, told) => {
  const loose = new Set(said.loose);
  const severe = new Set(said.messages.flatMap(([severity, text]) => (ERRORS.has(severity) && !loose.has(text) ? [text] : [])));
  const left = [...severe].slice(0, MOST_UNKNOWN).filter((text) => ![...told].some((one) => text.includes(one) || one.includes(text)));
  if (!left.length) return null;
  return make("div", { class: "found unknown" }, make("h3", {}, `${left.length} further error line${left.length > 1 ? "s are" : " is"} unknown here`),
    make("p", {}, "They may only follow from what stands above, or have a cause of their own."),
    make("pre", {}, listOf(said, left)));
};

// ---- the name of a fused layer, taken apart ---------------------------------------------------------------------------
// Splits where a sign stands outside of brackets.
/** @type {(text: string, signs: string[]) => string[]} */
const splitOutside = (text, signs) => {
  const parts = [];
  let depth = 0, start = 0;
  for (let at = 0; at < text.length; at += 1) {
    if ("([{".includes(text[at])) depth += 1;
    else if (")]}".includes(text[at])) depth -= 1;
    const sign = depth === 0 && signs.find((one) => text.startsWith(one, at));
    if (!sign) continue;
    parts.push(text.slice(start, at));
    start = at + sign.length;
  }
  return [...parts, text.slice(start)].map((part) => part.trim()).filter(Boolean);
};
/** @type {(name: string) => string} */
const whatIs = (name) => (/^node_of_/.test(name) ? `a node without a name; its first output is ${name.slice(8)}`
  : /^__my|_myl\d/.test(name) ? "a name that the graph compiler made; no node has it"
    : /^\(Unnamed Layer/.test(name) ? "a layer of the parser's own; no node has this name"
      : /QuantizeLinear|_quantize|_quantized$/.test(name) ? "quantises, or is quantised" : "");
const MOST_PARTS = 40;
const LONGEST_NAME = 3000;
/** @type {(name: string, how?: string) => Part[]} */
const takenApart = (name, how = "") => {
  const text = name.trim().replace(/^Reformatting CopyNode for (?:Input|Output) Tensor \d+ to /, "");
  const region = /^\{ForeignNode\[([^]*)\]\}$/.exec(text);
  if (region) {
    const [first, ...last] = splitOutside(region[1].replace(/\.\.\./, " ... "), [" ... "]);
    // Who quotes a line may leave the ends out.
    if (first) return last.length ? [...takenApart(first, "the region begins here"), ...takenApart(last.join(""), "and ends here; all between is in it")] : takenApart(first, "the region");
  }
  const merged = splitOutside(text, [" + ", " || "]);
  if (merged.length > 1) return merged.flatMap((part) => takenApart(part, how)).slice(0, MOST_PARTS);
  const pointwise = /^PWN\(([^]*)\)$/.exec(text);
  if (pointwise) return splitOutside(pointwise[1], [", "]).flatMap((part) => takenApart(part, "pointwise, merged")).slice(0, MOST_PARTS);
  return [{ name: text, what: [how, whatIs(text)].filter(Boolean).join("; ") }];
};

// ---- what is said of it -----------------------------------------------------------------------------------------------
/** @type {(id: string) => any} */
const entryOf = (id) => byId(`error=${id}`);
// The entry's own words, with what the pasted text fills in.
/** @type {(source: any, found: Found) => any} */
const filledIn = (source, found) => {
  const made = source.cloneNode(true);
  /** @type {{ [name: string]: string }} */
  const values = { ...(found.operator ? { op: found.operator } : {}), ...(found.node ? { node: found.node } : {}), ...found.groups };
  // The paste is lost where the page is left.
  for (const away of made.querySelectorAll("a[href^='https:']")) away.target = "_blank";
  for (const blank of made.querySelectorAll("var")) blank.replaceWith(cut(values[blank.textContent] ?? "?", 200));
  return made;
};
// The nodes in the name of a layer; none where it is that of a node.
/** @type {(name: string) => Part[]} */
const partsOf = (name) => {
  const parts = name ? takenApart(name.slice(0, LONGEST_NAME)) : [];
  return parts.length > 1 || parts.some(({ what }) => what) ? parts : [];
};
/** @type {(parts: Part[]) => Content} */
const partsTold = (parts) => (parts.length ? [make("p", {}, make("b", {}, "The layer, taken apart. "), "Look for these names among the nodes of your model; the first may be a weight."),
  make("ul", { class: "parts" }, parts.map(({ name, what }) => make("li", {}, make("code", {}, cut(name, 200)), what ? ` ${what}` : "")))] : null);
// A name alone, as a log or a profile has it, says nothing of a failure, but which nodes are in it.
const LAYER_NAME = /^(?:\{ForeignNode\[|PWN\(|\(Unnamed Layer|Reformatting CopyNode |node_of_|__my)|\S \+ \S| \|\| /;
// In a sentence with a plus there are other spaces.
const NODE_ALONE = /^(?:\S+|\(Unnamed Layer\* \d+\) \[[\w ]+\]\S*)$/;
/** @type {(text: string) => Part[]} */
const nameTold = (text) => {
  const parts = LAYER_NAME.test(text.trim()) ? partsOf(text) : [];
  return parts.every(({ name }) => NODE_ALONE.test(name)) ? parts : [];
};
/** @type {(found: Found) => Content[]} */
const placeTold = (found) => {
  const parts = partsOf(found.node);
  const fused = parts.length > 0;
  const where = found.operator === NETWORK_INPUT ? `The network input ${found.node}` : found.operator === WHOLE_MODEL ? "The whole model" : [found.operator && `operator ${found.operator}`, found.node && !fused && `node ${found.node}`].filter(Boolean).join(", ");
  return [where ? make("p", {}, make("b", {}, "Where. "), capital(cut(where, 300)), ".") : null,
    partsTold(parts)];
};
/** @type {(said: Said, texts: string[]) => string} */
const listOf = (said, texts) => texts.slice(0, 20).map((text) => `line ${lineOf(said, text.trim())}: ${cut(firstLine(text), 200)}`).join("\n") + (texts.length > 20 ? `\nand ${texts.length - 20} more` : "");
// The other lines that say so: of other nodes, or tensors.
/** @type {(said: Said, texts: string[]) => Content} */
const furtherTold = (said, texts) => (texts.length ? make("details", {}, make("summary", {}, `${texts.length} other line${texts.length > 1 ? "s say" : " says"} so`), make("pre", {}, listOf(said, texts))) : null);
/** @type {(id: string) => Content} */
const copyError = (id) => copying("Copy link", () => addressOf(`#error=${id}`), COPIED_LINK);
/** @type {(said: Said, found: Found, first: boolean) => Element} */
const foundTold = (said, found, first) => {
  const entry = entryOf(found.id);
  const kind = entry.dataset.kind;
  const what = { failure: first ? "The cause" : "Also in this text", warning: "A warning", harmless: "No cause of anything" }[/** @type {"failure"} */ (kind)];
  const title = filledIn(entry.querySelector("summary b"), found);
  const line = lineOf(said, found.message.trim());
  return make("div", { class: `found ${kind}`, "data-id": found.id }, make("h3", {}, `${what}: `, [...title.childNodes], " ", make("a", { href: `#error=${found.id}` }, make("code", {}, found.id)), " ", copyError(found.id)),
    make("pre", {}, cut(found.message.trim(), 600)), line && said.at.size > 1 ? make("p", { class: "quiet" }, `Line ${line}.`) : null, furtherTold(said, found.others || []),
    placeTold(found), make("p", { class: "chosen", "data-error": found.id }), [...filledIn(entry.querySelector(".told"), found).childNodes]);
};
const VERSION = /TensorRT(?:[ -](?:for[ -])?RTX)?(?: version)?[ :=]*v?(\d{1,2}\.\d+(?:\.\d+){0,2})|\[TensorRT v(\d{4,6})\]/;
/** @type {(text: string) => string} */
const versionIn = (text) => {
  const found = VERSION.exec(text);
  if (!found) return "";
  if (found[1]) return found[1];
  // trtexec's banner: 8601 is 8.6.1, 100300 is 10.3.0.
  const [digits, wide] = [found[2], found[2].length > 4];
  return [digits.slice(0, wide ? -4 : 1), wide ? digits.slice(-4, -2) : digits[1], wide ? digits.slice(-2) : digits.slice(2)].map(Number).join(".");
};
// What to file of a text that nobody knows here: its severe lines, or else all of them, and what only the reader knows.
/** @type {(said: Said, text: string) => string} */
const reportOf = (said, text) => {
  const loose = new Set(said.loose);
  const severe = said.messages.filter(([severity, line]) => ERRORS.has(severity) && !loose.has(line)).map(([, line]) => line);
  const lines = [...new Set(severe.length ? severe : text.split("\n"))].map((line) => line.trim()).filter(Boolean);
  return ["An error text that no signature knows", "", `Version: ${versionIn(text) || "(TensorRT, platform)"}`, "GPU and driver: ", "Command: ", "Model, or the nodes around: ", "",
    ...lines.slice(0, 20).map((line) => `    ${cut(line, 400)}`), ...(lines.length > 20 ? [`    (and ${lines.length - 20} more lines)`] : [])].join("\n");
};
// Tells whether a short text has nothing but lines that a signature knows.
/** @type {(text: string, told: Set<string>) => boolean} */
const allKnown = (text, told) => {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return lines.length <= MOST_UNKNOWN && lines.every((line) => [...told].some((one) => line.includes(one.trim()) || one.includes(line)));
};
/** @type {(said: Said, text: string, found: Found[], told: Set<string>) => Content[]} */
const unknownTold = (said, text, found, told) => {
  if (found.length && allKnown(text, told)) return [make("p", {}, "All of this text is known, and nothing in it is a failure. Where a build fails, another line says so: paste the whole log.")];
  const parts = found.length ? [] : nameTold(text);
  if (parts.length) return [make("div", { class: "found harmless" }, make("h3", {}, "The name of a layer"), make("p", {}, "It says nothing of a failure: paste the line that it is from, too."), partsTold(parts), wordsTold(text))];
  const where = data.issues ? [" and file it at ", link(data.issues, data.issues)] : [" and send it to whoever you have this page from"];
  const report = reportOf(said, text);
  return [make("div", { class: "found unknown" }, make("h3", {}, found.length ? "No known failure in this text" : "Unknown here"),
    make("p", {}, found.length ? "What is known of it says nothing of a failure. " : "No signature knows this text, and none is guessed. ", "If it is of a failure, copy this report, look through it", where, "."), wordsTold(text),
    make("pre", {}, report), copying("Copy the report", () => report))];
};
// What of it is known of the two columns that the reader chose: their cells come before what is seen elsewhere.
const tellChosen = () => byId("paste-said").querySelectorAll(".chosen").forEach((/** @type {HTMLElement} */ place) => {
  const own = String(pairNow()) !== String(data.pair.map((id) => number(id, id)));
  place.replaceChildren(.../** @type {any[]} */ (own ? [...new Set(pairNow())] : []).flatMap((column) => {
    const found = rows.filter(({ index }) => lookOf(index, column).signature === place.dataset.error);
    return [make("b", {}, `On ${targets[column].label}, which you compare. `), ...found.slice(0, 6).flatMap(({ index, full }, at) => [at ? ", " : "", cellLink(idOf(index, column), full), ` (${lookOf(index, column).said})`]),
      found.length ? `${found.length > 6 ? ` and ${found.length - 6} more` : ""}. ` : "Nobody has measured or reported it there. "];
  }));
});
// Who has no error text in hand describes what happens: then rows with these words, and calls that are gone, may help.
const LONGEST_WORDS = 160;
/** @type {(text: string) => Content} */
const wordsTold = (text) => {
  const words = [...new Set(text.toLowerCase().split(/[^\w.-]+/))].filter((word) => word.length > 2);
  if (text.length > LONGEST_WORDS || !words.length) return null;
  const scores = rows.map((row) => words.filter((word) => haystack(row).includes(word)).length);
  const best = Math.max(...scores);
  const found = 2 * best > words.length ? rows.filter(({ index }) => scores[index] === best) : [];
  const calls = Object.entries(data.replaced).flatMap(([id, every]) => every.map(([old, now]) => ({ id, old, now, score: words.filter((word) => word.length > 4 && old.toLowerCase().includes(word)).length })));
  const most = Math.max(1, ...calls.map(({ score }) => score));
  const gone = calls.filter(({ score }) => score === most).map(({ id, old, now }) => (
    make("p", {}, make("code", {}, old), ` is gone in newer versions; in its place, as NVIDIA reports: ${now}. `, make("a", { href: `#error=${id}` }, "More on it"), ".")));
  const [, after] = pairNow();
  return [gone, found.length ? make("p", {}, make("b", {}, "Rows of the matrix with these words. "), found.slice(0, 5).map(({ index, full, title }, at) => [at ? "; " : "", cellLink(idOf(index, after), full), ` ${cut(title)}`]),
    found.length > 5 ? `; and ${found.length - 5} more` : "", ".") : null];
};
let pasted = 0;
/** @type {(text: string, typed?: boolean) => Promise<void>} */
const readPaste = async (text, typed = false) => {
  pasted += 1;
  const mine = pasted;
  const stale = () => mine !== pasted;
  const place = byId("paste-said");
  const state = byId("paste-state");
  if (!text.trim()) {
    place.replaceChildren();
    place.removeAttribute("aria-busy");
    state.textContent = "";
    return;
  }
  state.textContent = "Reading …";
  place.setAttribute("aria-busy", "true");
  await rest();
  const whole = text.length <= MOST_PASTED;
  try {
    const known = await knownErrors();
    if (stale()) return;
    const said = readLog(whole ? text : text.slice(-MOST_PASTED));
    const all = await findAll(known, said, stale);
    if (!all || stale()) return;
    const { found, told } = all;
    const causes = found.filter(({ id }) => entryOf(id).dataset.kind === "failure");
    place.replaceChildren(...found.map((one) => foundTold(said, one, one === causes[0])), ...(/** @type {any[]} */ (causes.length ? [othersTold(said, told)].filter(Boolean) : unknownTold(said, text, found, told))));
    tellChosen();
    if (!typed) place.scrollIntoView({ block: "nearest" });
    const others = found.length - causes.length;
    state.textContent = `${causes.length ? `${causes.length} known cause${causes.length > 1 ? "s" : ""}` : "No known cause"}${others ? `, ${others} warning${others > 1 ? "s" : ""} or harmless text${others > 1 ? "s" : ""}` : ""}.${whole ? "" : " Only the last 4 MB were read."}`;
  } catch (error) {
    place.replaceChildren();
    state.textContent = `This browser cannot read it (${messageOf(error)}).`;
  }
  place.removeAttribute("aria-busy");
};
byId("paste").hidden = false;
let waiting = 0;
byId("paste-text").addEventListener("input", (/** @type {InputEvent} */ event) => {
  clearTimeout(waiting);
  byId("paste-said").setAttribute("aria-busy", "true");
  waiting = setTimeout(() => readPaste(byId("paste-text").value, /^(?:insertText|delete)/.test(event.inputType)), 150);
});
byId("paste-clear").addEventListener("click", () => {
  byId("paste-text").value = "";
  readPaste("");
  byId("paste-text").focus();
});
byId("paste").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());

// ---- #error=ID opens an entry ---------------------------------------------------------------------------------------
/** @type {(hash: string) => any} */
const errorIn = (hash) => (hash.startsWith("#error=") ? byId(hash.slice(1)) : null);
/** @type {(entry: any) => void} */
const openError = (entry) => {
  byId("catalogue").open = true;
  entry.open = true;
  entry.scrollIntoView();
  entry.querySelector("summary").focus({ preventScroll: true });
};
byId("catalogue").addEventListener("toggle", (/** @type {any} */ { target: entry }) => {
  if (!entry.open || !entry.matches(".error") || entry.querySelector(":scope > button")) return;
  entry.querySelector("summary").after(.../** @type {any[]} */ ([copyError(entry.id.slice("error=".length))].filter(Boolean)));
}, true);
const followError = () => {
  const entry = errorIn(location.hash);
  if (entry) openError(entry);
};
addEventListener("hashchange", followError);
// Before the links of the page are followed in main.js, which keep the address.
document.addEventListener("click", (event) => {
  const anchor = event.target?.closest?.("a[href^='#error=']");
  const entry = anchor && errorIn(anchor.getAttribute("href"));
  if (!entry || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  event.stopPropagation();
  if (location.hash === anchor.getAttribute("href")) openError(entry);
  else location.hash = anchor.getAttribute("href");
}, true);
followError();
