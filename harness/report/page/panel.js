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

const claims = (cell, variant) => (cell.documented || []).map((index) => {
  const claim = variant.expectations[index];
  return make("p", {}, make("b", {}, claim.outcome), ` on ${claim.where}, ${claim.certainty}`,
    cell.expectation === index ? " (held against this)" : "", ". ", claim.note ? claim.note + " " : "", claim.url ? link(claim.url, claim.source) : "");
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
const phases = (cell) => {
  if (!cell.phases) return [];
  const longest = Math.max(...cell.phases.map(([, seconds]) => seconds), 1e-9);
  return [make("div", { class: "bars" }, cell.phases.flatMap(([name, seconds]) => [
    make("span", {}, name + (name === cell.failedPhase ? " (failed)" : "")),
    make("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true", class: name === cell.failedPhase ? "fail" : null },
      make("rect", { x: 0, y: 0, height: 10, width: Math.max(0.4, (seconds / longest) * 100) })),
    make("span", {}, seconds < 1 ? (seconds * 1000).toPrecision(3) + " ms" : seconds.toFixed(2) + " s")]))];
};
const precision = (cell, variant) => {
  const wanted = new Map(variant.wanted || []);
  const ran = new Map(cell.precision || []);
  if (!cell.precision || !wanted.size) return [];
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
  cell.log ? make("p", { class: "quiet" }, "Whole log, beside this page: ", make("a", { href: `logs/${cell.log.slice(0, 2)}/${cell.log}.txt.gz` }, `${cell.log.slice(0, 12)}.txt.gz`)) : null].filter(Boolean);
const copying = (label, text) => {
  const button = make("button", { type: "button" }, label);
  button.addEventListener("click", () => navigator.clipboard?.writeText(text()).then(() => { button.textContent = "Copied"; }));
  return navigator.clipboard ? button : null;
};
const command = (text) => make("div", { class: "cmd" }, boxed(text), copying("Copy", () => text));
const quoted = (text) => `'${text.replace(/'/g, "'\\''")}'`;
const reproduce = (id) => [command(`pytest ${quoted(`matrix.yaml::${id}`)}`), command(`python -m harness show ${quoted(id)}`),
  make("p", { class: "quiet" }, "The second prints the docker and trtexec lines, and saves the model with --save.")];

const beside = (column, other) => {
  const pick = make("select", { id: "p-vs" }, make("option", { value: "" }, "nothing"), targets.filter((target) => target.index !== column)
    .map((target) => make("option", { value: target.id, selected: target.index === other }, `${target.id} – ${cut(target.label, 60)}${target.run ? "" : " (not run)"}`)));
  pick.addEventListener("change", () => go({ vs: pick.value }));
  return make("p", { class: "beside" }, make("label", { for: "p-vs" }, "Beside it show "), pick);
};
const stateOf = (look) => make("span", { class: "sided" }, badge(look), ` ${look.bucket === "documented" ? "documented: " : ""}${look.known ? data.predicates[look.known] : look.why}${look.chip ? `, ${look.chip}` : ""}`);
const bodyOf = (row, column, other, found) => {
  if (!found) return [make("p", {}, "The evidence of this cell was left out of the page to keep it small; ", make("a", { href: "results.json" }, "results.json"), " has it.")];
  const cell = found.cells[column] || {};
  const variant = found.variant;
  const second = other === null ? null : found.cells[other] || {};
  const facts = [cell.missingApi ? ["missing API", cell.missingApi] : null, cell.end ? ["process", cell.end] : null,
    cell.peakRss ? ["peak memory", size(cell.peakRss)] : null, cell.engineBytes ? ["engine size", size(cell.engineBytes)] : null].filter(Boolean);
  const sides = [{ name: targets[column].id, cell, state: stateOf(lookOf(row, column)) }];
  if (second) sides.push({ name: targets[other].id, cell: second, state: stateOf(lookOf(row, other)) });
  const title = cell.layers ? `Layers (${cell.layers.length}${second ? ` and ${(second.layers || []).length}` : ""})` : "Layers";
  return [
    make("p", { class: "state" }, badge(lookOf(row, column)), `${cell.bucket}${cell.bucket === cell.class ? "" : ": " + cell.class.toLowerCase()}`),
    make("p", { class: "say" }, capital(cell.sentence || cell.reason)),
    cell.sentence && cell.reason && !cell.sentence.includes(cell.reason) ? make("p", {}, cell.reason) : "",
    ...diagnosis(cell, column), ...(cell.notes || []).map((note) => make("p", { class: "quiet" }, note)),
    ...chapter("What is known", claims(cell, variant)),
    ...chapter("Precision of the nodes that matter", precision(cell, variant)),
    ...chapter("The model, by the precision each node ran in", graphView(variant, sides)),
    ...chapter("Latency", latency(cell)), ...chapter("Accuracy against the ONNX reference", accuracy(cell)),
    ...chapter("Phases", phases(cell), facts.length ? list(facts) : []),
    ...chapter("Messages", log(cell)),
    ...chapter(title, second && (cell.layers || second.layers) ? alignedTable(cell, second, [targets[column].id, targets[other].id]) : layerTable(cell)),
    ...chapter("Recipe", make("p", {}, variant.recipe), list(variant.hashes)),
    ...chapter("Reproduce", reproduce(idOf(row, column))), ...chapter("Measured with", cell.stamps ? [list(cell.stamps)] : [])];
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
  const anchor = links[row]?.[column];
  if (anchor) {
    anchor.classList.add("open");
    setHome(anchor);
  }
  panel.hidden = false;
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
