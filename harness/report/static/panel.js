// ---- the panel: one cell, its verdict first ----
const panel = byId("panel");
/** @type {(title: string, ...content: Content[]) => Content[]} */
const chapter = (title, ...content) => {
  const found = nodes(content);
  return found.length ? [heading(title), ...found] : [];
};
/** @type {(pairs: [string, Content][]) => Element} */
const list = (pairs) =>
  make(
    "dl",
    {},
    pairs.flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]),
  );
/** @type {(cell: Cell, row: Row) => Content[]} */
const why = (cell, row) => {
  const told = cell.why?.length && [
    para("From the tactics that the builder tried:"),
    make(
      "ul",
      {},
      cell.why.map((text) => item(text)),
    ),
  ];
  if (!failing(cell)) return chapter("Why", told);
  const cause = causeOf(cell);
  const gone = words.removed.filter(([, , , signature]) => signature === cell.signature);
  const lost = (cell.lost || []).map((text) => item(text));
  return chapter(
    "Why",
    cause
      ? make(
          "div",
          { class: "box" },
          para(cell.signature ? errorLink(cell.signature, cause.title) : bold(cause.title)),
          para(cause.cause),
          para(bold("What to do. "), cause.advice),
        )
      : told || para("Not known: no signature fits."),
    (cause || !told) && lost.length && make("ul", {}, lost),
    cause ? told : para(row.case.summary),
    gone.length &&
      table(
        ["Old call", "In its place, as NVIDIA reports"],
        gone.map(([old, , , , now]) => [mono(old), now]),
      ),
    cell.errors?.length &&
      fold("The engine's own words", ...cell.errors.map((text) => make("pre", { tabindex: "0" }, text))),
  );
};
/** @type {(cell: Cell, row: Row, column: number) => Content[]} */
const change = (cell, row, column) => {
  if (!failing(cell)) return [];
  const proofs = causeOf(cell)?.proofs || [];
  const ids = [
    ...new Set([
      ...(cell.instead || []),
      ...proofs.map((proof) => (typeof proof === "string" ? proof : `${proof.case}.${proof.variant}`)),
    ]),
  ];
  const lines = ids.flatMap((id) => {
    const other = rowOf.get(id);
    // The way round of another row is none of this one.
    const own = other && (!other.counterpart || [row.name, row.counterpart].includes(other.counterpart));
    return own && other !== row
      ? [
          item(
            badge(other.cells[column]),
            " ",
            cellLink(other.cells[column].id, other.title),
            ` ${verdictOf(other.cells[column])}`,
          ),
        ]
      : [];
  });
  return chapter(
    "Change",
    lines.length
      ? make("ul", { class: "plainlist" }, lines)
      : !causeOf(cell) && para("No workaround is known here."),
  );
};
/** @type {(row: Row, column: number) => Content[]} */
const elsewhere = (row, column) =>
  chapter(
    "Elsewhere",
    make(
      "ul",
      { class: "elsewhere" },
      targets
        .filter(({ index }) => known(row.cells[index]) || index === column)
        .map((target) => {
          const cell = row.cells[target.index];
          return make(
            "li",
            { class: target.index === column ? "here" : null },
            make(
              "a",
              { href: `#${encodeURIComponent(cell.id)}`, title: `${target.name}: ${verdictOf(cell)}` },
              badge(cell),
              small(
                [
                  target.family.replace("TensorRT for ", "").replace(/^TensorRT \d+$/, ""),
                  target.short,
                  under(target),
                ].join(" "),
              ),
            ),
          );
        }),
    ),
    row.sentences.map(({ series, text }) => aside(bold(`${series} `), text)),
  );
const CLAIMED = /** @type {{ [how: string]: string }} */ ({
  measured: "measured before and accepted",
  sibling: "reported of something alike",
});
/** @type {(claim: Claim) => Element} */
const claimElement = (claim) =>
  para(
    bold(capital(claim.says)),
    `, ${CLAIMED[claim.basis === "measured" ? claim.basis : claim.scope] || "reported"}`,
    claim.of ? ` of ${claim.of}` : "",
    claim.source && [" in ", link(claim.source.url, claim.title)],
    ". ",
    claim.note && `${capital(claim.note.replace(/\.?$/, "."))} `,
    claim.basis === "reported" && make("span", { class: "quiet" }, `About ${claim.where}.`),
  );
/** @type {(cell: Cell, row: Row) => Content[]} */
const evidence = (cell, row) => {
  const placed = new Set(row.cells.flatMap(({ claims }) => claims));
  const beside = row.claims.filter(({ basis }, at) => basis === "reported" && !placed.has(at));
  const gpus =
    cell.by_gpu.length > 1
      ? table(
          ["GPU", "Driver", "Result", "Median", "Run"],
          cell.by_gpu.map((one) => [
            `${one.gpu || "no GPU"} ${one.compute_capability}`,
            one.driver,
            one.reason,
            ms(one.median_ms),
            one.when.slice(0, 10),
          ]),
        )
      : null;
  const past = cell.past;
  const ranOn = data.runs
    .flatMap((run) => (run.id === cell.stamps ? run.on.filter(({ target }) => target === cell.target) : []))
    .at(0);
  return [
    folded("About this case", () => [para(row.case.summary), aways(row.case.links.map(({ url }) => url))]),
    known(cell) || beside.length
      ? fold(
          "Evidence",
          cell.reason && para(capital(cell.reason)),
          claimsOf(cell, row).map(claimElement),
          beside.map(claimElement),
          row.reproduced && para(`Reproduced ${row.reproduced}.`),
          gpus,
          (cell.notes || []).map((text) => para(text)),
          past &&
            para(
              `Since ${past.since.slice(0, 16).replace("T", " ")} UTC (${past.event.replace("_", " ")})`,
              past.first_seen && `; first seen ${past.first_seen.slice(0, 10)}`,
              past.fixed_since && `; fixed since ${past.fixed_since.slice(0, 10)}`,
              ".",
            ),
          known(cell) &&
            para(
              "The whole log and the layers, beside the report: ",
              mono(`trt-compat show ${cell.id}`),
              ".",
            ),
        )
      : null,
    fold(`Graph: ${counted(row.graph.nodes.length, "node")}`, graphElement(cell, row)),
    numbers(cell),
    fold(
      "Recipe and run",
      para(row.recipe_text),
      list([
        ["model", mono(row.model_sha256)],
        ["recipe", mono(row.recipe_sha256)],
        ...(cell.when
          ? [
              /** @type {[string, Content]} */ ([
                "run",
                `${cell.stamps}, ${cell.when.slice(0, 19).replace("T", " ")} UTC`,
              ]),
            ]
          : []),
        ...(ranOn
          ? Object.entries({ ...ranOn.stamps, ...ranOn.stamps.environment })
              .filter(([, value]) => typeof value === "string" && value)
              .map(
                ([key, value]) =>
                  /** @type {[string, Content]} */ ([key.replaceAll("_", " "), String(value)]),
              )
          : []),
      ]),
    ),
  ];
};
/** @type {(cell: Cell, row: Row) => Element} */
const graphElement = (cell, row) =>
  table(
    ["Node", "Operator", "Wanted", "Ran in", "Output"],
    row.graph.nodes.map(({ name, op, outputs }) => {
      const [want, got] = [row.wanted[name] || "", cell.precision[name] || ""];
      return [
        mono(cut(name, 80)),
        op,
        want.replace("_", " "),
        make(
          "span",
          {
            class:
              want &&
              got &&
              got !== "unknown" &&
              (cell.lost || []).some((text) => text.startsWith(`${name}:`))
                ? "lost"
                : null,
          },
          got === "unknown" ? "not told" : got.replace("_", " "),
        ),
        row.graph.types[outputs[0]] || "",
      ];
    }),
  );
/** @type {(cell: Cell) => Element | null} */
const numbers = (cell) => {
  const time = cell.latency_ms;
  const figure = (/** @type {number | null} */ value) =>
    value === null ? "not finite" : String(Number(value.toPrecision(4)));
  const parts = [
    cell.accuracy.length
      ? table(
          ["Output", "Largest error", "relative", "Cosine", "Shape"],
          cell.accuracy.map((one) => [
            one.output,
            figure(one.max_abs),
            figure(one.max_rel),
            figure(one.cosine),
            one.shape_matches ? "same" : "differs",
          ]),
        )
      : null,
    time &&
      para(
        `Median ${ms(time.median)}${time.low ? ` (${ms(time.low)} to ${ms(time.high)})` : ""}`,
        `, 95th percentile ${ms(time.p95)}, ${time.n} samples`,
        time.noise && `; too noisy to compare: ${time.noise}`,
        time.scope ? `. Timed: ${time.scope}.` : ".",
      ),
    Object.keys(cell.phases).length
      ? para(
          Object.entries(cell.phases)
            .map(
              ([name, seconds]) =>
                `${name}${name === cell.failed_phase ? " (failed)" : ""} ${seconds.toPrecision(2)} s`,
            )
            .join(", "),
        )
      : null,
    cell.engine_bytes ? para(`Engine of ${(cell.engine_bytes / 1024).toFixed(0)} KiB.`) : null,
  ];
  return parts.some(Boolean) ? fold("Numbers", ...parts) : null;
};
/** @type {(name: string, base64: string) => void} */
const saved = (name, base64) => {
  const url = URL.createObjectURL(
    new Blob([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))]),
  );
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
};
/** @type {Chapter} */
const runIt = (cell, row, target) => {
  const lines = cell.by_hand || [];
  const [block, remarks] = [lines.filter((line) => line[0] !== "#"), lines.filter((line) => line[0] === "#")];
  const model = `${row.case.name}-${row.name}.onnx`;
  const size = words.models[model];
  const save = size
    ? button(`Download ${model} (${(size / 1024).toFixed(1)} KiB)`, async () =>
        saved(model, (await unpacked("models"))[model]),
      )
    : null;
  return chapter(
    "Run it",
    target.needs && !ran(target) && aside(`It needs ${target.needs}.`),
    command(`trt-compat run --target ${target.id} -k ${row.id}`),
    save,
    block.length
      ? [
          aside(
            "By hand, ",
            save && !block.join().includes("repro.py")
              ? "beside the model:"
              : [
                  "as a bug report needs it; ",
                  mono(`trt-compat show ${cell.id} --save ${model}`),
                  " writes the model and the file beside it:",
                ],
          ),
          command(block.join("\n")),
        ]
      : null,
    block.length > 0 && aside("These lines were not tried here."),
    remarks.map((line) => aside(line.slice(2))),
  );
};
/** @type {CellPart} */
const wrong = (cell, row, target) =>
  folded("Report this cell as wrong", () =>
    reportElement("Fill in and copy", [
      `Wrong cell: ${cell.id}`,
      "",
      `Row: ${row.case.title}; ${row.title}`,
      `Version: ${target.name}`,
      `GPU: ${cell.gpu?.[1] || "none"}`,
      `The page says: ${verdictOf(cell)}. ${cell.reason}`,
      "I see instead: ",
      "My GPU, driver, versions: ",
      "",
      "How it is run:",
      `    trt-compat run --target ${target.id} -k ${row.id}`,
      ...(cell.by_hand || []).map((line) => `    ${line}`),
    ]),
  );
/** @type {Chapter} */
const besideA = (cell, row, target) => {
  const from = before();
  if (from === target) return [];
  const other = row.cells[from.index];
  const sides = (/** @type {Cell} */ one, /** @type {Target} */ its) =>
    make(
      "div",
      {},
      bold(`${its.product} ${its.short}`),
      para(badge(one), " ", verdictOf(one)),
      one.chip && para(one.chip),
    );
  const kinds = kindsOf(row, from.index, target.index)
    .map(({ kind }) => kindOf.get(kind)?.name)
    .join(", ");
  return [make("div", { class: "sides" }, sides(other, from), sides(cell, target)), kinds && aside(kinds)];
};
// Version, from where, CUDA, driver, card and day of a measurement in one line.
/** @type {(cell: Cell, target: Target) => string} */
const measuredOn = (cell, target) => {
  const told = /\(((?:[^()]|\([^()]*\))*)\)$/.exec(cell.reason || "")?.[1];
  const driver = cell.by_gpu[0]?.driver;
  const plain = [target.version, cell.gpu?.[1] || "no GPU", driver && `driver ${driver}`]
    .filter(Boolean)
    .join("; ");
  return `Measured${cell.when ? ` ${cell.when.slice(0, 10)}` : ""} on ${target.product} ${told || plain}.`;
};
/** @type {HTMLElement | null} */
let openedFrom = null;
let openedAt = "";
/** @type {(id: string) => Promise<void>} */
const openPanel = async (id) => {
  const place = placeOf(id);
  const from = /** @type {HTMLElement} */ (document.activeElement);
  await whole();
  if (!place || hashOf() !== id) return;
  const { row, column } = place;
  const [cell, target] = [row.cells[column], targets[column]];
  const title = `${row.title} · ${target.product} ${target.short}${under(target) ? ` ${under(target)}` : ""}`;
  const close = button("✕", () => closePanel(), { "aria-label": "Close" });
  const [previous, next] = [-1, 1].map(
    (by) =>
      targets[column + by] &&
      make(
        "a",
        { href: `#${encodeURIComponent(row.cells[column + by].id)}` },
        by < 0 ? `‹ ${targets[column - 1].short}` : `${targets[column + 1].short} ›`,
      ),
  );
  const source = sourcesOf(cell);
  const parts = [
    make(
      "header",
      {},
      make("h2", { tabindex: "-1" }, title),
      make(
        "nav",
        { "aria-label": "Cell" },
        previous,
        next,
        copying("Copy link", () => location.href),
        close,
      ),
    ),
    make(
      "p",
      { class: "verdict" },
      badge(cell),
      " ",
      bold(STATES[stateOf(cell)]),
      cell.basis
        ? cell.text.toLowerCase() === STATES[stateOf(cell)].toLowerCase()
          ? "."
          : `: ${cell.text}${cell.not_yet ? ` (${yetOf(cell)})` : ""}.`
        : cell.class === "not_applicable"
          ? `: ${cell.reason}.`
          : cell.static?.state === "clear"
            ? ". Every operator is listed in NVIDIA's tables, which is no promise that it builds."
            : ". No measurement and no report.",
    ),
    aside(
      basisOf(cell) === "reported"
        ? `Reported${source ? `: ${source}` : ""}. Not measured here.`
        : cell.basis === "listed"
          ? "By NVIDIA's operator tables (docs/operators.md of onnx-tensorrt). Not measured here."
          : basisOf(cell) === "measured before"
            ? capital(
                claimsOf(cell, row).find(({ basis }) => basis === "measured")?.note || "Measured before",
              ) + "; not run for this report."
            : basisOf(cell) === "measured"
              ? measuredOn(cell, target)
              : "",
      cell.stale ? ` ${cell.reason}.` : "",
    ),
    basisOf(cell) === "reported" &&
      claimsOf(cell, row)
        .filter(({ note }) => note)
        .slice(0, 2)
        .map(({ note }) => para(capital(note.replace(/\.?$/, ".")))),
    ...why(cell, row),
    ...change(cell, row, column),
    ...besideA(cell, row, target),
    ...elsewhere(row, column),
    ...runIt(cell, row, target),
    ...evidence(cell, row),
    wrong(cell, row, target),
  ];
  panel.replaceChildren(...nodes(parts));
  if (panel.hidden) [openedFrom, openedAt] = [from, `#${encodeURIComponent(id)}`];
  panel.hidden = false;
  panel.scrollTop = 0;
  panel.querySelector("h2").focus({ preventScroll: true });
  markOpen();
};
const closePanel = () => {
  const shut = location.hash;
  panel.hidden = true;
  writeState("");
  markOpen();
  const cell = /** @type {HTMLElement[]} */ ([...grid.querySelectorAll("td a")]).find((one) =>
    [shut, openedAt].includes(one.getAttribute("href") || ""),
  );
  (cell || openedFrom)?.focus({ preventScroll: true });
};
