// ---- below the matrix, a tab each: made when it is opened ----
/** @type {(id: string) => Content[]} */
const errorParts = (id) => {
  const { cause, advice, harmless, texts, seen, links, proofs, related } = data.signatures[id];
  const shownBy = rows.filter((row) => row.cells.some((cell) => cell.signature === id));
  return [
    texts.length
      ? make(
          "ul",
          { class: "texts" },
          texts.map((one) =>
            item(
              mono(one.text),
              " ",
              small(one.url ? link(one.url, one.seen) : one.seen, one.note ? `. ${one.note}` : ""),
            ),
          ),
        )
      : null,
    para(cause),
    para(bold("What to do. "), advice),
    harmless && para(bold("Is it harmful? "), harmless),
    related.length &&
      para(
        bold("See too "),
        listed(
          related.map(([other, title]) => errorLink(other, title)),
          99,
          "; ",
        ),
        ".",
      ),
    proofs.map((proof) =>
      para(
        bold("Put to the test by "),
        `${proof.case}.${proof.variant}: `,
        proof.known.length
          ? proof.known
              .map((one) => `${one.works ? "works" : "does not work"} on ${one.where} (${one.basis})`)
              .join("; ")
          : "nobody has tried it",
        ".",
      ),
    ),
    seen.length
      ? para(
          bold("Seen. "),
          listed(
            seen.map((one) => [`${one.by} on `, one.url ? link(one.url, one.where) : one.where]),
            99,
            "; ",
          ),
          ".",
        )
      : null,
    shownBy.length &&
      para(
        bold("Rows. "),
        listed(
          shownBy.map((row) =>
            cellLink(row.cells[row.cells.findIndex((cell) => cell.signature === id)].id, row.title),
          ),
          5,
        ),
        ".",
      ),
    aways(links),
  ];
};
const errorsTab = () => {
  const kinds = [
    ["failure", "What makes a cell fail"],
    ["warning", "Warnings"],
    ["harmless", "What is asked about, and is the cause of nothing"],
  ];
  return [
    heading("How to read the name of a fused layer"),
    make(
      "dl",
      { class: "reading" },
      words.reading.map(([form, meaning]) => [make("dt", {}, mono(form)), make("dd", {}, meaning)]),
    ),
    kinds.map(([kind, title]) => [
      heading(title),
      Object.entries(data.signatures)
        .filter(([, entry]) => entry.kind === kind)
        .map(([id, entry]) => {
          const details = folded(
            [
              bold(entry.title),
              " ",
              small(
                [...new Set(entry.seen.slice(0, 2).map((one) => `${one.basis} on ${one.where}`))].join("; "),
              ),
            ],
            () => errorParts(id),
          );
          details.id = `error=${id}`;
          details.className = "error";
          return details;
        }),
    ]),
  ];
};
const changesTab = () => {
  /** @type {Map<string, Change[]>} */
  const groups = new Map();
  for (const change of data.changes) {
    const key = [change.series, change.versions, change.kind, change.text].join("\n");
    groups.set(key, [...(groups.get(key) || []), change]);
  }
  const lines = [...groups.values()]
    .sort(
      (one, other) =>
        Number(one[0].kind !== "result") - Number(other[0].kind !== "result") || other.length - one.length,
    )
    .map((found) => [
      `${found[0].series} ${found[0].versions}`,
      found[0].better === null ? found[0].kind : `${found[0].kind}, ${found[0].better ? "better" : "worse"}`,
      found[0].text,
      listed(
        found.map((one) => cellLink(`${one.case}.${one.variant}-${one.after}`, `${one.case}.${one.variant}`)),
        6,
      ),
    ]);
  const news = rows.flatMap((row) =>
    row.cells
      .filter(
        (cell) => (cell.past && !["first", "steady"].includes(cell.past.event)) || cell.past?.latency?.change,
      )
      .map(
        (cell) =>
          /** @type {Content[]} */ ([
            cell.past?.since.slice(0, 16).replace("T", " "),
            cell.past?.latency?.change || cell.past?.event.replace("_", " "),
            cellLink(cell.id),
          ]),
      ),
  );
  return [
    heading("From one version to the next, as measured"),
    lines.length ? table(["Versions", "Kind", "Change", "Rows"], lines) : para("Nothing."),
    heading("From one run to the next"),
    news.length
      ? table(["Since", "News", "Cell"], news.slice(0, 100))
      : para(data.runs.length > 1 ? "Nothing changed." : "One run is known: nothing to compare."),
  ];
};
const causesTab = () => {
  /** @type {Map<string, Cell[]>} */
  const groups = new Map();
  for (const cell of data.cells) {
    if (cell.basis !== "measured" || cell.evidence === false || !failing(cell)) continue;
    const key = cell.signature || `\n${words.marks[cell.class].name}, no known signature`;
    groups.set(key, [...(groups.get(key) || []), cell]);
  }
  return [
    table(
      ["Cells", "Cause", "On", "Rows"],
      [...groups]
        .sort(([, one], [, other]) => other.length - one.length)
        .map(([id, cells]) => [
          String(cells.length),
          data.signatures[id] ? errorLink(id, data.signatures[id].title) : id.trim(),
          [...new Set(cells.map((cell) => targetOf.get(cell.target)?.name.replace(/ \(.*/, "")))].join(", "),
          listed(
            [
              ...new Map(cells.map((cell) => /** @type {const} */ ([`${cell.case}.${cell.variant}`, cell]))),
            ].map(([name, cell]) => cellLink(cell.id, name)),
            5,
          ),
        ]),
    ),
  ];
};
const targetsTab = () =>
  targets.map((target) => {
    const stamps = target.stamps;
    /** @type {[string, Content][]} */
    const facts = [
      ["Id", target.id],
      ["Version", target.version],
      ["Released", target.released],
      ["Runs on", target.gpus],
      ["Needs", target.needs],
      ["JetPack", target.jetpack],
      ["CUDA", target.cuda],
      ["Driver", target.driver],
      ["Environment", target.image],
      [
        "Last run",
        stamps
          ? [
              stamps.when.slice(0, 10),
              stamps.environment.gpu || "no GPU",
              stamps.environment.driver && `driver ${stamps.environment.driver}`,
            ]
              .filter(Boolean)
              .join(", ")
          : "not run for this report",
      ],
      ["Note", target.notes],
      [
        "Read in",
        target.sources.length ? target.sources.map(({ url, title }) => [link(url, title || url), " "]) : "",
      ],
    ];
    const details = fold(
      [bold(target.name), " ", small(stamps ? `run ${stamps.when.slice(0, 10)}` : "not run")],
      list(facts.filter(([, text]) => text)),
      target.commands.length && command(target.commands.join("\n")),
      !stamps &&
        target.needs && [
          aside(
            "Measure it: in a clone of the project, on a machine with Docker and such a GPU, this runs its cells " +
              "and writes the file to send in.",
          ),
          command(`make first-contact TARGET=${target.id} ARGS="--account NAME"`),
        ],
    );
    details.id = `target-${target.id}`;
    return details;
  });
const legendTab = () => [
  para(
    "Filled: measured here. Thin: reported, or measured before. Dotted: listed in NVIDIA's operator tables. " +
      "A cell with two columns' versions stands for both, which are alike in all rows shown.",
  ),
  make(
    "dl",
    { class: "reading" },
    Object.entries(STATES).flatMap(([key, title]) => [
      make("dt", {}, title),
      make(
        "dd",
        {},
        Object.entries(words.marks)
          .filter(([, { state }]) => state === key)
          .map(([id, { shape, letters, name, meaning }]) =>
            para(
              make(
                "b",
                {
                  class: `badge ${shape} k-${key} b-${["blocked", "restricted"].includes(id) ? "listed" : "measured"}`,
                },
                letters,
              ),
              ` ${name}: ${meaning}`,
            ),
          ),
      ),
    ]),
  ),
  heading("Kinds of a step"),
  make(
    "dl",
    { class: "reading" },
    words.kinds.flatMap(({ name, meaning }) => [make("dt", {}, name), make("dd", {}, meaning)]),
  ),
  heading("The box"),
  para(
    "A question is answered by its versions, cards, operators and precisions; ",
    KEYS.map((key) => [mono(`${key}:`), " "]),
    "ask for one field, a minus before them for its opposite. A log or an error line is explained instead.",
  ),
  para("/ goes to the box, arrows move in the matrix, Enter opens a cell, Escape closes it."),
];
const dataTab = () => [
  para(
    "Beside this file, in the folder of the report: ",
    [
      ["results.json", "everything this page draws"],
      ["results.csv", "a line a cell"],
      ["summary.md", "the result in short"],
    ].map(([name, says]) => [make("a", { href: name }, name), ` (${says}), `]),
    "models/, layers/ and logs/. A published report has results.json.xz.",
  ),
  Object.keys(words.suites).length
    ? para(
        "Suites: ",
        Object.entries(words.suites).map(([place, title]) => [make("a", { href: place }, title), " "]),
      )
    : null,
  data.submissions.length &&
    table(
      ["Sent in by", "GPU", "Commit", "Cells"],
      data.submissions.map(({ account, gpu, commit, cells }) => [account, gpu, commit, String(cells)]),
    ),
  make(
    "p",
    { id: "send" },
    "Have one of the GPUs that nobody ran? ",
    mono("trt-compat submit"),
    " makes a file of your results; send it ",
    words.issues ? ["to ", link(words.issues, words.issues)] : "to who published this page",
    words.home && ["; the project is at ", link(words.home, words.home)],
    ".",
  ),
];
// How many of ONNX's tests of each operator ended badly on one version: [operator, "wrong 1 of 2"].
/** @type {(at: number) => Map<string, string>} */
const testsOf = (at) => {
  const found = new Map();
  for (const line of words.errors.tests)
    for (const [, name, count] of line[at].matchAll(/(\w+) \((\d+ of \d+)\)/g))
      found.set(name, [found.get(name), `${line[0].toLowerCase()} ${count}`].filter(Boolean).join("; "));
  return found;
};
const operatorsTab = () => {
  /** @type {[string, string][]} */
  const every = Object.entries(words.lexicon.operators);
  const firstOf = (/** @type {string} */ text) => text.match(/\d+\.\d+/)?.[0] || "";
  const versions = [...new Set(every.map(([, first]) => firstOf(first)))].filter(Boolean).sort(compared);
  const tests = [1, 2].map(testsOf);
  const has = (/** @type {string} */ name) =>
    rows.filter((row) => row.graph.nodes.some(({ op }) => op === name)).length;
  const lines = every.map(([name, first]) => [
    has(name) ? make("a", { href: `?q=op:${name}` }, `${name} (${has(name)})`) : name,
    ...versions.map((version) => (firstOf(first) && compared(firstOf(first), version) <= 0 ? "✓" : "–")),
    ...tests.map((found) => found.get(name) || ""),
  ]);
  const heads = [
    "Operator",
    ...versions.map((version) => `${version} on`),
    "8.6.1, measured",
    "10.6.0, measured",
  ];
  const grid = table(heads, lines, { class: "plain fits" });
  const field = make("input", {
    type: "search",
    "aria-label": "Operators that begin with",
    placeholder: "Filter operators",
  });
  field.addEventListener("input", () => {
    const asked = /** @type {HTMLInputElement} */ (field).value.toLowerCase();
    [...grid.querySelectorAll("tbody tr")].forEach((line, at) => {
      /** @type {HTMLElement} */ (line).hidden = !every[at][0].toLowerCase().includes(asked);
    });
  });
  return [
    para(
      "Which TensorRT's parser reads each operator, by NVIDIA's tables, how many rows have it, and how ONNX's own " +
        "tests of it ended on an H100.",
    ),
    field,
    grid,
  ];
};
/** @type {{ [tab: string]: () => Content }} */
const TABS = {
  errors: errorsTab,
  changes: changesTab,
  causes: causesTab,
  operators: operatorsTab,
  targets: targetsTab,
  legend: legendTab,
  data: dataTab,
};
/** @type {(name: string) => Promise<void>} */
const openTab = async (name) => {
  if (name === "changes") await whole();
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    /** @type {HTMLElement} */ (tab).tabIndex = chosen ? 0 : -1;
  }
  const place = byId("tab");
  place.setAttribute("aria-labelledby", `tab-${name}`);
  place.replaceChildren(...nodes(TABS[name]()));
};
on("tabs", "click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) openTab(tab.id.slice(4));
});
on("tabs", "keydown", (event) => {
  const all = /** @type {HTMLElement[]} */ ([...byId("tabs").querySelectorAll("[role=tab]")]);
  const by = Number(event.key === "ArrowRight") - Number(event.key === "ArrowLeft");
  if (!by) return;
  const next =
    all[(all.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + by + all.length) % all.length];
  openTab(next.id.slice(4));
  next.focus();
});
