// ---- what the page shows is what the address says ---------------------------------------------------------------
const KEYS_OF_STATE = ["a", "b", "q", "state", "hide", "only", "cols", "metric", "cell", "vs"];
/** @type {() => State} */
const fresh = () => ({ a: data.pair[0], b: data.pair[1], q: "", state: "", hide: "", only: "", cols: "", metric: "", cell: "", vs: "" });
let state = fresh();
/** @type {(wanted: State) => string} */
const hashOf = (wanted) => {
  const plain = fresh();
  const said = KEYS_OF_STATE.filter((key) => wanted[key] !== plain[key] && wanted[key]);
  if (!said.length) return "";
  // The pair is always said: the default moves on when a newer version is measured.
  return "#" + ["a", "b", ...said.filter((key) => key !== "a" && key !== "b")].map((key) => `${key}=${encodeURIComponent(wanted[key])}`).join("&");
};
/** @type {() => State | null} */
const readHash = () => {
  const text = location.hash.slice(1);
  const found = fresh();
  if (!text) return found;
  try {
    const plain = decodeURIComponent(text);
    if (/^(?:a|b|q|state|hide|only|cols|metric|guesses|cell|vs)=/.test(text)) {
      for (const piece of text.split("&")) {
        const [key, ...rest] = piece.split("=");
        if (KEYS_OF_STATE.includes(key)) found[key] = decodeURIComponent(rest.join("="));
      }
    } else if (placeOf(plain) || !(byId(plain) || plain.startsWith("error="))) found.cell = plain;
    else return null;
  } catch { return null; }
  return found;
};
/** @type {(id: string, otherwise: string) => number} */
const number = (id, otherwise) => (byTarget.get(id) || byTarget.get(otherwise))?.index ?? 0;
// Says what of the address names nothing in this report; the rest of it is followed.
const strangers = () => {
  const unknown = ["a", "b", "vs"].filter((key) => state[key] && !byTarget.has(state[key])).map((key) => `target ${cut(state[key], 60)}`);
  if (state.cell && !placeOf(state.cell)) unknown.push(`cell ${cut(state.cell, 120)}`);
  const said = unknown.length ? [`The address names what is not in this report: ${unknown.join(", ")}.`] : [];
  // Who opens a link sees the top of the page, and not what is said beside the filter.
  const typing = document.activeElement === byId("f-text");
  try { parseQuery(state.q); } catch (error) { if (!typing) said.push(`The filter of the address is none: ${messageOf(error).replace(/[^?]$/, "$&.")}`); }
  byId("stranger").textContent = said.join(" ");
  byId("stranger").hidden = !said.length;
};
/** @type {(text: string) => void} */
const problem = (text) => {
  byId("f-problem").textContent = text;
  byId("f-problem").hidden = !text;
  byId("f-text").setAttribute("aria-invalid", String(Boolean(text)));
};
let shownPair = "";
let stepShown = Promise.resolve();
let cellShown = Promise.resolve();
/** @type {string | null} */
let shownFilter = null;
// Offers the targets that there are steps to: for "to" those from the one chosen, and the one that the address names.
/** @type {(before: number, after: number) => void} */
const fillPickers = (before, after) => {
  const to = data.to[before];
  fillPicker(byId("pick-a"), targets, before);
  fillPicker(byId("pick-b"), targets.filter((target) => target.index === after || to.includes(target.index)), after);
};
const phone = matchMedia("(max-width: 40rem)");
/** @type {() => [before: number, after: number]} */
const pairNow = () => [number(state.a, data.pair[0]), number(state.b, data.pair[1])];
const filterAgain = () => {
  const pair = phone.matches && !state.only.includes("a") ? pairNow() : null;
  const filter = JSON.stringify([state.q, state.state, state.hide, state.only, state.cols, pair]);
  if (filter === shownFilter) return;
  let query;
  try {
    query = parseQuery(state.q);
    problem("");
  } catch (error) {
    if (!(error instanceof BadQuery)) throw error;
    problem(`${error.message} – the rows are ${shownFilter === null ? "all there are" : "still those of the filter before"}.`);
    if (shownFilter !== null) return;
    query = parseQuery("");
  }
  shownFilter = filter;
  filterRows({ query, hide: state.hide.split("|"), state: state.state, differs: state.only.includes("d"), measured: state.only.includes("m"), pair, cols: state.cols ? state.cols.split(",") : [] });
  byId("filter-said").textContent = filterSaid(state, pair);
};
const apply = () => {
  const pair = pairNow();
  strangers();
  const newPair = targets.length && shownPair !== pair.join();
  if (newPair) {
    shownPair = pair.join();
    stepShown = drawStep(...pair);
    byId("pair-said").replaceChildren("From ", make("b", {}, targets[pair[0]].label), " to ", make("b", {}, targets[pair[1]].label));
    markPair(...pair);
    fillPickers(...pair);
    tellChosen();
    byId("on-a").replaceChildren(...targetSaid(targets[pair[0]]));
    byId("on-b").replaceChildren(...targetSaid(targets[pair[1]]));
  }
  if (byId("f-text").value !== state.q) byId("f-text").value = state.q;
  byId("f-state").value = state.state;
  byId("f-metric").value = state.metric;
  showMetric(byId("f-metric").value, pair[0]);
  byId("f-differs").checked = state.only.includes("d");
  byId("f-measured").checked = state.only.includes("m");
  byId("f-all").checked = state.only.includes("a");
  const hidden = state.hide.split("|");
  for (const box of filters.querySelectorAll("[name=family]")) box.checked = !hidden.includes(families[box.value].dataset.name || "");
  byId("f-pair").setAttribute("aria-pressed", String(onlyTwo(state)));
  showChosen(state.cols);
  showDetails(state.only.includes("s"));
  unfoldAll(state.only.includes("u"));
  byId("f-details").checked = state.only.includes("s");
  byId("f-unfold").checked = state.only.includes("u");
  filterAgain();
  if (newPair) showPair(pair);
  for (const button of document.querySelectorAll("[data-bucket]")) button.setAttribute("aria-pressed", String(state.state === "b-" + button.dataset.bucket));
  const place = state.cell ? placeOf(state.cell) : null;
  if (place) {
    const vs = byTarget.get(state.vs);
    const other = vs && vs.index !== place[1] ? vs.index : null;
    if (String(current) !== String([...place, other])) cellShown = openCell(...place, other);
  } else shutCell();
};
// A step to another cell is one that the browser's Back undoes; typing in a filter is not.
/** @type {(changes: Partial<State>) => void} */
const go = (changes) => {
  const wanted = followTwo(state, /** @type {State} */ ({ ...state, ...changes }));
  if (JSON.stringify(wanted) === JSON.stringify(state)) return;
  const address = location.pathname + location.search + hashOf(wanted);
  history["cell" in changes || "a" in changes || "b" in changes ? "pushState" : "replaceState"](null, "", address);
  state = wanted;
  apply();
};
// A narrow picker cuts its names, and what is noted of a version may decide between two: both stand below it.
const LONGEST_PICKED = 60;
/** @type {(target: Target) => (Element | string)[]} */
const targetSaid = (target) => {
  const facts = new Map(target.facts);
  const run = target.run ? `Last run: ${facts.get("Last run")}` : `Not run for this report; needs ${target.needs}`;
  const more = make("a", { href: `#target-${target.id}` }, cut(facts.get("Note") || "All about it", 300));
  return [make("span", { class: target.name.length > LONGEST_PICKED ? null : "narrow" }, `${cut(target.name, 120)}. `), cut(run.replace(/\.$/, ""), 300), ". ", more];
};

const filters = byId("filters");
filters.hidden = false;
byId("pair").hidden = false;
byId("starts")?.removeAttribute("hidden");
byId("pair-said").classList.add("on-paper");
// Another start may have no step to where one was going: then the nearest that it has is offered.
/** @type {(id: string) => void} */
const pickStart = (id) => {
  const to = data.to[number(id, data.pair[0])];
  const [, after] = pairNow();
  const nearest = [...to].sort((one, two) => Math.abs(one - after) - Math.abs(two - after))[0];
  go({ a: id, b: targets[nearest].id });
};
byId("pick-a").addEventListener("change", () => pickStart(byId("pick-a").value));
byId("pick-b").addEventListener("change", () => go({ b: byId("pick-b").value }));
byId("swap").addEventListener("click", () => go({ a: state.b, b: state.a }));
byId("copy").hidden = !navigator.clipboard;
byId("copy").addEventListener("click", () => {
  navigator.clipboard.writeText(addressOf(hashOf(state) || `#a=${encodeURIComponent(state.a)}&b=${encodeURIComponent(state.b)}`)).then(() => { byId("copy").textContent = COPIED_LINK; });
});
/** @type {(letter: string, on: boolean) => string} */
const only = (letter, on) => [...new Set([...state.only].filter((one) => one !== letter).concat(on ? [letter] : []))].sort().join("");
byId("f-text").addEventListener("input", () => {
  go({ q: byId("f-text").value });
  // Rows that are found are to be seen.
  scroller.scrollTop = 0;
  if (scroller.getBoundingClientRect().top > innerHeight / 2) filters.scrollIntoView({ behavior: "instant" });
});
byId("f-state").addEventListener("change", () => go({ state: byId("f-state").value }));
byId("f-metric").addEventListener("change", () => go({ metric: byId("f-metric").value }));
byId("f-differs").addEventListener("change", () => go({ only: only("d", byId("f-differs").checked) }));
byId("f-measured").addEventListener("change", () => go({ only: only("m", byId("f-measured").checked) }));
byId("f-details").addEventListener("change", () => go({ only: only("s", byId("f-details").checked) }));
byId("f-unfold").addEventListener("change", () => go({ only: only("u", byId("f-unfold").checked) }));
byId("f-all").addEventListener("change", () => go({ only: only("a", byId("f-all").checked) }));
phone.addEventListener("change", filterAgain);
byId("f-pair").addEventListener("click", () => {
  go({ q: toggleTwo(state) });
  showPair(pairNow());
});
byId("show-all").addEventListener("click", () => {
  go({ q: "", state: "", hide: "", cols: "", only: state.only.replace(/[^asu]/g, "") });
  showPair(pairNow());
  byId("f-text").focus();
});
for (const box of filters.querySelectorAll("[name=family]")) {
  box.addEventListener("change", () => go({ hide: [...filters.querySelectorAll("[name=family]:not(:checked)")].map((one) => families[one.value].dataset.name).join("|") }));
}
filters.addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
for (const button of document.querySelectorAll("[data-bucket]")) {
  button.disabled = !button.querySelector(".n").textContent.trim().match(/[1-9]/);
  button.addEventListener("click", () => {
    const value = "b-" + button.dataset.bucket;
    go({ state: state.state === value ? "" : value });
    byId("matrix").scrollIntoView();
  });
}
for (const reference of document.querySelectorAll("a[data-q]")) {
  reference.href = hashOf({ ...fresh(), q: reference.dataset.q });
  reference.addEventListener("click", (/** @type {Event} */ event) => {
    event.preventDefault();
    go({ q: reference.dataset.q, state: "", hide: "", cols: "", only: state.only.replace(/[^su]/g, "") });
    byId("matrix").scrollIntoView();
  });
}
for (const step of document.querySelectorAll("#starts a")) {
  const { a, b } = step.dataset;
  step.href = hashOf({ ...fresh(), a, b });
  step.addEventListener("click", (/** @type {Event} */ event) => {
    event.preventDefault();
    go({ a, b });
  });
}
// Links within the page keep what the address says: a cell is opened, a section is scrolled to.
document.addEventListener("click", (event) => {
  const anchor = event.target?.closest?.("a[href^='#']");
  if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  let id = "";
  try { id = decodeURIComponent(anchor.getAttribute("href").slice(1)); } catch { return; }
  if (placeOf(id)) {
    go({ cell: id, vs: anchor.dataset.vs || "" });
    return;
  }
  const section = byId(id);
  if (section) {
    section.scrollIntoView();
    // To a cell, past the links of the heads and of the case: from there the arrows lead everywhere.
    if (anchor.classList.contains("skip")) (home && seen(home) ? home : scroller).focus({ preventScroll: true });
  }
});
const follow = () => {
  const found = readHash();
  if (!found) return;
  state = found;
  apply();
};
// A dialog focuses its first button, which is on its last line.
const showHelp = () => {
  byId("help").showModal();
  byId("help-title").focus();
};
addEventListener("hashchange", follow);
addEventListener("popstate", follow);
addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName || "");
  if (event.key === "Escape" && (byId("help").open || about.matches(":popover-open"))) return;
  if (event.key === "Escape" && state.cell) go({ cell: "", vs: "" });
  if (typing || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "/") {
    event.preventDefault();
    byId("f-text").focus();
    byId("f-text").scrollIntoView({ block: "nearest" });
  }
  if (event.key === "?") showHelp();
});
// Paper cannot be unfolded, nor scrolled; what would fill more than a hundred sheets stays undrawn.
const ON_PAPER = 20000;
/** @type {HTMLDetailsElement[]} */
let unfolded = [];
addEventListener("beforeprint", () => {
  if (panel.hidden) unfoldAll(true);
  if (!STATIC && panel.hidden && lines.length * shownColumns().length <= ON_PAPER) drawMore(lines.length);
  unfolded = [...document.querySelectorAll("main details:not([open], #nodes), #panel details:not([open])")];
  unfolded.forEach((entry) => { entry.open = true; });
});
addEventListener("afterprint", () => {
  unfolded.forEach((entry) => { entry.open = false; });
  unfoldAll(state.only.includes("u"));
});
byId("f-help").addEventListener("click", showHelp);
follow();
if (!shownPair) apply();
stepShown.finally(goOn);
// Once all that stands above the matrix has its height.
Promise.allSettled([stepShown, cellShown]).then(() => {
  if (current) scroller.scrollIntoView({ block: "nearest", behavior: "instant" });
  performance.mark("ready");
  document.documentElement.dataset.ready = "";
});
