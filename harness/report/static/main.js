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
// The letters that a state is drawn with, and how many cells it has.
/** @type {(state: string) => Cell[]} */
const cellsOf = (state) =>
  data.cells.filter((cell) => stateOf(cell) === state && known(cell) === (state !== "unknown"));
/** @type {(state: string) => string} */
const lettersOf = (state) =>
  [...new Set(cellsOf(state).map((cell) => words.marks[drawnAs(cell)].letters))].join(" ");
/** @type {(state: string) => string} */
const countOfState = (state) => String(cellsOf(state).length);
const fillFilters = () => {
  byId("topic").replaceChildren(
    make("option", { value: "" }, "every topic"),
    ...TOPICS.map((topic) => make("option", {}, topic)),
  );
  byId("topic").value = state.topic;
  byId("states").replaceChildren(
    ...Object.entries(STATES).map(([key, name]) =>
      button(
        [bold(lettersOf(key)), ` ${name} `, small(countOfState(key))],
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
  const shown = `${shownStep()}`;
  try {
    filter.query = parseQuery(looksLikeLog(state.q) || state.q === explainedText ? "" : state.q);
    byId("query-problem").hidden = true;
  } catch (error) {
    filter.query = noQuery();
    byId("query-problem").textContent = messageOf(error);
    byId("query-problem").hidden = false;
  }
  const moved = steps || shown !== `${shownStep()}`;
  [byId("a").value, byId("b").value] = shownStep();
  drawCard();
  if (moved) drawStep();
  drawMatrix();
  if (moved) showStepColumns();
};
// The card answers; the step stands back while something else was asked.
const drawCard = () => {
  const { answer } = filter.query;
  const lines = answer ? answer.lines.filter(({ href }) => href !== "step") : [];
  byId("step").hidden = answer ? !answer.step : Boolean(state.q);
  byId("card").hidden = !lines.length;
  byId("card").replaceChildren(...lines.map(({ text, href }, at) => answerLine(text, href, !at)));
};
/** @type {(text: string, href: string, first: boolean) => Element} */
const answerLine = (text, href, first) => {
  const at = href ? text.indexOf(": ") : -1;
  const said =
    at < 0 ? [text, " ", href && linkTo(href, "More")] : [linkTo(href, text.slice(0, at)), text.slice(at)];
  return make("p", { class: first ? "headline" : null }, said);
};
/** @type {(hash: string, text: string) => Element} */
const linkTo = (hash, text) =>
  make("a", { href: `#${placeOf(hash) ? encodeURIComponent(hash) : hash}` }, text);
let waiting = 0;
// The text that is explained and no question.
let explainedText = "";
// Words filter; a log is explained, and so is a known line, once the rows are painted and if no key came meanwhile.
const readBox = async () => {
  const text = byId("q").value;
  const words = !looksLikeLog(text);
  if (words) search(text);
  await rest(words ? 20 : 0);
  if (text !== byId("q").value) return;
  const log = await explainText(text, words);
  if (text !== byId("q").value || !(log || !words)) return;
  explainedText = log ? text : "";
  search(text);
};
/** @type {(text: string) => void} */
const search = (text) => {
  // What was open under another question stays one step back.
  if (text !== state.q && location.hash) {
    history.pushState(null, "", location.href.split("#")[0]);
    followHash();
  }
  state.q = text;
  changed();
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
    history.pushState(null, "", location.href);
    // The card under the box is the answer: it stays in sight.
    if (!byId("answer").hidden) byId("answer").scrollIntoView();
    else if (byId("card").hidden && !filter.query.answer) byId("matrix").scrollIntoView();
  });
  for (const key of /** @type {const} */ (["a", "b"]))
    on(key, "change", () => {
      [state.a, state.b] = [byId("a").value, byId("b").value];
      if (filter.query.answer) state.q = byId("q").value = "";
      changed(true);
    });
  on("swap", "click", () => {
    [state.a, state.b] = [byId("b").value, byId("a").value];
    if (filter.query.answer) state.q = byId("q").value = "";
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
    followHash();
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
      if (!panel.hidden) closePanel();
      byId("q").focus();
    }
    if (event.key === "?") {
      openTab("legend");
      byId("tabs").scrollIntoView();
    }
  });
};
const hashOf = () => {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
};
const followHash = async () => {
  const hash = hashOf();
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
      : TABS.includes(hash)
        ? hash
        : "";
  if (!tab) return;
  await openTab(tab);
  const entry = byId(hash);
  byId("query-problem").hidden = Boolean(entry) || hash === tab;
  byId("query-problem").textContent = `Nothing here is called ${hash.replace(/^\w+[=-]/, "")}.`;
  if (entry instanceof HTMLDetailsElement) entry.open = true;
  (entry || byId("tabs")).scrollIntoView();
};
const showState = () => {
  fillPicker(byId("a"), state.a);
  fillPicker(byId("b"), state.b);
  byId("q").value = state.q;
  fillFilters();
  changed(true);
  if (state.q) readBox();
};
byId("filters").open = !NARROW.matches;
fillBoxes();
fillFurther();
listen();
showState();
// The first tab is filled when it comes near.
new IntersectionObserver(
  (seen, itself) => {
    if (!seen.some((one) => one.isIntersecting)) return;
    itself.disconnect();
    if (!byId("tab").childElementCount) openTab("errors");
  },
  { rootMargin: "800px" },
).observe(byId("tab"));
setTimeout(() => rows.forEach(placesOf), 1000);
performance.mark("ready");
document.documentElement.dataset.ready = "";
followHash();
