// ---- the paste box: what is pasted is explained here (explain.js) and goes nowhere -----------------------------------
// A search rests when it has held the page this long (ms), so that typing and scrolling go on.
const REST_AFTER = 12;
const MOST_PASTED = 4000000;
const MOST_LINES = 200;
const rest = () => new Promise((done) => { setTimeout(done, 0); });
/** @type {Promise<any> | null} */
let knownSoon = null;
const knownErrors = () => {
  knownSoon = knownSoon || opening(data.errors).then((entryAt) => compiled(entryAt(0)));
  return knownSoon;
};
// Returns the explanation, or null where another paste came meanwhile.
/** @type {(known: any, text: string, stale: () => boolean) => Promise<any>} */
const explained = async (known, text, stale) => {
  const steps = explaining(known, text);
  let since = performance.now();
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (performance.now() - since <= REST_AFTER) continue;
    await rest();
    if (stale()) return null;
    since = performance.now();
  }
};

// ---- what is said of it -----------------------------------------------------------------------------------------------
/** @type {(parts: any[]) => Content} */
const partsTold = (parts) => (parts.length ? [make("p", {}, make("b", {}, "The layer, taken apart. "), "Look for these names among the nodes of your model; the first may be a weight."),
  make("ul", { class: "parts" }, parts.map(({ name, how }) => make("li", {}, make("code", {}, cut(name, 200)), how ? ` ${how}` : "")))] : null);
// A name alone, as a log or a profile has it, says nothing of a failure, but which nodes are in it.
const LAYER_NAME = /^(?:\{ForeignNode\[|PWN\(|\(Unnamed Layer|Reformatting CopyNode |node_of_|__my)|\S \+ \S| \|\| /;
// In a sentence with a plus there are other spaces.
const NODE_ALONE = /^(?:\S+|\(Unnamed Layer\* \d+\) \[[\w ]+\]\S*)$/;
/** @type {(known: any, text: string) => any[]} */
const nameTold = (known, text) => {
  const parts = LAYER_NAME.test(text.trim()) ? takenApart(known, text.trim()) : [];
  return parts.every(({ name }) => NODE_ALONE.test(name)) ? parts : [];
};
/** @type {(found: any) => Content[]} */
const placeTold = ({ operator, node, parts }) => {
  const whole = parts.length === 1 && parts[0].name === node;
  const where = operator === NETWORK_INPUT ? `The network input ${node}` : operator === WHOLE_MODEL ? "The whole model" : [operator && `operator ${operator}`, node && (whole ? `${node} (${parts[0].how})` : !parts.length && `node ${node}`)].filter(Boolean).join(", ");
  return [where ? make("p", {}, make("b", {}, "Where. "), capital(cut(where, 300)), ".") : null, partsTold(whole ? [] : parts)];
};
/** @type {(id: string) => Content} */
const copyError = (id) => copying("Copy link", () => addressOf(`#error=${id}`), COPIED_LINK);
const HEADS = { failure: "Also in this text", warning: "A warning", harmless: "No cause of anything" };
// The paste is lost where the page is left.
/** @type {(links: string[]) => Content} */
const linksTold = (links) => (links.length ? make("p", { class: "quiet" }, links.map((url) => [make("a", { href: url, rel: "noreferrer", target: "_blank" }, url.replace(/^https:\/\/(?:github\.com\/)?/, "")), " "])) : null);
/** @type {(found: any, first: boolean) => Element} */
const foundTold = (found, first) => make("div", { class: `found ${found.kind}`, "data-id": found.id },
  make("h3", {}, `${first ? "The cause" : HEADS[/** @type {"failure"} */ (found.kind)]}: ${cut(found.title, 200)} `, make("a", { href: `#error=${found.id}` }, make("code", {}, found.id)), " ", copyError(found.id)),
  make("pre", {}, cut(found.message, 600)), found.where ? make("p", { class: "quiet" }, `Line ${found.where}${found.others ? `, and ${found.others} more line${found.others > 1 ? "s" : ""} like it` : ""}.`) : null,
  placeTold(found), make("p", { class: "chosen", "data-error": found.id }), make("p", {}, cut(found.cause, 2000)), make("p", {}, make("b", {}, "What to do. "), found.advice),
  found.versions ? make("p", {}, make("b", {}, "Versions. "), found.versions) : null, found.harmless_where ? make("p", {}, make("b", {}, "Is it harmful? "), found.harmless_where) : null, linksTold(found.links));
// What to file of a text that nobody knows here, and what only the reader knows.
/** @type {(unknown: string[], version: string) => string} */
const reportOf = (unknown, version) => ["An error text that no signature knows", "", `Version: ${version || "(TensorRT, platform)"}`, "GPU and driver: ", "Command: ", "Model, or the nodes around: ", "",
  ...unknown.flatMap((text) => text.split("\n")).slice(0, 40).map((line) => `    ${cut(line, 400)}`)].join("\n");
/** @type {(unknown: string[], version: string) => Content[]} */
const reportTold = (unknown, version) => {
  const report = reportOf(unknown, version);
  const where = data.issues ? [" and file it at ", link(data.issues, data.issues)] : [" and send it to whoever you have this page from"];
  return [make("p", {}, "If it is of a failure, copy this report, look through it", where, "."), make("pre", {}, report), copying("Copy the report", () => report)];
};
/** @type {(known: any, explanation: any, text: string) => Content[]} */
const unknownTold = (known, { findings, unknown: severe, version }, text) => {
  const unknown = severe.length || findings.length ? severe : [text.trim()];
  const causes = findings.some((/** @type {any} */ { kind }) => kind === "failure");
  if (!unknown.length) return causes ? [] : [make("p", {}, "All of this text is known, and nothing in it is a failure. Where a build fails, another line says so: paste the whole log."), wordsTold(text)];
  const parts = findings.length ? [] : nameTold(known, text);
  if (parts.length) return [make("div", { class: "found harmless" }, make("h3", {}, "The name of a layer"), make("p", {}, "It says nothing of a failure: paste the line that it is from, too."), partsTold(parts), wordsTold(text))];
  const many = unknown.length > 1 ? "s are" : " is";
  const head = causes ? `${unknown.length} further error line${many} unknown here` : findings.length ? "No known failure in this text" : "Unknown here";
  const said = causes ? "They may only follow from what stands above, or have a cause of their own. " : findings.length ? "What is known of it says nothing of a failure. " : "No signature knows this text. ";
  return [make("div", { class: "found unknown" }, make("h3", {}, head), make("p", {}, said), causes ? null : wordsTold(text), reportTold(unknown, version))];
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
    const explanation = await explained(known, whole ? text : text.slice(-MOST_PASTED), stale);
    if (!explanation || stale()) return;
    const found = explanation.findings;
    const causes = found.filter((/** @type {any} */ { kind }) => kind === "failure");
    place.replaceChildren(...found.map((/** @type {any} */ one) => foundTold(one, one === causes[0])), .../** @type {any[]} */ (unknownTold(known, explanation, text)).flat(Infinity).filter(Boolean));
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
