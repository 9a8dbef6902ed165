// ---- the first screen: pickers, counts, rows ------------------------------------------------------------------
const STEP_ROWS = 8;
const MOST_STEP_ROWS = 100;
// What of a row is a phrase: its number in the list of all that any step says.
const PHRASES = ["text", "cause", "instead", "sure", "seen", "signature"];
/** @type {[head: string, field: "text" | "cause" | "instead" | "sure"][]} */
const STEP_COLUMNS = [["What changes", "text"], ["Cause", "cause"], ["Meanwhile", "instead"], ["How sure", "sure"]];
// Rows of one cause, with the same to do about it and as sure, are one.
/** @type {(found: StepLine[]) => StepLine[][]} */
const together = (found) => {
  /** @type {Map<string, StepLine[]>} */
  const groups = new Map();
  for (const line of found) {
    const key = JSON.stringify({ ...line, row: 0, text: line.cause ? "" : line.text });
    groups.set(key, [...(groups.get(key) || []), line]);
  }
  return [...groups.values()];
};
// What rows have in common: where they differ, each without what stands in brackets behind it.
/** @type {(group: StepLine[], field: "text" | "cause" | "instead" | "sure") => string} */
const saidOf = (group, field) => {
  const said = new Set(group.map((row) => row[field]));
  return cut([...(said.size > 1 ? new Set([...said].map((text) => text.replace(/ \([^()]*\)$/, ""))) : said)].join("; "), 600);
};
/** @type {(found: StepLine[][], after: number) => Element} */
const stepTable = (found, after) => {
  const shown = STEP_COLUMNS.filter(([, field]) => found.some(([row]) => row[field]));
  const linked = (/** @type {StepLine} */ { row }) => cellLink(idOf(row, after), cut(rows[row].full));
  const told = (/** @type {StepLine[]} */ group, /** @type {"text" | "cause" | "instead" | "sure"} */ field) => {
    const id = `error=${group[0].signature}`;
    // What is known of a cause stands under the errors.
    return field === "cause" && byId(id) ? make("a", { href: `#${id}` }, saidOf(group, field)) : saidOf(group, field);
  };
  return make("table", { class: "plain step" },
    make("thead", {}, make("tr", {}, ["Variant", ...shown.map(([head]) => head)].map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, found.map((group) => make("tr", {},
      make("th", { scope: "row" }, linked(group[0]), group.length > 1 ? make("details", {}, make("summary", {}, `and ${group.length - 1} more`), group.slice(1).map((row) => make("p", {}, linked(row)))) : null),
      shown.map(([head, field]) => make("td", { "data-head": head, class: group[0][field] ? null : "nil" }, told(group, field),
        field === "sure" && group[0].seen ? make("p", { class: "seen" }, "Seen by: ", cut(group[0].seen, 600)) : null))))));
};
/** @type {(label: string, ...content: Content[]) => Element} */
const region = (label, ...content) => make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": label }, ...content);
/** @type {(step: Step, after: number) => Element[]} */
const stepKinds = (step, after) => data.kinds.flatMap(({ id, name, meaning }) => {
  const found = step.rows.filter((row) => row.kind === id);
  if (!found.length) return [];
  const groups = together(found);
  const rest = groups.slice(STEP_ROWS, MOST_STEP_ROWS);
  return [make("div", { class: `kind u-${id}`, id: `u-${id}` },
    make("h3", {}, name, " ", make("span", { class: "count" }, String(found.length)), " ", make("small", {}, meaning)),
    region(`${name}, rows`, stepTable(groups.slice(0, STEP_ROWS), after)),
    rest.length ? make("details", {}, make("summary", {}, `${rest.length} more${groups.length > MOST_STEP_ROWS ? ` of ${groups.length - STEP_ROWS}; the matrix below has all` : ""}`),
      region(`${name}, more rows`, stepTable(rest, after))) : null)];
});
/** @type {(step: Step) => Element} */
const tiles = (step) => make("ul", { class: "tiles", "aria-label": "What the step does" }, step.tiles.map((tile) => {
  const many = step.rows.filter((row) => row.kind === tile.kind).length;
  const inside = [make("span", { class: "n" }, tile.number || String(many)), " ", make("span", { class: "l" }, tile.label)];
  return make("li", { class: `u-${tile.kind}${many ? "" : " zero"}` }, many ? make("a", { href: `#u-${tile.kind}` }, inside) : make("span", { class: "tile" }, inside));
}));
/** @type {(row: Row, before: number, after: number) => boolean} */
const ranOnOne = (row, before, after) => [before, after].some((column) => lookOf(row.index, column).measured);
/** @type {(step: Step, before: number, after: number) => Element} */
const nodesTable = (step, before, after) => {
  const head = (/** @type {Row} */ row) => make("th", { scope: "row" }, cellLink(idOf(row.index, after), cut(row.full)));
  const wanted = (/** @type {Row} */ row) => row.wanted.map(({ node, want, op }, at) => make("tr", {}, head(row), make("td", {}, `${cut(node)}${op ? ` (${op})` : ""}`), make("td", {}, want),
    [before, after].map((column) => lookOf(row.index, column)).map(({ measured, nodes }) => make("td", { class: measured ? (nodes[at][1] ? "w-better" : "w-worse") : null }, nodes[at][0]))));
  const unasked = (/** @type {Row} */ row) => step.crossed.filter((found) => found.row === row.index).map((found) => make("tr", {}, head(row),
    [cut(found.node), "not asked", found.before, found.after].map((text) => make("td", {}, text))));
  const lines = rows.filter((row) => ranOnOne(row, before, after)).flatMap((row) => [...wanted(row), ...unasked(row)]);
  return make("table", { class: "plain" }, make("thead", {}, make("tr", {}, ["Variant", "Node", "Should run in", `On ${targets[before].label}`, `On ${targets[after].label}`]
    .map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, lines.slice(0, 1000)),
    lines.length > 1000 ? make("caption", {}, `The first 1000 of ${lines.length}; results.json has all.`) : null);
};
// In phrases marks stand for the names of both columns.
/** @type {(line: PackedLine, phrases: string[], before: number, after: number) => Omit<StepLine, "row">} */
const spelt = (line, phrases, before, after) => ({ ...line, .../** @type {any} */ (Object.fromEntries(PHRASES.map((field) => [field,
  phrases[/** @type {any} */ (line)[field]].replaceAll("\ufdd0", () => targets[before].label).replaceAll("\ufdd1", () => targets[after].label)]))) });
/** @type {(before: number) => Promise<Step[]>} */
const stepsFrom = async (before) => (await opening(data.steps))(before);
// The step from one column to another as Python judged it; null where this page does not have it.
/** @type {(before: number, after: number) => Promise<Step | null>} */
const stepOf = async (before, after) => {
  const at = data.to[before].indexOf(after);
  if (at < 0) return null;
  const [steps, entryAt] = await Promise.all([stepsFrom(before), opening(data.rowsOfSteps)]);
  const [phrases, lines, found, variants] = [0, 1, 2, 3].map(entryAt);
  const all = variants.flatMap((/** @type {number[][]} */ columns, /** @type {number} */ row) => found[columns[before][at]].map((/** @type {number} */ line) => ({ row, ...spelt(lines[line], phrases, before, after) })));
  return { ...steps[at], rows: all };
};
// What fails or loses precision on one side while nothing is known of the other is in no row of the step.
/** @type {(before: number, after: number) => Element | string} */
const aloneTold = (before, after) => {
  const found = rows.filter(({ index }) => !lookOf(index, before).known && lookOf(index, after).fails);
  const named = (/** @type {Row[]} */ some) => some.map(({ index, full }, at) => {
    const { grade, known, measured, said } = lookOf(index, after);
    return [at ? ", " : "", cellLink(idOf(index, after), cut(full)), ` (${measured ? `${data.marks[known].name}, ${grade}` : said})`];
  });
  const rest = found.slice(STEP_ROWS);
  return found.length ? make("div", { class: "kind u-broken alone" },
    make("p", {}, make("b", {}, `Fail or lose precision on ${targets[after].label}, with nothing known of ${targets[before].label}:`), " ", named(found.slice(0, STEP_ROWS))),
    rest.length ? make("details", {}, make("summary", {}, `${rest.length} more`), make("p", {}, named(rest))) : null) : "";
};
// What is reported of the version itself, and shown by no variant.
/** @type {(step: Step, after: string) => Element | string} */
const troubleTold = (step, after) => (step.troubles ? make("div", { class: "kind u-broken alone" }, step.troubles.map(([id, title, seen, advice]) => make("p", {},
  make("b", {}, `Reported of ${after}, and shown by no variant here:`), " ", make("a", { href: `#error=${id}` }, title), `. ${capital(seen)}. What to do: ${advice}`))) : "");
// What is known of the steps to the later versions of a series, side by side.
/** @type {(before: number) => Promise<Element | string>} */
const choiceTold = async (before) => {
  const steps = await stepsFrom(before);
  const later = data.to[before].map((column, at) => ({ ...targets[column], choice: steps[at].choice })).filter(({ choice }) => choice);
  if (later.length < 2) return "";
  const to = (/** @type {string} */ id, /** @type {string} */ label) => {
    const anchor = make("a", { href: hashOf({ ...fresh(), a: targets[before].id, b: id }) }, label);
    anchor.addEventListener("click", () => go({ a: targets[before].id, b: id }));
    return anchor;
  };
  return make("details", { id: "choices" }, make("summary", {}, `Which version after ${targets[before].label}? The steps to ${later.length} later ones, side by side`),
    make("p", { class: "quiet" }, `Counts of ${rows.length} variants: what is known of few of them is no all-clear.`),
    region("Steps to later versions", make("table", { class: "plain" }, make("thead", {}, make("tr", {}, ["To", ...data.choices].map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, later.map(({ id, label, choice }) => make("tr", {}, make("th", { scope: "row" }, to(id, label)),
        choice?.length ? choice.map((text) => make("td", {}, text)) : make("td", { colspan: String(data.choices.length) }, "nobody knows")))))));
};
/** @type {(step: Step, before: number, after: number) => (Element | string)[]} */
const stepBody = (step, before, after) => {
  const nodes = /** @type {HTMLDetailsElement} */ (make("details", { id: "nodes" }, make("summary", {}, `Node by node: what each should run in, and does on ${targets[before].label} and ${targets[after].label}`)));
  nodes.addEventListener("toggle", () => { if (nodes.open && nodes.children.length === 1) nodes.append(region("Node by node", nodesTable(step, before, after))); });
  return [make("p", { class: "headline" }, step.headline), step.basis ? make("p", { class: "basis" }, step.basis) : "",
    tiles(step), aloneTold(before, after), troubleTold(step, targets[after].label), make("p", { class: "quiet" }, step.quiet), ...stepKinds(step, after), rows.some((row) => ranOnOne(row, before, after)) ? nodes : ""];
};
/** @type {(before: number, after: number) => Element[]} */
const noStep = (before, after) => [make("p", { class: "headline" }, `The step from ${targets[before].label} to ${targets[after].label} is not in this page.`),
  make("p", { class: "basis" }, "This answers it: ", make("code", {}, `trt-compat diff ${targets[before].id} ${targets[after].id}`))];
let stepWanted = "";
// Draws a step, unless another one is wanted by then.
/** @type {(before: number, after: number) => Promise<void>} */
const drawStep = async (before, after) => {
  const wanted = `${before} ${after}`;
  stepWanted = wanted;
  const place = byId("step");
  place.setAttribute("aria-busy", "true");
  const step = await stepOf(before, after);
  const body = step ? [...stepBody(step, before, after), await choiceTold(before)] : noStep(before, after);
  if (stepWanted !== wanted) return;
  place.replaceChildren(...body);
  // A cell is opened beside the one that the step comes from.
  place.querySelectorAll("a.cellref").forEach((/** @type {Element} */ anchor) => anchor.setAttribute("data-vs", targets[before].id));
  place.removeAttribute("aria-busy");
};
/** @type {(step: Step) => Map<number, string>} */
const changesOf = (step) => new Map(step.changes.map((change) => [change.row, change.said]));
// What the other columns' latencies are against one of them: "" for the median as it is, a dash where no step is here.
/** @type {(column: number) => Promise<Against>} */
const compareWith = async (column) => {
  const to = data.to[column];
  const steps = await stepsFrom(column);
  const said = new Map(to.map((other, at) => [other, changesOf(steps[at])]));
  return { column, said: (row, other) => (other === column ? timeOf(row, other) : said.has(other) ? said.get(other)?.get(row) || "n/c" : "–") };
};
