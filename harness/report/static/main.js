// ---- the first screen, and what follows the address ----
const product = (/** @type {Target[]} */ found) =>
  [...new Set(found.map((target) => target.product))]
    .map((name) => {
      const its = [
        ...new Set(
          found
            .filter((target) => target.product === name)
            .sort(byVersion)
            .map(({ short }) => short),
        ),
      ];
      return `${name} ${its.length > 2 ? `${its[0]}–${its[its.length - 1]}` : its.join(" and ")}`;
    })
    .join(", ");
const fillBoxes = () => {
  const measured = targets.filter(({ id }) => seen.has(id));
  const before = data.cells.filter((cell) => cell.basis === "measured" && cell.evidence === false).length;
  const cells = data.cells.filter((cell) => cell.basis === "measured" && cell.evidence !== false);
  const reported = data.cells.filter((cell) => cell.basis === "reported");
  const whens = measured
    .filter(ran)
    .map((target) => target.stamps?.when.slice(0, 10) || "")
    .sort();
  const gpus = [...new Set(cells.flatMap((cell) => (cell.gpu ? [cell.gpu[1]] : [])))];
  byId("measured").replaceChildren(
    ...(measured.length
      ? [
          product(measured),
          small(
            [
              whens.at(-1),
              counted(cells.length, "cell"),
              gpus.length ? gpus.join(", ") : "engines built, no GPU",
              before ? `${before} from earlier runs` : "",
            ]
              .filter(Boolean)
              .join("; "),
          ),
        ]
      : ["Nothing has been measured yet."]),
  );
  const unrun = targets.filter((target) => reported.some((cell) => cell.target === target.id));
  byId("reported").replaceChildren(
    ...(reported.length
      ? [
          product(unrun.filter(({ id }) => !seen.has(id))) || product(unrun),
          small(`${counted(reported.length, "cell")} by threads, NVIDIA and source code; not run here`),
        ]
      : ["Nothing."]),
  );
  const bad = ["regressed", "new"].map((verdict) =>
    data.cells.filter(
      (cell) => cell.verdict === verdict && known(cell) && (verdict === "regressed" || failing(cell)),
    ),
  );
  const news = bad.flat();
  byId("news").hidden = !news.length;
  byId("news").replaceChildren(
    ...(news.length
      ? [
          bold(`${counted(bad[0].length, "regression")}, ${counted(bad[1].length, "new failure")}: `),
          ...nodes(
            listed(
              news.map((cell) => cellLink(cell.id)),
              6,
            ),
          ),
        ]
      : []),
  );
};
// A check of the reader's own model asks more than the matrix does.
const fillFurther = () => {
  if (words.further.length)
    byId("further").append(table(["Model", "Target", "Question", "About", "Answer"], words.further));
};
const TOPICS = [...new Set(rows.flatMap((row) => row.topics))];
const fillFilters = () => {
  byId("topic").replaceChildren(
    make("option", { value: "" }, "every topic"),
    ...TOPICS.map((topic) => make("option", {}, topic)),
  );
  byId("topic").value = state.topic;
  byId("states").replaceChildren(
    ...Object.entries(STATES).map(([key, name]) =>
      button(
        name,
        () => {
          state.state = state.state === key ? "" : key;
          fillFilters();
          changed();
        },
        { class: `chip s-${key}`, "aria-pressed": String(state.state === key) },
      ),
    ),
  );
  byId("all").checked = state.all;
  byId("latency").checked = state.latency;
};
/** @type {(steps?: boolean) => void} */
const changed = (steps = false) => {
  writeState();
  try {
    filter.query = parseQuery(looksLikeLog(state.q) ? "" : state.q);
    byId("query-problem").hidden = true;
  } catch (error) {
    byId("query-problem").textContent = messageOf(error);
    byId("query-problem").hidden = false;
  }
  const { step } = filter.query;
  if (step && `${step}` !== `${[state.a, state.b]}`) {
    [state.a, state.b] = step;
    [byId("a").value, byId("b").value] = step;
    writeState();
    steps = true;
  }
  if (steps) drawStep();
  drawMatrix();
  if (steps) showStepColumns();
};
/** @type {(target: Target) => Content} */
const factsOf = (target) => [
  make("a", { href: `#target-${target.id}` }, `${target.product} ${target.short}`),
  ": ",
  [
    target.jetpack && `JetPack ${target.jetpack}`,
    target.image.includes("nvidia/") && target.image,
    target.cuda && `CUDA ${target.cuda}`,
    target.driver && `driver ${target.driver.replace(">=", "≥ ")} on x86-64`,
  ]
    .filter(Boolean)
    .join(", ") || target.gpus,
  ". ",
];
/** @type {(name: string, version: string) => boolean} */
const unreadBy = (name, version) => {
  const { first } = words.errors.operators[name];
  const since = first.match(/\d+\.\d+/);
  return (
    !since ||
    byVersion(/** @type {Target} */ ({ version: since[0] }), /** @type {Target} */ ({ version })) > 0
  );
};
/** @type {() => Content} */
const slower = () => {
  const found = stepLines(before(), after(), () => true).flatMap(({ kind, rows }) =>
    kind === "slower" ? rows : [],
  );
  return [
    `Slower on ${after().short} than on ${before().short}, by more than two runs differ: `,
    found.length
      ? listed(
          found.map(({ row, detail }) => [cellLink(row.cells[after().index].id, row.title), ` (${detail})`]),
          4,
        )
      : "nothing",
    ". ",
  ];
};
/** @type {(text: string) => Content[]} */
const understood = (text) => {
  const { columns: asking, step, leads, operators } = filter.query;
  const found = asking.length ? targets.filter((target) => asking.every((fits) => fits(target))) : [];
  const own = found.filter(({ engine }) => engine === "tensorrt").sort(byVersion);
  const read =
    [...leads].some(([, tab]) => tab === "operators") && own.length
      ? Object.keys(words.errors.operators).filter((name) => unreadBy(name, own[0].version))
      : [];
  return [
    step ? `From ${before().name} to ${after().name}: the answer is below. ` : "",
    found.length
      ? [
          `${text}: ${counted(found.length, "column")}`,
          found.length > 2
            ? [own.length ? `, the first TensorRT ${own[0].short}` : "", ". "]
            : [". ", found.map(factsOf)],
        ]
      : asking.length
        ? `${text}: no column. `
        : "",
    read.length ? [`Of ONNX's operators TensorRT ${own[0].short} does not read: ${read.join(", ")}. `] : "",
    operators.map((name) => `${name}: TensorRT reads it ${words.errors.operators[name].first}. `),
    [...leads].map(([, tab, says]) =>
      tab === "latency"
        ? [
            "Latencies are shown: of ",
            counted(data.cells.filter((cell) => cell.latency_ms).length, "cell"),
            ". Columns without one were never timed. ",
            slower(),
          ]
        : [tab ? make("a", { href: `#${tab}` }, says) : says, ". "],
    ),
  ];
};
let waiting = 0;
// Words filter; a log is explained, and so is a known line, once the rows are painted and if no key came meanwhile.
const readBox = async () => {
  const text = byId("q").value;
  const words = !looksLikeLog(text);
  if (words) search(text);
  await rest(words ? 20 : 0);
  if (text !== byId("q").value) return;
  const log = await explainText(text, words);
  if (text !== byId("q").value || !(log || !words)) return;
  search(log ? "" : text);
};
/** @type {(text: string) => void} */
const search = (text) => {
  state.q = text;
  changed();
  const timed = [...filter.query.leads].some(([, tab]) => tab === "latency");
  if (timed && !state.latency) {
    state.latency = true;
    fillFilters();
    changed();
  }
  const errors = errorsLike(text);
  byId("errors-like").replaceChildren(
    ...nodes(understood(text.trim())),
    ...(errors.length
      ? [
          make("span", {}, "Errors: "),
          ...nodes(
            listed(errors.slice(0, 4).map((id) => errorLink(id, filled(id, data.signatures[id].title)))),
          ),
        ]
      : []),
  );
};
const listen = () => {
  on("q", "input", () => {
    byId("answer").setAttribute("aria-busy", "true");
    clearTimeout(waiting);
    waiting = setTimeout(readBox, 80);
  });
  // Enter goes to the first hit; a new line takes Shift.
  on("q", "keydown", async (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    clearTimeout(waiting);
    await readBox();
    // A sentence under the box is the answer: it stays in sight.
    if (byId("answer").hidden)
      /^(?:#text|A)$/.test(byId("errors-like").firstChild?.nodeName) || byId("matrix").scrollIntoView();
    else byId("answer").scrollIntoView();
  });
  for (const key of /** @type {const} */ (["a", "b"]))
    on(key, "change", () => {
      state[key] = byId(key).value;
      changed(true);
    });
  on("swap", "click", () => {
    [state.a, state.b] = [state.b, state.a];
    byId("a").value = state.a;
    byId("b").value = state.b;
    changed(true);
  });
  on("topic", "change", () => {
    state.topic = byId("topic").value;
    changed(true);
  });
  for (const key of /** @type {const} */ (["all", "latency"]))
    on(key, "change", () => {
      state[key] = byId(key).checked;
      changed();
    });
  on("clear", "click", () => {
    Object.assign(state, { q: "", state: "", topic: "", latency: false });
    byId("q").value = "";
    fillFilters();
    explainText("", false);
    changed(true);
  });
  on("search", "submit", (event) => event.preventDefault());
  addEventListener("hashchange", followHash);
  addEventListener("popstate", () => {
    Object.assign(state, readState());
    showState();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) closePanel();
    if (
      /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName || "") ||
      event.altKey ||
      event.ctrlKey ||
      event.metaKey
    )
      return;
    if (event.key === "/") {
      event.preventDefault();
      byId("q").focus();
    }
    if (event.key === "?") {
      openTab("legend");
      byId("tabs").scrollIntoView();
    }
  });
};
const followHash = () => {
  const hash = decodeURIComponent(location.hash.slice(1));
  if (placeOf(hash)) {
    openPanel(hash);
    return;
  }
  if (!panel.hidden) {
    panel.hidden = true;
    markOpen();
  }
  const tab = hash.startsWith("error=")
    ? "errors"
    : hash.startsWith("target-")
      ? "targets"
      : hash in TABS
        ? hash
        : "";
  if (!tab) return;
  openTab(tab);
  const entry = byId(hash);
  if (entry instanceof HTMLDetailsElement) entry.open = true;
  (entry || byId("tabs")).scrollIntoView();
};
const showState = () => {
  fillPicker(byId("a"), state.a);
  fillPicker(byId("b"), state.b);
  byId("q").value = state.q;
  fillFilters();
  changed(true);
};
byId("filters").open = !NARROW.matches;
fillBoxes();
fillFurther();
listen();
showState();
followHash();
setTimeout(() => {
  if (!byId("tab").childElementCount) openTab("errors");
}, 300);
setTimeout(() => rows.forEach(haystack), 1000);
performance.mark("ready");
document.documentElement.dataset.ready = "";
