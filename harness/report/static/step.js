// ---- from A to B: the kinds of the step stand in results.json; here they are counted and listed, worst first ----
const BAD = new Set(["broken", "precision_lost", "builds_without", "otherwise", "slower", "wider"]);
const kindOf = new Map(words.kinds.map((kind, order) => [kind.id, { ...kind, order }]));
/** @type {KindsOf} */
const kindsOf = (row, from, to) => {
  const [old, now] = [row.steps.known[from], row.steps.known[to]];
  const { details } = data.steps;
  return row.steps.kinds.flatMap(([one, other, kind, detail], at) =>
    one === old && other === now
      ? [{ kind, detail: details[detail], phenomenon: details[row.steps.phenomena[at]] || row.id }]
      : [],
  );
};
// Both sides are known and told apart, as far as it is known.
/** @type {(row: Row, from: number, to: number) => boolean} */
const comparable = (row, from, to) => {
  const [old, now] = [row.steps.known[from], row.steps.known[to]];
  return (
    known(row.cells[from]) &&
    known(row.cells[to]) &&
    !row.steps.open.some(([one, other]) => one === old && other === now)
  );
};
// A variant about a plugin of our own comes after what people use.
/** @type {(row: Row) => number} */
const ownPlugin = ({ tags }) => Number(tags.includes("plugin"));
/** @type {(cell: Cell) => string} */
const saidOf = (cell) => (cell.not_yet ? "not there yet" : cell.text);
// A line of the list: rows of one kind and phenomenon, with one thing to do and one basis.
/** @type {StepLines} */
const stepLines = (from, to, fits) => {
  /** @type {Map<string, StepLine>} */
  const found = new Map();
  /** @type {(row: Row, change: RowChange) => void} */
  const add = (row, { kind, detail, phenomenon }) => {
    const [old, now] = [row.cells[from.index], row.cells[to.index]];
    const failed = ["fixed", "precision_gained"].includes(kind) ? old : now;
    const cause = failing(failed) && kind !== "newly_unknown" ? causeOf(failed) : null;
    const instead = BAD.has(kind) || kind === "alone" ? now.instead || [] : [];
    const sure = [...new Set([old, now].filter(known).map(basisOf))].join(" and ");
    const text = ["slower", "faster"].includes(kind)
      ? detail
      : kind === "alone"
        ? now.text
        : `${saidOf(old)} → ${saidOf(now)}`;
    const alike = kind === "alone" ? (cause ? failed.signature : text) : phenomenon;
    const key = [kind, alike, instead.join(" "), sure, sourcesOf(now)].join("\n");
    const line = found.get(key) || {
      kind,
      cause:
        kind === "not_yet"
          ? { id: "", title: yetOf(old) }
          : cause
            ? { id: failed.signature || "", title: cause.title }
            : null,
      instead,
      sure,
      sources: sourcesOf(now) || sourcesOf(old),
      rows: [],
    };
    line.rows.push({ row, text, detail, phenomenon });
    found.set(key, line);
  };
  for (const row of rows.filter(fits).sort((one, other) => ownPlugin(one) - ownPlugin(other))) {
    kindsOf(row, from.index, to.index).forEach((change) => add(row, change));
    if (!known(row.cells[from.index]) && failing(row.cells[to.index]))
      add(row, { kind: "alone", detail: "", phenomenon: row.id });
  }
  const order = (/** @type {StepLine} */ { kind }) =>
    kind === "alone" ? 1.5 : (kindOf.get(kind)?.order ?? 99);
  return [...found.values()].sort(
    (one, other) =>
      order(one) - order(other) ||
      ownPlugin(one.rows[0].row) - ownPlugin(other.rows[0].row) ||
      other.rows.length - one.rows.length,
  );
};
// Reported of the version itself and shown by no row.
/** @type {(from: Target, to: Target, topic?: string) => Reported[]} */
const troublesOf = (from, to, topic = state.topic) => {
  const [old, shown] = [
    new Set(from.troubles.map(({ signature }) => signature)),
    new Set(rows.map((row) => row.cells[to.index].signature)),
  ];
  return topic ? [] : to.troubles.filter(({ signature }) => !old.has(signature) && !shown.has(signature));
};
// The first headline that fits, with phenomena counted, as `trt-compat diff` has it.
const COUNTED_KINDS = [
  ["broken", "broken"],
  ["lost", "precision_lost"],
  ["fixed", "fixed"],
  ["gained", "precision_gained"],
  ["alone", "alone"],
];
/** @type {HeadlineOf} */
const headlineOf = (from, to, lines, troubles, fits) => {
  const changes = (/** @type {string} */ kind) =>
    lines.filter((line) => line.kind === kind).flatMap((line) => line.rows);
  /** @type {{ [fact: string]: number }} */
  const counts = {};
  /** @type {{ [fact: string]: number }} */
  const models = {};
  for (const [name, kind] of COUNTED_KINDS) {
    counts[name] = new Set(changes(kind).map(({ phenomenon }) => phenomenon)).size;
    models[name] = changes(kind).length;
  }
  const worded = (/** @type {string} */ name, /** @type {string[]} */ [one, many]) =>
    counted(counts[name], one, many) + (models[name] === counts[name] ? "" : ` (${models[name]} models)`);
  const said = Object.fromEntries(
    Object.entries(words.counted).map(([part, names]) => [
      part,
      Object.entries(names)
        .filter(([name]) => counts[name])
        .map(([name, terms]) => worded(name, terms))
        .join(", "),
    ]),
  );
  const unmeasured = [from, to]
    .filter((target) => !rows.some((row) => row.cells[target.index].basis === "measured"))
    .map(({ short }) => short);
  const both = rows.filter((row) => fits(row) && comparable(row, from.index, to.index)).length;
  /** @type {{ [fact: string]: string | number | boolean }} */
  const facts = {
    unmeasured: unmeasured.length,
    sides: unmeasured.join(" and "),
    apart: !both,
    failing: counts.broken + counts.lost + counts.alone + troubles.length,
    ...counts,
    ...said,
    better: said.better && `; ${said.better}`,
    known: both,
    before: from.short,
    after: to.short,
  };
  const [, text] = words.headlines.find(
    ([counts]) => !counts.length || counts.some((each) => facts[each]),
  ) || [[], ""];
  const [on, ...others] = [
    ...new Set(
      [from, to].map((target) =>
        [...new Set(rows.flatMap((row) => row.cells[target.index].gpu?.[0] ?? []))].join(" "),
      ),
    ),
  ];
  const gpu =
    others.length || !on || on.includes(" ")
      ? ""
      : `On ${words.generations[on] ? `${words.generations[on]} (SM ${on})` : `SM ${on}`}: `;
  return gpu + text.replace(/\{(\w+)\}/g, (_, fact) => String(facts[fact]));
};
// The headline of the step between two columns by their ids.
/** @type {(a: string, b: string) => string} */
const headlineBetween = (a, b) => {
  const [from, to] = [a, b].map((id) => /** @type {Target} */ (targetOf.get(id)));
  const every = () => true;
  return headlineOf(from, to, stepLines(from, to, every), troublesOf(from, to, ""), every);
};
const MARKS = /** @type {{ [kind: string]: string }} */ ({
  fixed: "✓",
  precision_gained: "✓",
  faster: "✓",
  newly_unknown: "?",
});
/** @type {(line: StepLine, to: Target) => Element} */
const lineElement = (line, to) => {
  const [first, ...more] = line.rows;
  const named = (/** @type {{ row: Row, text: string, detail: string }} */ { row, text, detail }) => [
    cellLink(row.cells[to.index].id, row.title),
    make("span", { class: "does" }, ` ${text}${detail && detail !== text ? `: ${detail}` : ""}`),
  ];
  const name =
    line.kind === "alone"
      ? `Fails on ${to.short}; ${before().short} not known`
      : kindOf.get(line.kind)?.name || line.kind;
  return make(
    "li",
    { class: `line u-${line.kind}` },
    make(
      "span",
      { class: "mark", "aria-hidden": "true" },
      MARKS[line.kind] || (BAD.has(line.kind) || line.kind === "alone" ? "✕" : "·"),
    ),
    make(
      "div",
      { class: "what" },
      bold(name),
      line.rows.length > 1 && make("span", { class: "count" }, line.rows.length),
      " ",
      line.cause && [line.cause.id ? errorLink(line.cause.id, line.cause.title) : line.cause.title, ". "],
      para(named(first)),
      more.length && folded(`and ${more.length} more alike`, () => more.map((one) => para(named(one)))),
    ),
    make(
      "div",
      { class: "meanwhile" },
      line.instead.length
        ? [
            bold("Instead "),
            listed(
              line.instead.map((id) => {
                const row = rowOf.get(id);
                const cell = row?.cells[to.index];
                return row && cell
                  ? [
                      cellLink(cell.id, row.title),
                      ` (${known(cell) ? verdictOf(cell) : `not tried on ${to.short}`})`,
                    ]
                  : id;
              }),
            ),
          ]
        : null,
    ),
    make("div", { class: "sure" }, line.sure, line.sources && small(line.sources)),
  );
};
// The names of a signature that TensorRT's Python interface loses in a step, by what replaces them.
/** @type {(from: Target, to: Target, signature: string) => [now: string, names: string][]} */
const goneBetween = (from, to, signature) => {
  if (from.engine !== "tensorrt" || to.engine !== "tensorrt") return [];
  const patch = (/** @type {string} */ version) => version.split(".").slice(0, 3).join(".");
  const [old, now] = [from, to].map(({ version }) => patch(version));
  const gone = words.removed.filter(
    ([, first, end, its]) =>
      its === signature && compared(first, old) <= 0 && compared(old, end) < 0 && compared(end, now) <= 0,
  );
  return [...new Set(gone.map(([, , , , remedy]) => remedy))].map((remedy) => [
    remedy,
    gone
      .filter((one) => one[4] === remedy)
      .map(([name]) => name)
      .join(", "),
  ]);
};
const MOST_REMEDIES = 2;
/** @type {(trouble: Reported, from: Target, to: Target) => Element} */
const troubleElement = ({ signature, seen }, from, to) => {
  const gone = goneBetween(from, to, signature);
  const remedies = gone.map(([now, names]) => para(mono(names), now && `: ${now}`));
  return make(
    "li",
    { class: "line u-broken" },
    make("span", { class: "mark", "aria-hidden": "true" }, "!"),
    make(
      "div",
      { class: "what" },
      bold("Reported of this version"),
      " ",
      errorLink(
        signature,
        gone.length
          ? cut(`gone: ${gone.map(([, names]) => names).join(", ")}`)
          : data.signatures[signature].title,
      ),
      para(cut(seen, 300)),
    ),
    make(
      "div",
      { class: "meanwhile" },
      bold("Instead "),
      gone.length ? remedies.slice(0, MOST_REMEDIES) : data.signatures[signature].advice,
      remedies.length > MOST_REMEDIES &&
        fold(`and ${remedies.length - MOST_REMEDIES} more`, ...remedies.slice(MOST_REMEDIES)),
    ),
    make("div", { class: "sure" }, "reported"),
  );
};
// Whether what a topic rests on may still be used on a version, by the calls that results and reports say it lacks.
/** @type {(to: Target) => Element | null} */
const allowedElement = (to) => {
  const lines = words.ends
    .filter(({ topic }) => !state.topic || topic === state.topic)
    .flatMap(({ topic, name, partly, signature }) => {
      const cells = rows.filter((row) => row.topics.includes(topic)).map((row) => row.cells[to.index]);
      const gone = cells.filter((cell) => cell.class === "api_removed" && cell.signature === signature);
      const there = cells.filter(
        (cell) => known(cell) && cell.class !== "api_removed" && cell.class !== "not_applicable",
      );
      if (gone.length)
        return [
          [
            name,
            ": gone on ",
            to.short,
            ` (${basisOf(gone[0])}), `,
            errorLink(signature, "what replaces them"),
            ". ",
          ],
        ];
      return there.length && !partly
        ? [[name, ": still allowed on ", to.short, ` (${basisOf(there[0])}). `]]
        : [];
    });
  return lines.length ? make("p", { class: "allowed" }, bold("Still allowed? "), lines) : null;
};
const MOST_TO_RUN = 6;
// What to run where a side was not measured: the rows that are worst or of which nothing is known, seeds first.
/** @type {ToRun} */
const toRun = (from, to, fits) => {
  const open = rows.filter(
    (row) =>
      fits(row) &&
      [from, to].some(
        ({ index }) =>
          !["measured", "measured before"].includes(basisOf(row.cells[index])) &&
          row.cells[index].class !== "not_applicable",
      ),
  );
  const worth = (/** @type {Row} */ row) =>
    (failing(row.cells[to.index]) ? 0 : 2) +
    (row.role === "reproducer" ? 0 : 1) +
    (row.case.seed === null ? 4 : 0);
  const chosen = [...open].sort((one, other) => worth(one) - worth(other)).slice(0, MOST_TO_RUN);
  if (!chosen.length) return null;
  const line = `trt-compat run --target ${from.id} --target ${to.id} -k "${chosen.map((row) => row.id).join(" or ")}"`;
  const needs = [...new Set([from, to].filter((target) => !ran(target)).map((target) => target.needs))].join(
    "; ",
  );
  return make(
    "div",
    { class: "to-run" },
    fold(
      `Run these ${chosen.length} to be sure`,
      command(line),
      aside(
        `${needs ? `It needs ${needs}. ` : ""}Results: `,
        mono("trt-compat submit"),
        words.home && [" to ", link(words.home, words.home)],
        ".",
      ),
    ),
  );
};
const drawStep = () => {
  const most = NARROW.matches ? 0 : 2;
  const [from, to] = [before(), after()];
  const fits = (/** @type {Row} */ row) => !state.topic || row.topics.includes(state.topic);
  const lines = stepLines(from, to, fits);
  const [told, quiet] = [
    lines.filter(({ kind }) => kind !== "newly_unknown"),
    lines.filter(({ kind }) => kind === "newly_unknown"),
  ];
  const troubles = troublesOf(from, to);
  const neither = rows.filter(
    (row) => fits(row) && !known(row.cells[from.index]) && !known(row.cells[to.index]),
  ).length;
  const items = [
    ...told.map((line) => () => lineElement(line, to)),
    ...troubles.map((trouble) => () => troubleElement(trouble, from, to)),
  ];
  const lined = (/** @type {(() => Element)[]} */ some) =>
    make(
      "ol",
      { class: "lines" },
      some.map((item) => item()),
    );
  byId("step-answer").replaceChildren(
    ...nodes([
      make("p", { class: "headline" }, headlineOf(from, to, lines, troubles, fits)),
      from.product !== to.product &&
        aside(`${from.product} and ${to.product} are different products: this is no upgrade.`),
      items.length && most && lined(items.slice(0, most)),
      make(
        "div",
        { class: "folds" },
        items.length > most &&
          folded(counted(items.length - most, most ? "more change" : "change"), () =>
            lined(items.slice(most)),
          ),
        toRun(from, to, fits),
        quiet.length &&
          folded(
            `${counted(
              quiet.reduce((sum, line) => sum + line.rows.length, 0),
              "variant",
            )} with a result on ${from.short} only`,
            () => lined(quiet.map((line) => () => lineElement(line, to))),
          ),
        neither && aside(`${counted(neither, "variant")} with no result on either.`),
      ),
      allowedElement(to),
    ]),
  );
};
/** @type {(pick: HTMLSelectElement, chosen: string) => void} */
const fillPicker = (pick, chosen) => {
  const families = [...new Set(targets.map(({ family }) => family))];
  pick.replaceChildren(
    ...families.map((family) =>
      make(
        "optgroup",
        { label: family },
        targets
          .filter((target) => target.family === family)
          .map((target) =>
            make(
              "option",
              { value: target.id },
              `${target.name}${ran(target) ? " – measured" : seen.has(target.id) ? " – measured before" : ""}`,
            ),
          ),
      ),
    ),
  );
  pick.value = chosen;
};
