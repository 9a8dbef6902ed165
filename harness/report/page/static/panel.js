// ---- the panel ------------------------------------------------------------------------------------------------
const list = (pairs) => make("dl", {}, pairs.flatMap(([key, value]) => [
  make("dt", {}, key), make("dd", {}, typeof value === "string" ? value : JSON.stringify(value))]));
const chapter = (title, ...content) => {
  const found = content.flat(Infinity).filter(Boolean);
  return found.length ? [make("h3", {}, title), ...found] : [];
};
const fold = (title, ...content) => make("details", {}, make("summary", {}, title), ...content);
const size = (bytes) => (bytes < 1048576 ? (bytes / 1024).toFixed(1) + " KiB" : (bytes / 1048576).toFixed(1) + " MiB");
const capital = (text = "") => (/^[a-z]+[ ,;:]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text);
const figure = (value) => (typeof value === "number" ? String(Number(value.toPrecision(4))) : "not finite");

const claims = (cell, variant, measured) => (cell.claims || []).map((index) => {
  const claim = variant.expectations[index];
  // What was accepted from an earlier measurement says when and where in its note; a source says it here.
  const how = claim.graded === "measured" && claim.note ? ` – ${claim.note} and accepted as what to expect` : ` on ${claim.where}, ${claim.graded}. ${claim.note || ""}`;
  return make("p", {}, make("b", {}, claim.outcome), how.trimEnd().replace(/\.?$/, ". "), claim.url ? [link(claim.url, claim.source), " "] : "",
    measured && cell.expectation === index ? make("span", { class: "quiet" }, "This is what the result is held against.") : "");
});
// A proof is named case.variant; its cell on the same target is where to look, and says there whether it holds.
const proof = (name, column) => {
  const row = rows.find((other) => `${other.case.name}.${other.name}` === name);
  return row ? [cellLink(idOf(row.index, column)), ` (${said(lookOf(row.index, column))})`] : make("code", {}, name);
};
const diagnosis = (cell, column) => {
  const found = cell.diagnosis;
  if (!found) return [];
  return [make("div", { class: "box hint" }, make("p", {}, make("b", {}, found.title), " ", make("code", {}, found.id)),
    make("p", {}, found.cause), make("p", {}, make("b", {}, "What to do. "), found.advice),
    found.proofs.length ? make("p", {}, "Put to the test by ", found.proofs.map((name, index) => [index ? ", " : "", proof(name, column)]).flat(), ".") : null,
    found.links.length ? make("p", { class: "quiet" }, found.links.map((url, index) => [index ? ", " : "", link(url, url)]).flat()) : null)];
};
// What to use where the cell does not work, each variant named as a link to its cell on the same target.
const meanwhile = (row, column) => {
  const look = lookOf(row, column);
  if (!look.known || GOOD.has(look.known)) return [];
  const pieces = instead(rows[row], look, column).split(/([^\s[\]]+\[[^\]]+\])/);
  return [make("p", {}, make("b", {}, "Meanwhile. "), pieces.map((piece) => (rowOf.has(piece) ? cellLink(idOf(rowOf.get(piece), column), piece) : piece)), ".")];
};
const phases = (cell) => {
  if (!cell.phases) return [];
  const longest = Math.max(...cell.phases.map(([, seconds]) => seconds), 1e-9);
  return [make("div", { class: "bars" }, cell.phases.flatMap(([name, seconds]) => [
    make("span", {}, name + (name === cell.failedPhase ? " (failed)" : "")),
    make("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true", class: name === cell.failedPhase ? "fail" : null },
      make("rect", { x: 0, y: 0, height: 10, width: Math.max(0.4, (seconds / longest) * 100) })),
    make("span", {}, seconds < 1 ? (seconds * 1000).toPrecision(3) + " ms" : seconds.toFixed(2) + " s")]))];
};
const precision = (cell, variant, baseline) => {
  const wanted = new Map(variant.wanted || []);
  const ran = new Map(cell.precision || []);
  if (!cell.precision || !wanted.size) return [];
  if (baseline) {
    return [table(["Node", "Ran in"], [...wanted.keys()].map((node) => [node, ran.get(node) || "not told"])),
      make("p", { class: "quiet" }, "ONNX Runtime is the baseline for graph and numbers: no precision is demanded of it.")];
  }
  return [table(["Node", "Wanted", "Ran in"], [...wanted].map(([node, want]) => [node, want, ran.get(node) || "not told"]),
    ([, want, got]) => (samePrecision(want, got) ? null : "lostrow"))];
};
const latency = (cell) => {
  const found = cell.latency;
  if (!found) return [];
  const low = Math.min(...found.samples), high = Math.max(...found.samples, found.p95), width = high - low || 1;
  const y = (value) => `${92 - ((value - low) / width) * 84}%`;
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
const accuracy = (cell) => (cell.accuracy ? [region("Accuracy", table(["Output", "#Largest error", "#relative", "#Cosine", "Shape"], cell.accuracy.map(
  ([output, most, relative, cosine, bad, shape]) => [output, figure(most), figure(relative), figure(cosine) + (bad ? `, ${bad} not finite` : ""), shape ? "same" : "differs"])))] : []);
const boxed = (text) => make("pre", { tabindex: "0" }, text);
const log = (cell) => [
  cell.error ? boxed(cell.error) : null,
  cell.parserErrors ? region("Parser errors", table(["Code", "Node", "Operator", "Parser error"], cell.parserErrors)) : null,
  cell.messages ? table(["Severity", "Message"], cell.messages) : null,
  cell.messagesLeftOut ? make("p", { class: "quiet" }, `${cell.messagesLeftOut} more messages are in the whole log.`) : null,
  cell.native ? fold("What the native library wrote", boxed(cell.native)) : null,
  cell.log ? published("The whole log", "logs", `${cell.log.slice(0, 2)}/${cell.log}.txt`, make("a", { href: `logs/${cell.log.slice(0, 2)}/${cell.log}.txt.gz` }, `${cell.log.slice(0, 12)}.txt.gz`)) : null].filter(Boolean);
const copying = (label, text) => {
  const button = make("button", { type: "button" }, label);
  button.addEventListener("click", () => navigator.clipboard?.writeText(text()).then(() => { button.textContent = "Copied"; }));
  return navigator.clipboard ? button : null;
};
const command = (text) => make("div", { class: "cmd" }, boxed(text), copying("Copy", () => text));
// What lies beside the page by itself, or in its folder's archive, with the line that gets it out. In a packed folder that
// was run into again a log is in either.
const published = (what, folder, name, file) => {
  const archive = `${folder}.tar.xz`;
  const packed = data.archives.includes(folder);
  const places = [!packed || !data.archives.includes("results.json") ? file : null, packed ? make("a", { href: archive }, archive) : null].filter(Boolean);
  return [make("p", { class: folder === "logs" ? "quiet" : null }, `${what}, in the folder that this page was published in: `, places[0], places[1] ? [", or packed in ", places[1]] : ""),
    packed ? command(`tar -xf ${archive} ${folder}/${name}`) : null];
};
// ---- the runs of the past: a strip of badges, and the medians of the runs on the present stack ----------------------
const strip = (past) => make("ol", { class: "strip", "aria-label": "The last runs, the oldest first" }, (past.strip || []).map(([when, cls, elsewhere]) => {
  const [letters, shape, name] = data.marks[cls];
  const words = `${when} UTC: ${name.toLowerCase()}${elsewhere ? ", on another stack" : ""}`;
  return make("li", { class: elsewhere ? "elsewhere" : null, title: words }, make("b", { class: `badge ${shape} k-${cls}`, "aria-hidden": "true" }, letters), make("span", { class: "vh" }, words));
}));
const stripTold = (past) => {
  const days = (past.strip || []).map(([when]) => when.slice(0, 10));
  const other = past.strip.some(([, , elsewhere]) => elsewhere);
  return days.length > 1 ? make("p", { class: "quiet" }, `${days.length} runs, ${days[0]} to ${days.at(-1)}${other ? "; dotted below: on another stack" : ""}.`) : null;
};
const medians = (past) => {
  const found = past.medians || [];
  if (found.length < 2) return null;
  const values = found.map(([, value]) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (at) => `${1 + (98 * at) / (found.length - 1)}%`;
  const y = (value) => `${88 - ((value - low) / (high - low || 1)) * 76}%`;
  const changed = new Set(past.changes || []);
  const lines = found.flatMap(([when], at) => (changed.has(when) ? [make("line", { class: "changed", x1: x(at), x2: x(at), y1: "0", y2: "100%" }, make("title", {}, `changed ${when} UTC`))] : []));
  return make("figure", { class: "medians" }, make("svg", { class: "spark", role: "img", "aria-label": `Medians of ${found.length} runs on this stack, from ${ms(low)} to ${ms(high)}` },
    lines, found.map(([when, value], at) => make("circle", { cx: x(at), cy: y(value), r: 3 }, make("title", {}, `${when} UTC: ${ms(value)}`)))),
  make("figcaption", { class: "quiet" }, `Median of each run on this stack, ${found[0][0].slice(0, 10)} to ${found.at(-1)[0].slice(0, 10)}: ${ms(low)} to ${ms(high)}${lines.length ? "; a line marks a change" : ""}.`));
};
const past = (cell) => (cell.past ? [...cell.past.said.map((text) => make("p", {}, text)), strip(cell.past), stripTold(cell.past), medians(cell.past)] : []);
const quoted = (text) => `'${text.replace(/'/g, "'\\''")}'`;
// A line that begins with # says what the one before it cannot express.
const reproduce = (id, cell, variant, target) => {
  const [lines, unsaid] = [(cell.byHand || []).filter((line) => line[0] !== "#"), (cell.byHand || []).filter((line) => line[0] === "#")];
  return [...published("The model", "models", variant.file, make("a", { href: `models/${variant.file}`, download: variant.file }, variant.file)),
    lines.length ? make("p", { class: "quiet" }, `By hand, as a bug report needs it, in the folder of the model${lines.length > 1 ? ": in NVIDIA’s image, or where TensorRT is installed" : ""}.`) : null,
    lines.map(command), unsaid.map((line) => make("p", { class: "quiet" }, capital(line.slice(2)) + ".")),
    make("p", { class: "quiet" }, "This cell again, in a clone of the project."),
    command(`pytest ${quoted(`matrix.yaml::${id}`)}`), command(`python -m harness show ${quoted(id)}`),
    target.commands.length ? fold("The same container on the public base image, made by hand in a clone of the project", target.commands.map(command)) : null];
};

const beside = (column, other) => {
  const pick = make("select", { id: "p-vs" }, make("option", { value: "" }, "nothing"), targets.filter((target) => target.index !== column)
    .map((target) => make("option", { value: target.id, selected: target.index === other }, `${target.id} – ${cut(target.label, 60)}${target.run ? "" : " (not run)"}`)));
  pick.addEventListener("change", () => go({ vs: pick.value }));
  return make("p", { class: "beside" }, make("label", { for: "p-vs" }, "Beside it show "), pick);
};
const stateOf = (look) => make("span", { class: "sided" }, badge(look), ` ${look.bucket === "claimed" && look.grade ? `${look.grade}: ` : ""}${look.known ? data.predicates[look.known] : look.why}${look.chip ? `, ${look.chip}` : ""}`);
// What the other side ended in: its words, cause, error and latency; graphs and layers stand beside each other below.
const otherSide = (cell, column) => [make("p", {}, capital(cell.sentence || cell.reason)), ...diagnosis(cell, column),
  cell.error ? boxed(cell.error) : null, ...(cell.messages || []).filter(([severity]) => severity === "ERROR").slice(0, 3).map(([, text]) => boxed(text)),
  cell.latency ? make("p", {}, `median ${ms(cell.latency.median)}${cell.latency.noise ? ", too noisy to compare" : ""}`) : null].filter(Boolean);
const stateWords = (row, column, cell) => {
  const look = lookOf(row, column);
  const known = look.bucket === "claimed" ? data.predicates[look.known] || cell.class : cell.class;
  return `${cell.bucket}${cell.bucket === known ? "" : ": " + known.toLowerCase()}${look.past.includes("flaky") ? "; flaky" : ""}`;
};
// Where no engine told of a node the picture is only the model: folded, so that what is known stands first.
const picture = (variant, sides) => (sides.some(({ cell }) => (cell.precision || []).length) ? graphView(variant, sides) : fold("The model as a graph", graphView(variant, sides)));
const bodyOf = (row, column, other, found) => {
  if (!found) return [make("p", {}, "The evidence of this cell was left out of the page to keep it small; ", make("a", { href: data.archives.includes("results.json") ? "results.json.xz" : "results.json" }, "results.json"), " has it.")];
  const cell = found.cells[column] || {};
  const variant = found.variant;
  const second = other === null ? null : found.cells[other] || {};
  const facts = [cell.missingApi ? ["missing API", cell.missingApi] : null, cell.end ? ["process", cell.end] : null,
    cell.peakRss ? ["peak memory", size(cell.peakRss)] : null, cell.engineBytes ? ["engine size", size(cell.engineBytes)] : null].filter(Boolean);
  const sides = [{ name: targets[column].id, baseline: targets[column].baseline, cell, state: stateOf(lookOf(row, column)) }];
  if (second) sides.push({ name: targets[other].id, baseline: targets[other].baseline, cell: second, state: stateOf(lookOf(row, other)) });
  const title = cell.layers ? `Layers (${cell.layers.length}${second ? ` and ${(second.layers || []).length}` : ""})` : "Layers";
  return [
    make("p", { class: "state" }, badge(lookOf(row, column)), stateWords(row, column, cell)),
    make("p", { class: "say" }, capital(cell.sentence || cell.reason)),
    cell.sentence && cell.reason && !cell.sentence.includes(cell.reason) ? make("p", {}, cell.reason) : "",
    ...diagnosis(cell, column), ...meanwhile(row, column), ...(cell.notes || []).map((note) => make("p", { class: "quiet" }, note)),
    ...chapter("What is known", claims(cell, variant, lookOf(row, column).measured)),
    ...(second ? chapter(`Beside it: ${targets[other].id}`, otherSide(second, other)) : []),
    ...chapter("Past runs", past(cell)),
    ...chapter("Precision of the nodes that matter", precision(cell, variant, targets[column].baseline)),
    ...chapter("The model, by the precision each node ran in", picture(variant, sides)),
    ...chapter("Latency", latency(cell)), ...chapter("Accuracy against the ONNX reference", accuracy(cell)),
    ...chapter("Phases", phases(cell), facts.length ? list(facts) : []),
    ...chapter("Messages", log(cell)),
    ...chapter(title, second && (cell.layers || second.layers) ? alignedTable(cell, second, [targets[column].id, targets[other].id], boxOf(row, column)?.stack === boxOf(row, other)?.stack) : layerTable(cell)),
    ...chapter("Recipe", make("p", {}, variant.recipe), list([...variant.hashes, ...(variant.tags ? [["tags", variant.tags.join(", ")]] : [])])),
    ...chapter("Reproduce", reproduce(idOf(row, column), cell, variant, targets[column])), ...chapter(lookOf(row, column).measured ? "Measured with" : "Last tried with", cell.stamps ? [list(cell.stamps.map(([key, value]) => [key.replaceAll("_", " "), value]))] : [])];
};

let current = null;
const openCell = async (row, column, other) => {
  const again = current && current[0] === row && current[1] === column;
  current = [row, column, other];
  const id = idOf(row, column);
  let found = null;
  let trouble = "";
  try { found = await evidence(row); } catch (error) { trouble = `The evidence cannot be unpacked in this browser (${error.message}).`; }
  if (!current || current[0] !== row || current[1] !== column || current[2] !== other) return;
  const close = make("button", { type: "button", "aria-keyshortcuts": "Escape" }, "Close");
  close.addEventListener("click", () => go({ cell: "", vs: "" }));
  const said = [rows[row].case.title, rows[row].title, targets[column].label].map((text) => cut(text, 400).replace(/\.$/, "")).join(". ") + ".";
  panel.classList.toggle("two", other !== null);
  panel.replaceChildren(
    make("div", { class: "panel-head" }, make("div", {}, make("h2", { id: "panel-title", tabindex: "-1" }, id), make("p", {}, said)),
      copying("Copy link", () => location.href), close),
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
