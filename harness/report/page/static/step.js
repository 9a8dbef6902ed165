// ---- the first screen: pickers, counts, rows ------------------------------------------------------------------
const STEP_ROWS = 8;
const MOST_STEP_ROWS = 100;
const STEP_COLUMNS = [["What changes", "text"], ["Cause", "cause"], ["Meanwhile", "instead"], ["How sure", "sure"]];
const stepTable = (found, after) => {
  const shown = STEP_COLUMNS.filter(([, field]) => found.some((row) => row[field]));
  return make("table", { class: "plain step" },
    make("thead", {}, make("tr", {}, ["Variant", ...shown.map(([head]) => head)].map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, found.map((row) => make("tr", {},
      make("th", { scope: "row" }, cellLink(`${row.case}[${row.variant}]-${after}`, cut(`${row.case}[${row.variant}]`))),
      shown.map(([head, field]) => make("td", { "data-head": head, class: row[field] ? null : "nil" }, cut(row[field], 600)))))));
};
const region = (label, ...content) => make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": label }, ...content);
const stepKinds = (step) => data.kinds.flatMap(([kind, name, meaning]) => {
  const found = step.rows.filter((row) => row.kind === kind);
  if (!found.length) return [];
  const rest = found.slice(STEP_ROWS, MOST_STEP_ROWS);
  return [make("div", { class: `kind u-${kind}`, id: `u-${kind}` },
    make("h3", {}, name, " ", make("span", { class: "count" }, String(found.length)), " ", make("small", {}, meaning)),
    region(`${name}, rows`, stepTable(found.slice(0, STEP_ROWS), step.after)),
    rest.length ? make("details", {}, make("summary", {}, `${rest.length} more${found.length > MOST_STEP_ROWS ? ` of ${found.length - STEP_ROWS}; the matrix below has all` : ""}`),
      region(`${name}, more rows`, stepTable(rest, step.after))) : null)];
});
const tiles = (step) => make("ul", { class: "tiles", "aria-label": "What the step does" }, data.kinds.map(([kind, name]) => {
  const untimed = (kind === "slower" || kind === "faster") && !step.timed;
  const number = step.counts[kind];
  const inside = [make("span", { class: "n" }, untimed ? "–" : String(number)), " ",
    make("span", { class: "l" }, name + (untimed ? ", not compared" : ""))];
  return make("li", { class: `u-${kind}${number ? "" : " zero"}` }, number ? make("a", { href: `#u-${kind}` }, inside) : make("span", { class: "tile" }, inside));
}));
const nodesTable = (before, after) => {
  const unasked = (row) => crossed(row, sideOf(row.index, before), sideOf(row.index, after)).map(([node, ...ran]) => make("tr", {},
    make("th", { scope: "row" }, cellLink(idOf(row.index, after), cut(row.full))), [cut(node), "not asked", ...ran].map((text) => make("td", {}, text))));
  const lines = rows.flatMap((row) => [...row.wanted.map(([node, want, op], at) => {
    const [old, now] = [lookOf(row.index, before), lookOf(row.index, after)];
    const got = (look) => look.nodes[at] || (look.measured ? (GOOD.has(look.cls) ? "folded or not told" : data.predicates[look.cls]) : look.why || "not run");
    return make("tr", {}, make("th", { scope: "row" }, cellLink(idOf(row.index, after), cut(row.full))),
      [`${cut(node)}${op ? ` (${op})` : ""}`, want, got(old), got(now)].map((text, index) =>
        make("td", { class: index > 1 ? (text === want ? "w-better" : "w-worse") : null }, text)));
  }), ...unasked(row)]);
  return make("table", { class: "plain" }, make("thead", {}, make("tr", {}, ["Variant", "Node", "Should run in", `On ${targets[before].id}`, `On ${targets[after].id}`]
    .map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, lines.slice(0, 1000)),
    lines.length > 1000 ? make("caption", {}, `The first 1000 of ${lines.length}; results.json has all.`) : null);
};
const drawStep = (before, after) => {
  const step = upgrade(before, after);
  const nodes = make("details", { id: "nodes" }, make("summary", {}, `Node by node: what each should run in, and does on ${step.before} and ${step.after}`));
  nodes.addEventListener("toggle", () => { if (nodes.open && nodes.children.length === 1) nodes.append(region("Node by node", nodesTable(before, after))); });
  byId("step").replaceChildren(
    make("p", { class: "headline" }, step.headline),
    step.basis ? make("p", { class: "basis" }, step.basis) : "",
    tiles(step),
    make("p", { class: "quiet" }, [step.rest, step.coverage, step.timing].filter(Boolean).join(" ")),
    ...stepKinds(step), nodes);
  return step;
};
