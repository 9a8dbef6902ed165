"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const grid = document.getElementById("grid");
  const panel = document.getElementById("panel");
  const byId = (id) => document.getElementById(id);

  // `table` holds what occurs more than once in the data; {"$": n} stands for entry n.
  const get = (value) => {
    if (Array.isArray(value)) return value.map(get);
    if (value === null || typeof value !== "object") return value;
    if ("$" in value) return get(data.table[value.$]);
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, get(entry)]));
  };
  const targets = get(data.targets);
  const variants = data.variants.map((entry) => {
    const plain = get(entry);
    return { case: plain.case, name: plain.name, all: () => get(entry) };
  });
  const rows = [...grid.querySelectorAll("tr.variant")];
  const links = rows.map((row) => [...row.querySelectorAll("td > a")]);
  const idOf = (row, column) => `${variants[row].case}[${variants[row].name}]-${targets[column].id}`;
  const places = new Map();
  rows.forEach((_, row) => targets.forEach((_, column) => places.set(idOf(row, column), [row, column])));

  // Everything strangers wrote reaches the page as text nodes or attribute values, never as markup.
  const make = (tag, attributes, ...children) => {
    const svg = ["svg", "rect", "circle", "line", "title"].includes(tag);
    const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  };
  const link = (url, text) =>
    /^https:\/\//.test(url) ? make("a", { href: url, rel: "noreferrer" }, text) : make("span", {}, text);

  // ---- the grid: links, keyboard -------------------------------------------------------------------------------
  let home = null;
  const setHome = (anchor) => {
    if (home) home.tabIndex = -1;
    home = anchor;
    anchor.tabIndex = 0;
  };
  rows.forEach((row, index) => {
    links[index].forEach((anchor, column) => {
      const words = anchor.parentElement.title;
      anchor.href = "#" + encodeURIComponent(idOf(index, column));
      anchor.setAttribute("aria-label", `${variants[index].name} on ${targets[column].id}. ${words}`);
      anchor.tabIndex = -1;
    });
  });
  const seen = (element) => !element.closest("[hidden]");
  const visibleRows = () => rows.map((_, index) => index).filter((index) => seen(rows[index]));
  const visibleColumns = () => targets.map((_, index) => index).filter((index) => rows.length && !links[0][index].parentElement.hidden);

  const step = (list, now, by) => list[Math.min(list.length - 1, Math.max(0, list.indexOf(now) + by))];
  const MOVES = {
    ArrowRight: (row, column) => [row, step(visibleColumns(), column, 1)],
    ArrowLeft: (row, column) => [row, step(visibleColumns(), column, -1)],
    ArrowDown: (row, column) => [step(visibleRows(), row, 1), column],
    ArrowUp: (row, column) => [step(visibleRows(), row, -1), column],
    Home: (row) => [row, visibleColumns()[0]],
    End: (row) => [row, visibleColumns().at(-1)],
  };
  const placeOf = (anchor) => {
    const row = rows.indexOf(anchor.closest("tr"));
    return [row, links[row].indexOf(anchor)];
  };
  // A cell that is focused must not hide behind the sticky header or the sticky first column.
  const reveal = (anchor) => {
    const scroller = grid.closest(".scroller");
    const view = scroller.getBoundingClientRect();
    const box = anchor.getBoundingClientRect();
    const top = view.top + grid.tHead.getBoundingClientRect().height;
    const left = view.left + anchor.closest("tr").cells[0].getBoundingClientRect().width;
    if (box.top < top) scroller.scrollTop -= top - box.top;
    else if (box.bottom > view.bottom) scroller.scrollTop += box.bottom - view.bottom + 12;
    if (box.left < left) scroller.scrollLeft -= left - box.left;
    else if (box.right > view.right) scroller.scrollLeft += box.right - view.right + 12;
  };
  grid.addEventListener("keydown", (event) => {
    const anchor = event.target.closest("td > a");
    const move = MOVES[event.key];
    if (!anchor || !move || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const [row, column] = move(...placeOf(anchor));
    setHome(links[row][column]);
    home.focus({ preventScroll: true });
    reveal(home);
  });
  grid.addEventListener("focusin", (event) => {
    const anchor = event.target.closest("td > a");
    if (anchor) setHome(anchor);
  });
  for (const reference of document.querySelectorAll("a[data-cell]")) {
    const [inCase, variant, target] = reference.dataset.cell.split("|");
    reference.href = "#" + encodeURIComponent(`${inCase}[${variant}]-${target}`);
  }

  // ---- filters -------------------------------------------------------------------------------------------------
  const filters = byId("filters");
  const families = [...grid.querySelectorAll(".families th[data-family]")];
  const heads = [...grid.querySelectorAll(".targets th")];
  const state = byId("f-state");
  const haystack = rows.map((row) =>
    [row.cells[0].textContent, row.closest("tbody").querySelector(".case").textContent].join(" ").toLowerCase());
  const apply = () => {
    const words = byId("f-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set([...filters.querySelectorAll("[name=family]:checked")].map((box) => box.value));
    const measured = byId("f-measured").checked;
    const columns = heads.map((head) => wanted.has(head.dataset.family) && !(measured && head.classList.contains("unrun")));
    heads.forEach((head, index) => { head.hidden = !columns[index]; });
    families.forEach((head) => {
      const left = heads.filter((entry) => entry.dataset.family === head.dataset.family && !entry.hidden).length;
      head.hidden = left === 0;
      head.colSpan = Math.max(1, left);
    });
    let shown = 0;
    rows.forEach((row, index) => {
      links[index].forEach((anchor, column) => { anchor.parentElement.hidden = !columns[column]; });
      const fits = words.every((word) => haystack[index].includes(word))
        && (!byId("f-differs").checked || row.hasAttribute("data-differs"))
        && (!state.value || links[index].some((anchor, column) => columns[column] && anchor.parentElement.classList.contains(state.value)));
      row.hidden = !fits;
      shown += fits;
    });
    for (const body of grid.tBodies) {
      body.hidden = !body.querySelector("tr.variant:not([hidden])");
      body.rows[0].cells[0].colSpan = columns.filter(Boolean).length + 1;
    }
    byId("f-count").value = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
    byId("empty").hidden = shown > 0;
    for (const button of document.querySelectorAll("[data-bucket]")) {
      button.setAttribute("aria-pressed", String(state.value === "b-" + button.dataset.bucket));
    }
    if (!home || !seen(home)) {
      const first = links[visibleRows()[0]]?.[visibleColumns()[0]];
      if (first) setHome(first);
    }
  };
  filters.hidden = false;
  filters.addEventListener("input", apply);
  filters.addEventListener("submit", (event) => event.preventDefault());
  for (const button of document.querySelectorAll("[data-bucket]")) {
    button.disabled = !button.querySelector(".n").textContent.trim().match(/[1-9]/);
    button.addEventListener("click", () => {
      const value = "b-" + button.dataset.bucket;
      state.value = state.value === value ? "" : value;
      apply();
      byId("matrix").scrollIntoView();
    });
  }
  apply();

  // ---- the panel -----------------------------------------------------------------------------------------------
  const kindOf = (heading) => (heading.startsWith("#") ? "num" : ["Severity", "Precision", "Code"].includes(heading) ? "fix" : ["Inputs", "Weights", "Outputs"].includes(heading) ? "short" : null);
  const table = (headings, lines, rowClass) => make("table", {},
    make("thead", {}, make("tr", {}, headings.map((text) => make("th", { scope: "col", class: kindOf(text) }, text.replace("#", ""))))),
    make("tbody", {}, lines.map((line) => make("tr", { class: rowClass ? rowClass(line) : null },
      line.map((entry, index) => make("td", { class: kindOf(headings[index]) }, entry instanceof Node ? entry : String(entry ?? "")))))));
  const list = (pairs) => make("dl", {}, pairs.flatMap(([key, value]) => [
    make("dt", {}, key), make("dd", {}, typeof value === "string" ? value : JSON.stringify(value))]));
  const part = (title, ...content) => {
    const found = content.flat(Infinity).filter(Boolean);
    return found.length ? [make("h3", {}, title), ...found] : [];
  };
  const fold = (title, ...content) => make("details", {}, make("summary", {}, title), ...content);
  const ms = (value) => {
    if (typeof value !== "number") return "";
    return value < 0.1 ? `${Number((value * 1000).toPrecision(3))} µs` : `${value < 1000 ? Number(value.toPrecision(3)) : Math.round(value)} ms`;
  };
  const size = (bytes) => (bytes < 1048576 ? (bytes / 1024).toFixed(1) + " KiB" : (bytes / 1048576).toFixed(1) + " MiB");
  const capital = (text = "") => (/^[a-z]+[ ,;:]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text);
  const figure = (value) => (typeof value === "number" ? String(Number(value.toPrecision(4))) : "not finite");
  const joined = (entries) => make("span", {}, (entries || []).map((entry, index) => (index ? [make("br"), entry] : [entry])).flat());

  const claims = (cell, variant) => (cell.documented || []).map((index) => {
    const claim = variant.expectations[index];
    return make("p", {}, make("b", {}, claim.outcome), ` on ${claim.where}, ${claim.certainty}`,
      cell.expectation === index ? " (held against this)" : "", ". ", claim.note ? claim.note + " " : "", claim.url ? link(claim.url, claim.source) : "");
  });
  const diagnosis = (cell) => {
    const found = cell.diagnosis;
    if (!found) return [];
    return [make("div", { class: "box hint" }, make("p", {}, make("b", {}, found.title), " ", make("code", {}, found.id)),
      make("p", {}, found.cause), make("p", {}, make("b", {}, "What to do. "), found.advice),
      found.proofs.length ? make("p", {}, "Shown by ", found.proofs.map((name, index) => [index ? ", " : "", proof(name)]).flat(), ".") : null,
      found.links.length ? make("p", { class: "quiet" }, found.links.map((url, index) => [index ? ", " : "", link(url, url)]).flat()) : null)];
  };
  // A proof is named case.variant; its cell on the same target is where to look.
  const proof = (name) => {
    const row = variants.findIndex((variant) => `${variant.case}.${variant.name}` === name);
    return row < 0 ? make("code", {}, name) : make("a", { href: "#" + encodeURIComponent(idOf(row, current[1])) }, idOf(row, current[1]));
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
      ([, want, got]) => (want === got ? null : "lostrow"))];
  };
  const layers = (cell) => {
    if (!cell.layers) return [];
    const timed = cell.layers.some((layer) => layer[8] !== null);
    const headings = ["Layer", "Precision", "Inputs", "Weights", "Outputs", ...(timed ? ["#Time"] : [])];
    return [table(headings, cell.layers.map(([name, type, kind, inputs, weights, outputs, tactic, nodes, time]) => [
      make("span", {}, name, make("br"), make("span", { class: "quiet" }, [type, nodes.length ? "from " + nodes.join(" + ") : "", tactic].filter(Boolean).join("; "))),
      kind, joined(inputs), joined(weights), joined(outputs), ...(timed ? [ms(time)] : [])])),
      timed ? make("p", { class: "quiet" }, "Layer times are from a profiled run; with the events between layers they add up to more than the latency.") : null,
      cell.unparsedLayers ? make("p", { class: "quiet" }, `${cell.unparsedLayers} more layers could not be read.`) : null,
      cell.layerSource ? make("p", { class: "quiet" }, `Read from: ${cell.layerSource}.`) : null];
  };
  const latency = (cell) => {
    const timing = cell.latency;
    if (!timing) return [];
    const low = Math.min(...timing.samples), high = Math.max(...timing.samples, timing.p95), width = high - low || 1;
    const y = (value) => `${92 - ((value - low) / width) * 84}%`;
    const sensors = (timing.sensors || []).map(([name, before, after]) => `${name.replaceAll("_", " ")} ${before}, then ${after}`);
    return [make("p", {}, `median ${ms(timing.median)}, 95th percentile ${ms(timing.p95)}, spread ${((timing.spread || 0) * 100).toPrecision(2)} %; ${timing.count} samples after ${timing.warmup || 0} warm-up runs, ${timing.clock.replace("_", " ")}`),
      timing.noise ? make("p", {}, `Too noisy to compare: ${timing.noise}.`) : null,
      make("p", { class: "quiet" }, [timing.scope ? `Timed: ${timing.scope}.` : "", timing.upload ? `Copying the inputs to the device takes ${ms(timing.upload)} more.` : "", sensors.length ? `Sensors before and after: ${sensors.join("; ")}.` : ""].filter(Boolean).join(" ")),
      make("svg", { class: "spark", role: "img", "aria-label": `Samples from ${ms(low)} to ${ms(high)}` },
        make("line", { x1: 0, x2: "100%", y1: y(timing.median), y2: y(timing.median) }),
        timing.samples.map((sample, index) => make("circle", { cx: `${1 + (98 * index) / Math.max(1, timing.samples.length - 1)}%`, cy: y(sample), r: 2 })))];
  };
  const accuracy = (cell) => (cell.accuracy ? [table(["Output", "#Largest error", "#relative", "#Cosine", "Shape"], cell.accuracy.map(
    ([output, most, relative, cosine, bad, shape]) => [output, figure(most), figure(relative), figure(cosine) + (bad ? `, ${bad} not finite` : ""), shape ? "same" : "differs"]))] : []);
  const log = (cell) => [
    cell.error ? make("pre", {}, cell.error) : null,
    cell.parserErrors ? table(["Code", "Node", "Operator", "Parser error"], cell.parserErrors) : null,
    cell.messages ? table(["Severity", "Message"], cell.messages) : null,
    cell.messagesLeftOut ? make("p", { class: "quiet" }, `${cell.messagesLeftOut} more messages are in the store.`) : null,
    cell.native ? fold("What the native library wrote", make("pre", {}, cell.native)) : null].filter(Boolean);
  const command = (text) => {
    const button = make("button", { type: "button" }, "Copy");
    button.addEventListener("click", () => navigator.clipboard?.writeText(text).then(() => { button.textContent = "Copied"; }));
    return make("div", { class: "cmd" }, make("pre", {}, text), navigator.clipboard ? button : null);
  };
  const reproduce = (id) => [command(`pytest 'matrix.yaml::${id}'`), command(`python -m harness show '${id}'`)];

  let current = null;
  const open = (row, column) => {
    current = [row, column];
    const cell = get(data.cells[row][column]) || {};
    const variant = variants[row].all();
    const id = idOf(row, column);
    const anchor = links[row][column];
    const close = make("button", { type: "button", "aria-keyshortcuts": "Escape" }, "Close");
    close.addEventListener("click", shut);
    const badge = anchor.querySelector(".badge").cloneNode(true);
    const facts = [cell.missingApi ? ["missing API", cell.missingApi] : null, cell.end ? ["process", cell.end] : null,
      cell.peakRss ? ["peak memory", size(cell.peakRss)] : null, cell.engineBytes ? ["engine size", size(cell.engineBytes)] : null].filter(Boolean);
    panel.replaceChildren(
      make("div", { class: "panel-head" }, make("div", {}, make("h2", { id: "panel-title", tabindex: "-1" }, id),
        make("p", {}, [variant.caseTitle, variant.title, targets[column].label].map((text) => text.replace(/\.$/, "")).join(". ") + ".")), close),
      make("p", { class: "state" }, badge, `${cell.bucket}${cell.bucket === cell.class ? "" : ": " + cell.class.toLowerCase()}`),
      make("p", { class: "say" }, capital(cell.sentence || cell.reason)),
      cell.sentence && cell.reason && !cell.sentence.includes(cell.reason) ? make("p", {}, cell.reason) : "",
      ...diagnosis(cell), ...(cell.notes || []).map((note) => make("p", { class: "quiet" }, note)),
      ...part("Documented", claims(cell, variant)),
      ...part("Precision of the nodes that matter", precision(cell, variant)),
      ...part("Latency", latency(cell)), ...part("Accuracy against the ONNX reference", accuracy(cell)),
      ...part("Phases", phases(cell), facts.length ? list(facts) : []),
      ...part("Messages", log(cell)), ...part(`Layers${cell.layers ? ` (${cell.layers.length})` : ""}`, layers(cell)),
      ...part("Recipe", make("p", {}, variant.recipe), list(variant.hashes)),
      ...part("Reproduce", reproduce(id)), ...part("Measured with", cell.stamps ? [list(cell.stamps)] : []));
    document.querySelectorAll("#grid a.open").forEach((entry) => entry.classList.remove("open"));
    anchor.classList.add("open");
    setHome(anchor);
    panel.hidden = false;
    panel.scrollTop = 0;
    document.title = `${id} – TensorRT compatibility matrix`;
    panel.querySelector("#panel-title").focus({ preventScroll: true });
  };
  const shut = () => {
    if (panel.hidden) return;
    panel.hidden = true;
    links[current[0]][current[1]].classList.remove("open");
    document.title = "TensorRT compatibility matrix";
    history.replaceState(null, "", location.pathname + location.search);
    links[current[0]][current[1]].focus();
  };
  const follow = () => {
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const place = places.get(id);
    if (place) open(...place);
  };
  // A second click on the open cell's link changes no hash, so the click itself opens.
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest?.("a[href^='#']");
    if (anchor && anchor.getAttribute("href") === location.hash) follow();
  });
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") shut();
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      byId("f-text").focus();
    }
  });
  follow();
})();
