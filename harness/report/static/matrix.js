// ---- the matrix: a table a case, filled as it is scrolled to, under one head that stays in sight ----
const grid = byId("grid");
const head = byId("head");
const NARROW = matchMedia("(max-width: 40rem)");
/** @type {(target: Target) => string} */
const under = (target) => {
  const built = target.series.match(/SM ([\d.]+)/);
  if (built) return words.generations[built[1]] || `SM ${built[1]}`;
  return target.series.includes("arm64")
    ? "arm64"
    : target.series.includes("CUDA")
      ? "CUDA"
      : target.jetpack
        ? `JP ${target.jetpack.split(/[ ,-]/)[0]}`
        : "";
};
/** @type {Column[]} */
let columns = [];
/** @type {Row[]} */
let shown = [];
// Of the rows that fit those that are drawn at first: of a case that is folded its row of most news.
/** @type {Row[]} */
let inSight = [];
/** @type {Set<string>} */
const unfolded = new Set();
/** @type {(cell: Cell) => number | undefined} */
const medianOf = (cell) => (showsLatency() ? cell.latency_ms?.median : undefined);
/** @type {Map<Cell, string>} */
const looks = new Map();
/** @type {(row: Row, target: Target) => string} */
const lookOf = (row, { index }) => {
  const cell = row.cells[index];
  const look =
    looks.get(cell) ??
    `${drawnAs(cell)} ${cell.basis} ${cell.evidence !== false} ${cell.chip || ""} ${cell.stale || ""}`;
  looks.set(cell, look);
  return look + (medianOf(cell) ?? "");
};
// Columns side by side that are alike in all rows in sight are one; those of a family in which nothing is known are
// one, folded.
// Of the rows in sight a column that knows of fewer shares one with its neighbours.
const FEW = 0.25;
/** @type {(wanted: Target[]) => Column[]} */
const columnsOf = (wanted) => {
  const ends = new Set([before().id, after().id]);
  const few = inSight.length * FEW;
  const empty = new Set(
    wanted.filter(
      (target) =>
        !ends.has(target.id) &&
        !seen.has(target.id) &&
        inSight.filter((row) => known(row.cells[target.index])).length <= few,
    ),
  );
  /** @type {Column[]} */
  const made = [];
  for (const target of wanted) {
    const last = made.at(-1);
    const alone = ends.has(target.id) || (last && last.targets.some(({ id }) => ends.has(id)));
    const same =
      last &&
      !alone &&
      last.targets[0].family === target.family &&
      (last.folded
        ? empty.has(target)
        : !empty.has(target) &&
          under(last.targets[0]) === under(target) &&
          last.targets[0].series === target.series &&
          inSight.every((row) => lookOf(row, last.targets[0]) === lookOf(row, target)));
    if (last && same && !state.all) last.targets.push(target);
    else made.push({ targets: [target], folded: empty.has(target) && !state.all });
  }
  return made;
};
/** @type {(column: Column) => string} */
const columnName = ({ targets: [first, ...more] }) => {
  const last = more.at(-1);
  return last ? `${first.short}–${last.short}` : first.short;
};
/** @type {(column: Column) => string} */
const endOf = ({ targets: [first] }) =>
  [first.id === before().id ? "from" : "", first.id === after().id ? "to" : ""].filter(Boolean).join(" ");
/** @type {(column: Column) => string} */
const columnClass = (column) =>
  [endOf(column), column.folded ? "folded" : "", column.targets.some(ran) ? "" : "unrun"]
    .filter(Boolean)
    .join(" ");
/** @type {(column: Column) => string} */
const fewOf = ({ targets: its }) =>
  inSight.some((row) => its.some(({ index }) => known(row.cells[index]))) ? "few results" : "no result";
const headElement = () => {
  const families = columns.map(({ targets: [first] }) => first.family);
  /** @type {[string, number][]} */
  const spans = [];
  families.forEach((family) => {
    const last = spans.at(-1);
    if (last && last[0] === family) last[1] += 1;
    else spans.push([family, 1]);
  });
  return make(
    "table",
    { class: "cells" },
    columnWidths(),
    make(
      "thead",
      {},
      make(
        "tr",
        { class: "families" },
        make("td", { class: "corner", rowspan: 2 }),
        spans.map(([family, many]) =>
          make(
            "th",
            { scope: "colgroup", colspan: many },
            make("span", { title: family }, many > 1 ? family : family.replace("TensorRT", "TRT")),
          ),
        ),
      ),
      make(
        "tr",
        { class: "versions" },
        columns.map((column) =>
          make(
            "th",
            {
              scope: "col",
              class: columnClass(column),
              title: column.targets
                .map((target) =>
                  [
                    `${target.id}: ${target.name}`,
                    ran(target) ? "" : "; not run for this report",
                    column.folded ? "; little is known in the rows in sight" : "",
                  ].join(""),
                )
                .join("\n"),
            },
            make(
              "a",
              { href: `#target-${column.targets[0].id}` },
              columnName(column),
              small(column.folded && column.targets.length > 1 ? fewOf(column) : under(column.targets[0])),
            ),
            endOf(column) && make("i", { class: "end" }, endOf(column)),
          ),
        ),
      ),
    ),
  );
};
const columnWidths = () =>
  make(
    "colgroup",
    {},
    make("col", { class: "first" }),
    columns.map(() => make("col", {})),
  );
// The target that a column stands for in a row: of several folded ones that which fails, else one that is known.
/** @type {(row: Row, column: Column) => Target} */
const foldedTo = (row, { targets: its, folded }) =>
  (folded &&
    (its.find(({ index }) => failing(row.cells[index])) ||
      its.find(({ index }) => known(row.cells[index])))) ||
  its[0];
/** @type {(row: Row, column: Column) => Element} */
const cellElement = (row, column) => {
  const target = foldedTo(row, column);
  const cell = row.cells[target.index];
  const news =
    known(cell) &&
    ["regressed", "new", "fixed"].includes(cell.verdict) &&
    !(cell.verdict === "new" && !failing(cell))
      ? cell.verdict
      : "";
  const corner =
    cell.by_gpu.length > 1 && new Set(cell.by_gpu.map((one) => one.class)).size > 1
      ? "⇄"
      : cell.flaky
        ? "~"
        : news
          ? { regressed: "!", new: "+", fixed: "★" }[news]
          : "";
  const [median, gpu] = [medianOf(cell), cell.gpu ? cell.gpu[1] : "CPU"];
  const chips =
    median === undefined
      ? [column.folded && column.targets.length > 1 && known(cell) ? target.short : cell.chip]
      : [ms(median), gpu.replace("NVIDIA ", "").split(" ")[0]];
  const its = known(cell) ? [target] : column.targets;
  const named = [
    `${row.title}, ${its.map(({ id }) => id).join(", ")}: ${STATES[stateOf(cell)]}`,
    verdictOf(cell),
    news,
    median === undefined ? "" : `median ${ms(median)} on ${gpu}`,
  ]
    .filter(Boolean)
    .join("; ");
  const anchor = make(
    "a",
    { href: `#${encodeURIComponent(cell.id)}`, title: named, tabindex: "-1" },
    badge(cell),
    corner && [" ", make("sup", {}, corner)],
    chips.map((chip) => chip && [" ", small(chip)]),
  );
  anchor.setAttribute("aria-label", `${named}. Shown: ${anchor.textContent}`);
  return make(
    "td",
    { class: `${columnClass(column)} s-${stateOf(cell)} ${news ? `n-${news}` : ""}` },
    anchor,
  );
};
// One verdict a row: that of the step, else the first that is known.
/** @type {(row: Row) => string} */
const verdictOfRow = (row) => {
  const [old, now] = [before(), after()].map((target) => ({
    cell: row.cells[target.index],
    short: target.short,
  }));
  if (known(old.cell) && known(now.cell))
    return old.cell.text === now.cell.text
      ? `${now.cell.text} on ${old.short} and ${now.short}`
      : `${old.cell.text} on ${old.short}, ${now.cell.text} on ${now.short}`;
  const one = known(now.cell) ? now : known(old.cell) ? old : null;
  const other = row.cells.find(known);
  if (one) return `${verdictOf(one.cell)} on ${one.short}`;
  return other ? `${verdictOf(other)} on ${targetOf.get(other.target)?.name}` : "";
};
const UNFOLD = { class: "unfold", "aria-expanded": "false" };
/** @type {(row: Row, more: number) => HTMLElement[]} */
const rowElements = (row, more) => {
  const unfold = more
    ? button(
        `and ${more} alike`,
        () => {
          unfolded.add(row.id);
          drawMatrix();
        },
        UNFOLD,
      )
    : null;
  const line = make(
    "tr",
    { class: "variant", "data-row": row.index },
    make(
      "th",
      {
        scope: "row",
        title: `${row.id}, ${words.roles[row.role]}${row.counterpart ? ` of ${row.counterpart}` : ""}`,
      },
      make(
        "div",
        { class: "title" },
        row.title,
        row.role === "workaround" && make("i", { class: "role" }, "workaround"),
        unfold,
      ),
      small(cut(verdictOfRow(row), 110)),
    ),
    columns.map((column) => cellElement(row, column)),
  );
  return [line];
};
/** @type {(row: Row) => number} */
const newsOf = (row) => {
  const kinds = kindsOf(row, before().index, after().index).filter(({ kind }) => kind !== "newly_unknown");
  const cells = columns.flatMap((column) => column.targets.map((target) => row.cells[target.index]));
  const { best, cells: tests } = filter.query;
  const rank = best.length ? best.length - best.indexOf(row) : 0;
  return (
    (best.includes(row) ? 16 * rank : 0) +
    (tests.length && cellFits(row.cells[after().index]) ? 32 : 0) +
    (kinds.length ? 8 : 0) +
    (failing(row.cells[after().index]) ? 4 : 0) +
    (cells.some(failing) ? 2 : 0) +
    (cells.some(known) ? 1 : 0)
  );
};
// Rows of one sweep or role that are alike in all columns are one until they are unfolded.
/** @type {(found: Row[]) => [row: Row, more: Row[]][]} */
const alike = (found) => {
  /** @type {Map<string, [row: Row, more: Row[]]>} */
  const groups = new Map();
  for (const row of found) {
    const sweep = row.tags.find((tag) => tag.startsWith("sweep:"));
    const key =
      sweep ||
      `${row.role} ${row.name.split("-")[0]} ${columns.map(({ targets: [target] }) => lookOf(row, target)).join("|")}`;
    const group = groups.get(key);
    if (group) group[1].push(row);
    else groups.set(key, [row, []]);
  }
  return [...groups.values()].flatMap(([row, more]) =>
    more.length < 2 || unfolded.has(row.id)
      ? [row, ...more].map((one) => /** @type {[Row, Row[]]} */ ([one, []]))
      : [/** @type {[Row, Row[]]} */ ([row, more])],
  );
};
/** @type {(lines: [row: Row, more: Row[]][]) => HTMLElement} */
const tableOf = (lines) =>
  make(
    "table",
    { class: "cells" },
    columnWidths(),
    make(
      "tbody",
      {},
      lines.flatMap(([row, more]) => rowElements(row, more.length)),
    ),
  );
// A case shows its row of most news, and the others by the button, a filter or the browser's own search.
/** @type {(found: Case, its: Row[]) => HTMLElement} */
const caseElement = (found, its) => {
  const lines = alike(its);
  const lead = asked() || opened.has(found.name) ? lines.length : 1;
  const many = lines.slice(lead).reduce((sum, [, more]) => sum + 1 + more.length, 0);
  const open = () => {
    opened.add(found.name);
    drawMatrix(found);
  };
  const titles = many
    ? make(
        "div",
        { hidden: "until-found" },
        its
          .slice(1)
          .map(({ title }) => title)
          .join("; "),
      )
    : null;
  const section = make(
    "section",
    { class: "case short", "aria-label": found.title },
    make(
      "div",
      { class: "about" },
      heading(found.title),
      make("p", { title: found.summary }, found.summary),
      many && button(`${many} more`, open, UNFOLD),
    ),
    titles,
  );
  titles?.addEventListener("beforematch", open);
  const first = lines.slice(0, lead);
  for (let at = 0; at < first.length; at += CHUNK) {
    const chunk = make("div", {});
    const some = first.slice(at, at + CHUNK);
    chunk.style.minHeight = `${some.length * 4.2}rem`;
    filling.set(chunk, some);
    section.append(chunk);
  }
  return section;
};
/** @type {Set<string>} */
const opened = new Set();
const asked = () =>
  Boolean(
    state.all ||
    state.topic ||
    state.state ||
    showsLatency() ||
    filter.query.rows.length ||
    filter.query.cells.length,
  );
// Rows are drawn so many at a time, where they come near, until a new drawing begins.
const CHUNK = 4;
/** @type {Map<HTMLElement, [row: Row, more: Row[]][]>} */
const filling = new Map();
const nearby = new IntersectionObserver(
  (entries) =>
    entries
      .filter((entry) => entry.isIntersecting)
      .forEach(({ target }) => fillUp(/** @type {HTMLElement} */ (target))),
  { rootMargin: "400px" },
);
const PRINT = matchMedia("print");
/** @type {(chunk: HTMLElement) => void} */
const fillUp = (chunk) => {
  const lines = filling.get(chunk);
  if (lines) chunk.append(tableOf(lines));
  filling.delete(chunk);
  nearby.unobserve(chunk);
  chunk.style.minHeight = "";
};
/** @type {{ query: Query }} */
const filter = { query: noQuery() };
const showsLatency = () => state.latency || Boolean(filter.query.answer?.timed);
/** @type {(cell: Cell) => boolean} */
const cellFits = (cell) =>
  filter.query.cells.every((fits) => fits(cell)) &&
  (!state.state || (stateOf(cell) === state.state && known(cell) === (state.state !== "unknown")));
// Those asked for; on a phone and on paper those of the step, with latencies those that have any.
const wantedColumns = () => {
  const { columns: asking } = filter.query;
  if (asking.length) return targets.filter((target) => asking.every((fits) => fits(target)));
  if ((NARROW.matches && !state.all) || PRINT.matches)
    return targets.filter(({ id }) => id === before().id || id === after().id);
  return showsLatency() && !state.all
    ? targets.filter(
        ({ index, id }) =>
          id === before().id || id === after().id || rows.some((row) => row.cells[index].latency_ms),
      )
    : targets;
};
/** @type {(wanted: Target[]) => Row[]} */
const rowsThatFit = (wanted) => {
  const { rows: tests, cells } = filter.query;
  return rows.filter(
    (row) =>
      tests.every((fits) => fits(row)) &&
      (!state.topic || row.topics.includes(state.topic)) &&
      (!(cells.length || state.state) || wanted.some((target) => cellFits(row.cells[target.index]))) &&
      (!showsLatency() || wanted.some((target) => row.cells[target.index].latency_ms)),
  );
};
// The variant that the thread of its case is about comes first, whatever the step.
/** @type {(row: Row) => number} */
const threadOf = (row) =>
  row.role === "reproducer" &&
  row.claims.some(({ scope, basis }) => basis === "reported" && scope !== "sibling")
    ? 0
    : 1;
let drawn = "";
/** @type {(unfolding?: Case) => void} */
const drawMatrix = (unfolding) => {
  const wanted = wantedColumns();
  shown = rowsThatFit(wanted);
  columns = wanted.map((target) => ({ targets: [target], folded: false }));
  const news = new Map(shown.map((row) => [row, newsOf(row)]));
  const byCase = new Map(
    data.cases.map(
      (found) =>
        /** @type {[Case, Row[]]} */ ([
          found,
          shown
            .filter((row) => row.case === found)
            .sort((one, other) =>
              asked() ? (news.get(other) || 0) - (news.get(one) || 0) : threadOf(one) - threadOf(other),
            ),
        ]),
    ),
  );
  const most = (/** @type {Row[]} */ its) => Math.max(...its.map((row) => news.get(row) || 0));
  const cases = [...byCase]
    .filter(([, its]) => its.length)
    .sort(
      ([one, its], [other, others]) =>
        (filter.query.best.length ? most(others) - most(its) : 0) ||
        (one.seed ?? 99) - (other.seed ?? 99) ||
        most(others) - most(its),
    );
  inSight = asked()
    ? shown
    : cases.flatMap(([found, its]) => (opened.has(found.name) ? its : its.slice(0, 1)));
  columns = columnsOf(wanted);
  byId("count").textContent =
    shown.length === rows.length
      ? `${rows.length} rows, ${columns.length} columns`
      : shown.length
        ? `${shown.length} of ${rows.length} rows`
        : "No row fits. ";
  byId("clear").hidden = shown.length === rows.length && !state.q;
  const drawing = JSON.stringify([
    before().id,
    after().id,
    showsLatency(),
    PRINT.matches,
    asked(),
    [...unfolded],
    columns.map(({ targets: [{ id }, ...more], folded }) => [id, more.length, folded]),
    cases.map(([, its]) => its.map(({ index }) => index)),
  ]);
  if (drawing === drawn && !unfolding) return;
  drawn = drawing;
  const sectionOf = () =>
    unfolding && grid.querySelector(`section[aria-label="${CSS.escape(unfolding.title)}"]`);
  const top = sectionOf()?.getBoundingClientRect().top;
  nearby.disconnect();
  filling.clear();
  byId("matrix").style.setProperty("--many", String(columns.length));
  head.replaceChildren(headElement());
  grid.replaceChildren(...cases.map(([found, its]) => caseElement(found, its)));
  const chunks = [...filling.keys()];
  const section = sectionOf();
  chunks
    .slice(
      0,
      PRINT.matches
        ? chunks.length
        : section
          ? chunks.indexOf(/** @type {HTMLElement} */ (section.lastElementChild)) + 1
          : 1,
    )
    .forEach(fillUp);
  [...filling.keys()].forEach((chunk) => nearby.observe(chunk));
  if (section && top !== undefined) {
    scrollBy(0, section.getBoundingClientRect().top - top);
    /** @type {HTMLElement | null} */ (section.querySelector("td a"))?.focus({ preventScroll: true });
  }
  /** @type {HTMLElement | null} */
  const first = grid.querySelector("td a");
  if (first) first.tabIndex = 0;
  markOpen();
};
const showStepColumns = () =>
  requestAnimationFrame(() => {
    const ends = /** @type {HTMLElement[]} */ ([...head.querySelectorAll(".from, .to")]);
    const [left, right] = [
      Math.min(...ends.map((end) => end.offsetLeft)),
      Math.max(...ends.map((end) => end.offsetLeft + end.offsetWidth)),
    ];
    const fixed = head.querySelector(".corner")?.clientWidth || 0;
    grid.scrollLeft = right <= grid.clientWidth ? 0 : left - fixed;
  });
const markOpen = () => {
  grid.querySelectorAll("a.open").forEach((/** @type {Element} */ one) => one.classList.remove("open"));
  grid.querySelector(`a[href="${location.hash.replace(/["\\]/g, "\\$&")}"]`)?.classList.add("open");
};
grid.addEventListener("pointerenter", whole, { once: true });
grid.addEventListener("scroll", () => {
  head.scrollLeft = grid.scrollLeft;
});
grid.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
  const anchor = /** @type {HTMLElement} */ (event.target).closest("td a");
  if (!anchor || event.altKey || event.ctrlKey || event.metaKey) return;
  const lines = [...grid.querySelectorAll("tr.variant")].filter((line) => !line.closest("[hidden]"));
  const line = anchor.closest("tr");
  const at = [...(line?.querySelectorAll("td a") || [])].indexOf(anchor);
  /** @type {{ [key: string]: () => Element | undefined }} */
  const moves = {
    ArrowRight: () => line?.querySelectorAll("td a")[at + 1],
    ArrowLeft: () => line?.querySelectorAll("td a")[at - 1],
    Home: () => line?.querySelectorAll("td a")[0],
    End: () => [...(line?.querySelectorAll("td a") || [])].at(-1),
    ArrowDown: () => lines[lines.indexOf(line) + 1]?.querySelectorAll("td a")[at],
    ArrowUp: () => lines[lines.indexOf(line) - 1]?.querySelectorAll("td a")[at],
  };
  const next = /** @type {HTMLElement | undefined} */ (moves[event.key]?.());
  if (!moves[event.key]) return;
  event.preventDefault();
  if (!next) return;
  anchor.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
});
for (const media of [NARROW, PRINT]) media.addEventListener("change", () => drawMatrix());
