// ---- the panel ------------------------------------------------------------------------------------------------
/** @type {(pairs: [string, unknown][]) => Element} */
const list = (pairs) => make("dl", {}, pairs.flatMap(([key, value]) => [
  make("dt", {}, key), make("dd", {}, typeof value === "string" ? value : JSON.stringify(value))]));
/** @type {(title: string, ...content: Content[]) => Content[]} */
const chapter = (title, ...content) => {
  const found = /** @type {any[]} */ (content).flat(Infinity).filter(Boolean);
  return found.length ? [make("h3", {}, title), ...found] : [];
};
/** @type {(title: string, ...content: Content[]) => Element} */
const fold = (title, ...content) => make("details", {}, make("summary", {}, title), ...content);
/** @type {(bytes: number) => string} */
const size = (bytes) => (bytes < 1048576 ? (bytes / 1024).toFixed(1) + " KiB" : (bytes / 1048576).toFixed(1) + " MiB");
/** @type {(text?: string) => string} */
const capital = (text = "") => (/^[a-z]+[ ,;:]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text);
/** @type {(value: Figure) => string} */
const figure = (value) => (typeof value === "number" ? String(Number(value.toPrecision(4))) : "not finite");

/** @type {(cell: Cell, variant: Variant, measured: boolean) => Element[]} */
const claims = (cell, variant, measured) => (cell.claims || []).map((index) => {
  const claim = variant.expectations[index];
  return make("p", {}, make("b", {}, claim.says), ", ", claim.how, claim.url ? [" ", link(claim.url, claim.source || claim.url)] : "", ". ",
    claim.note ? `${capital(claim.note.replace(/\.?$/, "."))} ` : "", claim.where ? make("span", { class: "quiet" }, `${claim.where} `) : "",
    measured && cell.expectation === index ? make("span", { class: "quiet" }, "This is what the result is held against.") : "");
});
// A proof is named case.variant; its cell on the same target is where to look, and says there whether it holds.
/** @type {(name: string, column: number) => Content} */
const proof = (name, column) => {
  const row = rowOf.get(name);
  return row === undefined ? make("code", {}, name) : [cellLink(idOf(row, column)), ` (${lookOf(row, column).said})`];
};
// What puts the advice to the test in the cell's own case comes first.
/** @type {(cell: Cell, row: number, column: number) => Element[]} */
const diagnosis = (cell, row, column) => {
  const found = cell.diagnosis;
  if (!found) return [];
  const strange = (/** @type {string} */ name) => Number(rows[rowOf.get(name) ?? -1]?.case !== rows[row].case);
  const proofs = [...found.proofs].sort((one, two) => strange(one) - strange(two));
  return [make("div", { class: "box hint" }, make("p", {}, make("b", {}, found.title), " ", make("a", { href: `#error=${found.id}` }, make("code", {}, found.id))),
    make("p", {}, found.cause), make("p", {}, make("b", {}, "What to do. "), found.advice),
    data.replaced[found.id] ? region("Old call and new one", table(["Old call", "In its place, as NVIDIA reports"], data.replaced[found.id].map(([old, now, url]) => [make("code", {}, old), link(url, now)]))) : null,
    proofs.length ? make("p", {}, make("b", {}, "Variants that test the advice. "), proofs.map((name, index) => [index ? ", " : "", proof(name, column)]).flat(), ".") : null,
    found.links.length ? make("p", { class: "quiet" }, found.links.map((url, index) => [index ? ", " : "", link(url, url)]).flat()) : null)];
};
// What to use where the cell does not work, each variant named as a link to its cell on the same target.
/** @type {(cell: Cell, column: number) => Element[]} */
const meanwhile = (cell, column) => {
  if (!cell.meanwhile) return [];
  const pieces = capital(cell.meanwhile).split(/([\w-]+(?:\.[\w-]+)+)/);
  return [make("p", {}, make("b", {}, "Meanwhile. "), pieces.map((piece) => { const row = rowOf.get(piece); return row === undefined ? piece : cellLink(idOf(row, column), piece); }), ".")];
};
// What the cell ended as on each GPU, the worst first, which is what the rest of the panel shows; then the others' words.
/** @type {(cell: Cell) => Element[]} */
const byGpu = (cell) => {
  const found = cell.byGpu || [];
  if (!found.length) return [];
  const ended = (/** @type {OnGpu} */ { cls, name }) => make("span", { class: "sided short" }, make("b", { class: `badge ${data.marks[cls].shape} k-${cls}`, "aria-hidden": "true" }, data.marks[cls].letters), ` ${name}`);
  const words = (/** @type {string} */ text) => make("span", { class: "short" }, text);
  const whole = (/** @type {string} */ text) => make("span", { class: "fix" }, text);
  return [region("By GPU", table(["GPU", "Driver", "Class", "Verdict", "#Median", "Run"], found.map((each) => [
    words(each.gpu), whole(each.driver), ended(each), words(each.verdict), ms(each.median), whole(each.when.slice(0, 10))]))),
    ...found.slice(1).map((each) => make("p", {}, make("b", {}, `${each.gpu}. `), capital(each.said))),
    make("p", { class: "quiet" }, `All else that stands here is of the first, ${found[0].gpu}; results.json has the log of each.`)];
};
/** @type {(cell: Cell) => Element[]} */
const phases = (cell) => {
  if (!cell.phases) return [];
  const longest = Math.max(...cell.phases.map(([, seconds]) => seconds), 1e-9);
  return [make("div", { class: "bars" }, cell.phases.flatMap(([name, seconds]) => [
    make("span", {}, name + (name === cell.failedPhase ? " (failed)" : "")),
    make("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true", class: name === cell.failedPhase ? "fail" : null },
      make("rect", { x: 0, y: 0, height: 10, width: Math.max(0.4, (seconds / longest) * 100) })),
    make("span", {}, seconds < 1 ? (seconds * 1000).toPrecision(3) + " ms" : seconds.toFixed(2) + " s")]))];
};
/** @type {(cell: Cell, variant: Variant, baseline: boolean) => Element[]} */
const precision = (cell, variant, baseline) => {
  const wanted = variant.wanted || [];
  const ran = ranOf(cell);
  if (!cell.precision || !wanted.length) return [];
  const kind = (/** @type {string} */ node) => ran.get(node)?.kind || "not told";
  if (baseline) {
    return [table(["Node", "Ran in"], wanted.map(([node]) => [node, kind(node)])),
      make("p", { class: "quiet" }, "ONNX Runtime is the baseline for graph and numbers: no precision is demanded of it.")];
  }
  const kept = (/** @type {string} */ node) => kind(node) !== "not told" && !ran.get(node)?.lost;
  return [table(["Node", "Wanted", "Ran in"], wanted.map(([node, want]) => [node, want, kind(node)]), ([node]) => (kept(node) ? null : "lostrow"))];
};
/** @type {(cell: Cell) => Content[]} */
const latency = (cell) => {
  const found = cell.latency;
  if (!found) return [];
  const low = Math.min(...found.samples), high = Math.max(...found.samples, found.p95), width = high - low || 1;
  const y = (/** @type {number} */ value) => `${92 - ((value - low) / width) * 84}%`;
  const sensors = (found.sensors || []).map(([name, before, after]) => `${name.replaceAll("_", " ")} ${before}, then ${after}`);
  const how = [found.scope && `Timed: ${found.scope}.`, found.upload && `Copying the inputs to the device takes ${ms(found.upload)} more.`,
    sensors.length && `Sensors before and after: ${sensors.join("; ")}.`].filter(Boolean).join(" ");
  return [make("p", {}, `median ${ms(found.median)}, 95th percentile ${ms(found.p95)}, spread ${((found.spread || 0) * 100).toPrecision(2)} %; ${found.count} samples after ${found.warmup || 0} warm-up runs, ${found.clock.replace("_", " ")}`),
    found.noise ? make("p", {}, `Too noisy to compare: ${found.noise}.`) : null,
    how ? make("p", { class: "quiet" }, how) : null,
    make("svg", { class: "spark", role: "img", "aria-label": `Samples from ${ms(low)} to ${ms(high)}` },
      make("line", { x1: 0, x2: "100%", y1: y(found.median), y2: y(found.median) }),
      found.samples.map((sample, index) => make("circle", { cx: `${1 + (98 * index) / Math.max(1, found.samples.length - 1)}%`, cy: y(sample), r: 2 })))];
};
/** @type {(cell: Cell) => Element[]} */
const accuracy = (cell) => (cell.accuracy ? [region("Accuracy", table(["Output", "#Largest error", "#relative", "#Cosine", "Shape"], cell.accuracy.map(
  ([output, most, relative, cosine, bad, shape]) => [output, figure(most), figure(relative), figure(cosine) + (bad ? `, ${bad} not finite` : ""), shape ? "same" : "differs"])))] : []);
/** @type {(text: string) => Element} */
const boxed = (text) => make("pre", { tabindex: "0" }, text);
/** @type {(cell: Cell) => Content[]} */
const log = (cell) => [
  cell.error ? boxed(cell.error) : null,
  cell.parserErrors ? region("Parser errors", table(["Code", "Node", "Operator", "Parser error"], cell.parserErrors)) : null,
  cell.messages ? table(["Severity", "Message"], cell.messages) : null,
  cell.messagesLeftOut ? make("p", { class: "quiet" }, `${cell.messagesLeftOut} more messages are in the whole log.`) : null,
  cell.native ? fold("What the native library wrote", boxed(cell.native)) : null,
  cell.log ? inFolder("The whole log", "logs", make("a", { href: `logs/${cell.log.slice(0, 2)}/${cell.log}.txt.gz` }, `${cell.log.slice(0, 12)}.txt.gz`)) : null].filter(Boolean);
/** @type {(label: string, text: () => string, done?: string) => Element | null} */
const copying = (label, text, done = "Copied") => {
  const button = make("button", { type: "button" }, label);
  button.addEventListener("click", () => navigator.clipboard?.writeText(text()).then(() => { button.textContent = done; }));
  return navigator.clipboard ? button : null;
};
// The address of a local file is nobody else's: what stands behind it opens the same in any copy of this page.
const LOCAL = location.protocol === "file:";
const COPIED_LINK = LOCAL ? "Copied from # on: this page is a local file" : "Copied";
/** @type {(hash: string) => string} */
const addressOf = (hash) => (LOCAL ? hash : location.href.split("#")[0] + hash);
/** @type {(text: string) => Element} */
const command = (text) => make("div", { class: "cmd" }, boxed(text), copying("Copy", () => text));
// What lies beside the page in the folder of its run.
/** @type {(what: string, folder: string, file: Element) => Content} */
const inFolder = (what, folder, file) => make("p", { class: folder === "logs" ? "quiet" : null }, `${what}, which this file does not hold, lies in the folder of the run: `, file);
// ---- the runs of the past: a strip of badges, and the medians of the runs on the present stack ----------------------
/** @type {(past: Past) => Element} */
const strip = (past) => make("ol", { class: "strip", "aria-label": "The last runs, the oldest first" }, (past.strip || []).map(([when, cls, elsewhere]) => {
  const { letters, shape, name } = data.marks[cls];
  const words = `${when} UTC: ${name.toLowerCase()}${elsewhere ? ", on another stack" : ""}`;
  return make("li", { class: elsewhere ? "elsewhere" : null, title: words }, make("b", { class: `badge ${shape} k-${cls}`, "aria-hidden": "true" }, letters), make("span", { class: "vh" }, words));
}));
/** @type {(days: string[]) => string} */
const between = (days) => (days[0] === days.at(-1) ? `all on ${days[0]}` : `${days[0]} to ${days.at(-1)}`);
/** @type {(past: Past) => Element | null} */
const stripTold = (past) => {
  const days = (past.strip || []).map(([when]) => when.slice(0, 10));
  const other = (past.strip || []).some(([, , elsewhere]) => elsewhere);
  return days.length > 1 ? make("p", { class: "quiet" }, `${days.length} runs, ${between(days)}${other ? "; dotted below: on another stack" : ""}.`) : null;
};
/** @type {(past: Past) => Element | null} */
const medians = (past) => {
  const found = past.medians || [];
  if (found.length < 2) return null;
  const values = found.map(([, value]) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (/** @type {number} */ at) => `${1 + (98 * at) / (found.length - 1)}%`;
  const y = (/** @type {number} */ value) => `${88 - ((value - low) / (high - low || 1)) * 76}%`;
  const changed = new Set(past.changes || []);
  const lines = found.flatMap(([when], at) => (changed.has(when) ? [make("line", { class: "changed", x1: x(at), x2: x(at), y1: "0", y2: "100%" }, make("title", {}, `changed ${when} UTC`))] : []));
  return make("figure", { class: "medians" }, make("svg", { class: "spark", role: "img", "aria-label": `Medians of ${found.length} runs on this stack, from ${ms(low)} to ${ms(high)}` },
    lines, found.map(([when, value], at) => make("circle", { cx: x(at), cy: y(value), r: 3 }, make("title", {}, `${when} UTC: ${ms(value)}`)))),
  make("figcaption", { class: "quiet" }, `Median of each run on this stack, ${between(found.map(([when]) => when.slice(0, 10)))}: ${ms(low)} to ${ms(high)}${lines.length ? "; a line marks a change" : ""}.`));
};
/** @type {(cell: Cell) => Content[]} */
const past = (cell) => (cell.past ? [...cell.past.said.map((text) => make("p", {}, text)), strip(cell.past), stripTold(cell.past), medians(cell.past)] : []);
/** @type {(text: string) => string} */
const quoted = (text) => (/^[\w.:/-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);
/** @type {(name: string, kind: string, base64: string) => Element} */
const saved = (name, kind, base64) => make("a", { href: `data:${kind};base64,${base64}`, download: name }, name);
// The link leads nowhere until the models are unpacked.
/** @type {(name: string, pieces: [start: number, length: number][]) => Element} */
const model = (name, pieces) => {
  const made = make("a", { download: name }, name);
  modelOf(pieces).then((letters) => made.setAttribute("href", `data:application/octet-stream;base64,${btoa(letters)}`));
  return made;
};
/** @type {(text: string) => string} */
const base64Of = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
// The lines are one block; those that begin with # are remarks. The file is the same that `show --save` writes.
/** @type {(cell: Cell, file: string) => Content[]} */
const byHand = (cell, file) => {
  const lines = cell.byHand || [];
  const [block, remarks] = [lines.filter((line) => line[0] !== "#"), lines.filter((line) => line[0] === "#")];
  const text = cell.script ? cell.script.join("\n") : "";
  return !block.length ? [] : [
    text ? make("p", {}, "A Python file that does the same: ", saved(file, "text/x-python", base64Of(text)), ".") : null,
    text ? fold("Read it", boxed(text), copying("Copy", () => text)) : null,
    make("p", { class: "quiet" }, `By hand, as a bug report needs it, in the folder of the model${text ? " and of the file" : ""}.`), command(block.join("\n")),
    cell.command && !block.includes(cell.command) ? make("p", { class: "quiet" }, "Where the engine is installed: ", make("code", {}, cell.command)) : null,
    remarks.map((line) => make("p", { class: "quiet" }, line.slice(2).split(/(https:\S+)/).map((piece, at) => (at % 2 ? link(piece, piece) : capital(piece))), "."))];
};
// The image that cells run in, made in a clone, and the cell by hand in it.
/** @type {() => Content[]} */
const aClone = () => ["in a clone of ", data.home ? link(data.home, "the project") : "the project", ", after ", make("code", {}, "pip install -e ."), " there"];
/** @type {(id: string, cell: Cell, variant: Variant, target: Target) => Content} */
const contained = (id, cell, variant, target) => {
  const [start, made] = [target.commands.at(-1) || "", target.commands.slice(0, -1)];
  if (!start || !cell.command) return null;
  const image = (cell.stamps || []).find(([key]) => key === "image")?.[1] || "";
  const same = image && start.split(" ").includes(image);
  return fold("In the project’s image, made in a clone of the project",
    image ? make("p", { class: "quiet" }, same ? "The image is tagged as the one that this was measured in." : `Measured in ${image}, which was made on the machine that measured, on another base, and is in no registry.`) : null,
    command([`trt-compat show ${quoted(id)} --save ${variant.file}`, ...made, `${start} ${cell.command}`].join("\n")));
};
/** @type {(id: string, cell: Cell, variant: Variant, target: Target) => Content[]} */
const reproduce = (id, cell, variant, target) => [
  ...(variant.onnx ? [make("p", {}, "The model, which this page holds: ", model(variant.file, variant.onnx), ".")]
    : [inFolder("The model", "models", make("a", { href: `models/${variant.file}`, download: variant.file }, variant.file)),
      make("p", { class: "quiet" }, "Without that folder the model is made anew ", aClone(), ":"), command(`trt-compat show ${quoted(id)} --save ${variant.file}`)]),
  ...byHand(cell, variant.file.replace(/onnx$/, "py")),
  make("p", { class: "quiet" }, "This cell again, where matrix.yaml and cases/ are; the project’s own are ", aClone(), ". For others that lie elsewhere add ", make("code", {}, "--matrix=FILE"), " and ", make("code", {}, "--cases=FOLDER"), "."),
  command(`pytest ${quoted(`matrix.yaml::${id}`)}`), command(`trt-compat show ${quoted(id)}`),
  contained(id, cell, variant, target)];

/** @type {(column: number, other: number | null) => Element} */
const beside = (column, other) => {
  const pick = /** @type {HTMLSelectElement} */ (make("select", { id: "p-vs" }, make("option", { value: "" }, "nothing"), targets.filter((target) => target.index !== column)
    .map((target) => make("option", { value: target.id, selected: target.index === other }, `${target.id} – ${cut(target.label, 60)}${target.run ? "" : " (not run)"}`))));
  pick.addEventListener("change", () => go({ vs: pick.value }));
  return make("p", { class: "beside" }, make("label", { for: "p-vs" }, "Beside it show "), pick);
};
/** @type {(look: Look) => Element} */
const stateOf = (look) => make("span", { class: "sided" }, badge(look), ` ${look.said}`);
// What the other side ended in: its words, cause, error and latency; graphs and layers stand beside each other below.
/** @type {(cell: Cell, row: number, column: number) => Content[]} */
const otherSide = (cell, row, column) => [make("p", { class: "state" }, badge(lookOf(row, column)), cell.state),
  make("p", {}, capital(cell.sentence || cell.reason)), ...diagnosis(cell, row, column),
  cell.error ? boxed(cell.error) : null, ...(cell.messages || []).filter(([severity]) => severity === "ERROR").slice(0, 3).map(([, text]) => boxed(text)),
  cell.latency ? make("p", {}, `median ${ms(cell.latency.median)}${cell.latency.noise ? ", too noisy to compare" : ""}`) : null].filter(Boolean);
// Where no engine told of a node the picture is only the model: folded, so that what is known stands first.
/** @type {(variant: Variant, sides: Side[]) => Content} */
const picture = (variant, sides) => (sides.some(({ cell }) => (cell.precision || []).length) ? graphView(variant, sides) : fold("The model as a graph", graphView(variant, sides)));
/** @type {(row: number, column: number, other: number | null, found: Evidence | null) => Content[]} */
const bodyOf = (row, column, other, found) => {
  if (!found) return [make("p", {}, "The evidence of this cell was left out of the page to keep it small; ", make("a", { href: "#files" }, "results.json"), " has it.")];
  const cell = found.cells[column] || {};
  const variant = found.variant;
  const second = other === null ? null : { at: other, name: targets[other].id, cell: found.cells[other] || {} };
  const facts = /** @type {[string, string][]} */ ([["missing API", cell.missingApi], ["process", cell.end], ["peak memory", cell.peakRss && size(cell.peakRss)],
    ["engine size", cell.engineBytes && size(cell.engineBytes)]].filter(([, value]) => value));
  const sides = [{ name: targets[column].id, baseline: targets[column].baseline, cell, state: stateOf(lookOf(row, column)) }];
  if (second) sides.push({ name: second.name, baseline: targets[second.at].baseline, cell: second.cell, state: stateOf(lookOf(row, second.at)) });
  const title = cell.layers ? `Layers (${cell.layers.length}${second ? ` and ${(second.cell.layers || []).length}` : ""})` : "Layers";
  return [
    make("p", { class: "state" }, badge(lookOf(row, column)), cell.state),
    make("p", { class: "say" }, capital(cell.sentence || cell.reason)),
    cell.sentence && cell.reason && !cell.sentence.includes(cell.reason) ? make("p", {}, cell.reason) : "",
    ...chapter("By GPU", byGpu(cell)),
    ...diagnosis(cell, row, column), ...meanwhile(cell, column), ...(cell.notes || []).map((note) => make("p", { class: "quiet" }, note)),
    ...chapter("Seen by", claims(cell, variant, lookOf(row, column).measured)),
    make("p", { class: "quiet" }, make("b", {}, "The case. "), rows[row].case.summary),
    ...(second ? chapter(`Beside it: ${targets[second.at].label}`, otherSide(second.cell, row, second.at)) : []),
    ...chapter("Past runs", past(cell)),
    ...chapter("Precision of the nodes that matter", precision(cell, variant, targets[column].baseline)),
    ...chapter("The model, by the precision each node ran in", picture(variant, sides)),
    ...chapter("Latency", latency(cell)), ...chapter("Accuracy against the ONNX reference", accuracy(cell)),
    ...chapter("Phases", phases(cell), facts.length ? list(facts) : []),
    ...chapter("Messages", log(cell)),
    ...chapter(title, second && (cell.layers || second.cell.layers) ? alignedTable(cell, second.cell, [targets[column].id, second.name], timed(row, column)?.stack === timed(row, second.at)?.stack) : layerTable(cell)),
    ...chapter("Recipe", make("p", {}, variant.recipe), list(variant.tags ? [...variant.hashes, ["tags", variant.tags.join(", ")]] : variant.hashes)),
    ...chapter("Reproduce", reproduce(idOf(row, column), cell, variant, targets[column])), ...chapter(lookOf(row, column).measured ? "Measured with" : "Not measured by the run with", cell.stamps ? [list(cell.stamps.map(([key, value]) => [key.replaceAll("_", " "), value]))] : [])];
};

/** @type {[row: number, column: number, other: number | null] | null} */
let current = null;
/** @type {(row: number, column: number, other: number | null) => Promise<void>} */
const openCell = async (row, column, other) => {
  const again = current && current[0] === row && current[1] === column;
  current = [row, column, other];
  const id = idOf(row, column);
  let found = null;
  let trouble = "";
  try { found = await evidence(row); } catch (error) { trouble = `The evidence is missing in this copy of the page, or damaged (${messageOf(error)}).`; }
  if (!current || current[0] !== row || current[1] !== column || current[2] !== other) return;
  const close = make("button", { type: "button", "aria-keyshortcuts": "Escape" }, "Close");
  close.addEventListener("click", () => go({ cell: "", vs: "" }));
  const said = [rows[row].case.title, rows[row].title, targets[column].label].map((text) => cut(text, 400).replace(/\.$/, "")).join(". ") + ".";
  panel.classList.toggle("two", other !== null);
  panel.replaceChildren(
    make("div", { class: "panel-head" }, make("div", {}, make("h2", { id: "panel-title", tabindex: "-1" }, id), make("p", {}, said)),
      copying("Copy link", () => addressOf(location.hash), COPIED_LINK), close),
    beside(column, other), ...(trouble ? [make("p", {}, trouble)] : bodyOf(row, column, other, found)));
  document.querySelectorAll("#grid a.open").forEach((entry) => entry.classList.remove("open"));
  const anchor = drawnCell(row, column);
  if (anchor) {
    anchor.classList.add("open");
    setHome(anchor);
  }
  panel.hidden = false;
  if (anchor) reveal(anchor);
  document.title = `${id} – ${TITLE}`;
  if (again) byId("p-vs").focus({ preventScroll: true });
  else {
    panel.scrollTop = 0;
    byId("panel-title").focus({ preventScroll: true });
  }
};
const shutCell = () => {
  if (!current) return;
  const anchor = links[current[0]]?.[current[1]];
  current = null;
  panel.hidden = true;
  panel.replaceChildren();
  anchor?.classList.remove("open");
  document.title = TITLE;
  if (anchor && seen(anchor)) anchor.focus();
  else scroller.focus();
};
