// ---- a question -> its answer, in the page and, by harness/report/asking.py, in the terminal: no document here ----
const lexicon = words.lexicon;
/** @type {Map<string, string>} */
const terms = new Map(Object.entries(lexicon.terms));
const TOKEN = /(?<![\p{L}\d])(?![vV])\p{L}\d[\p{L}\d]*(?![\p{L}\d]|\.\d)|\d+(?:\.\d+)*(?:\.x)?|\p{L}+|\S/gu;
const INSIDE = /(?<=[\p{L}\d])[-_/](?=\p{L})|(?<=\p{L})[-_/](?=\d)/gu;
const LONGEST = 6;
const [MOST_ROWS, MOST_COLUMNS, MOST_FOUND_ERRORS] = [3, 3, 2];
const PRODUCTS = /** @type {{ [scale: string]: string }} */ ({
  tensorrt: "TensorRT",
  rtx: "TensorRT for RTX",
  ort: "ONNX Runtime",
});
const RELEASES = ["jetpack", "l4t", "ngc"];
/** @type {(version: string) => number[]} */
const numbersOf = (version) => (version.match(/\d+/g) || []).map(Number);
// As Python compares tuples.
/** @type {(one: string, other: string) => number} */
const compared = (one, other) => {
  const [left, right] = [numbersOf(one), numbersOf(other)];
  const at = left.findIndex((part, index) => part !== right[index]);
  return at < 0 ? left.length - right.length : right[at] === undefined ? 1 : left[at] - right[at];
};
/** @type {<T>(items: T[]) => T[]} */
const once = (items) => [...new Map(items.map((one) => [JSON.stringify(one), one])).values()];
/** @type {(name: string, values?: any) => string} */
const say = (name, values = {}) =>
  lexicon.says[name].replace(/\{(\w+)\}/g, (/** @type {any} */ _, /** @type {string} */ key) => values[key]);
/** @type {(question: string) => any} */
const readQuestion = (question) => {
  const text = question.replace(/[-=]>/g, "→").replace(INSIDE, " ");
  const tokens = [...text.matchAll(TOKEN)];
  /** @type {any} */
  const asked = { names: {}, versions: [], about: new Map(), jetson: false, turned: false };
  const named = (/** @type {string} */ kind) => (asked.names[kind] ||= []);
  /** @type {string | undefined} */
  let scale;
  const term = (/** @type {string} */ meaning, /** @type {string} */ shown) => {
    const [kind, name] = meaning.split(":");
    asked.jetson ||= lexicon.jetsons.includes(name);
    if (kind === "between") asked.turned ||= /^than$/i.test(shown) && asked.versions.length === 1;
    else if (kind === "columns") {
      const { scale: its, short } = lexicon.columns[name];
      asked.versions.push({ scale: its, number: short });
    } else {
      named(kind).push(name);
      const like = lexicon.likes[meaning];
      if (like) asked.about.set(shown, like);
    }
    if (kind !== "between") scale = kind === "scales" ? name : kind === "foreign" ? "" : undefined;
  };
  const glued = (/** @type {number} */ at) => /[\p{L}\d]$/u.test(text.slice(0, tokens[at].index));
  const guessed = (/** @type {number} */ at, /** @type {string} */ number) => {
    const [major, ...minor] = number.replace(/\.x$/, "").split(".");
    if (/^[23]\d\.\d\d$/.test(number)) return "ngc";
    const follows = at > 0 && lexicon.roles.includes(tokens[at - 1][0].toLowerCase());
    if (follows && asked.versions.length && minor.length < 4) return asked.versions.at(-1).scale;
    return number.includes(".") || (follows && Number(major) >= 7) ? "tensorrt" : "";
  };
  const version = (/** @type {number} */ at, /** @type {string} */ shown) => {
    const its = scale ?? (glued(at) ? "" : guessed(at, shown));
    scale = undefined;
    if (!its || /^\p{L}/u.test(text.slice(tokens[at].index + shown.length))) return;
    const number = shown.replace(/\.x$/, "");
    const dotted = number.includes(".") ? number : `${number.slice(0, -1)}.${number.slice(-1)}`;
    const card = Object.keys(lexicon.cards).find((name) => lexicon.cards[name] === dotted);
    if (its === "sm") named("cards").push(...(card ? [card] : []));
    else if (its !== "tensorrt" || compared(number, "12") < 0) asked.versions.push({ scale: its, number });
  };
  for (let at = 0, many = 1; at < tokens.length; at += many) {
    for (many = Math.min(LONGEST, tokens.length - at); ; many -= 1) {
      const shown = tokens
        .slice(at, at + many)
        .map(([token]) => token)
        .join(" ");
      const meaning = terms.get(shown) || terms.get(shown.toLowerCase());
      const word = shown.toLowerCase();
      if (meaning) term(meaning, shown);
      else if (many > 1) continue;
      else if (/\d/.test(word[0])) version(at, word);
      else if (/^[\p{L}\d]{2}/u.test(word) && !glued(at)) {
        asked.about.set(word, [word]);
        scale = undefined;
      }
      break;
    }
  }
  if (!asked.about.size && named("precisions").includes("FP32")) asked.about.set("FP32", ["fp32"]);
  return asked;
};
/** @type {any[]} */
const askedColumns = Object.entries(lexicon.columns).map(([id, column]) => ({ id, ...column }));
/** @type {(column: any, version: any) => boolean} */
const isOf = (column, { scale, number }) => {
  const asked = `${scale} ${number}.`;
  return column.is.some(
    (/** @type {string} */ own) => asked.startsWith(`${own}.`) || `${own}.`.startsWith(asked),
  );
};
// The newest of the measured columns, else the newest.
/** @type {(fits: any[]) => any} */
const bestOf = (fits) =>
  fits.reduce((one, other) =>
    (other.measured - one.measured || compared(other.version, one.version)) > 0 ? other : one,
  );
/** @type {(time: any) => string} */
const timeOf = ({ median, low, high }) => {
  const micros = (/** @type {number} */ value) => String(Number((value * 1000).toPrecision(3)));
  return `${micros(median)} µs${low && high ? ` (${micros(low)} to ${micros(high)})` : ""}`;
};
// The words of a text in small letters, with a blank before and after each.
/** @type {(text: string) => string} */
const asWords = (text) => ` ${(text.toLowerCase().match(/[\p{L}\d]+/gu) || []).join(" ")} `;
/** @type {(text: string, like: string[]) => boolean} */
const holds = (text, like) => like.some((word) => text.includes(asWords(word).slice(0, -1)));
/** @type {Map<Row, string[]>} */
const places = new Map();
// What is printed of a row: its title, its case's title and tags, and the rest.
/** @type {(row: Row) => string[]} */
const placesOf = (row) => {
  const found =
    places.get(row) ||
    [
      row.title,
      `${row.case.title} ${[...row.tags, ...row.topics].join(" ")}`,
      [
        row.case.name,
        row.name,
        row.case.summary,
        ...row.graph.nodes.map(({ name, op }) => `${name} ${op}`),
        ...row.sentences.map(({ text }) => text),
        ...row.claims.map(({ title, says, of, note }) => `${title} ${says} ${of} ${note}`),
      ].join(" "),
    ].map(asWords);
  places.set(row, found);
  return found;
};
// How near to a row's title any form of a word stands in it, 0 for nowhere.
/** @type {(row: Row, like: string[]) => number} */
const pointsOf = (row, like) => {
  const singular = like.map((word) => word.replace(/(?<=..[^s])s$/, ""));
  const at = placesOf(row).findIndex((text) => holds(text, singular));
  return at < 0 ? 0 : 3 - at;
};
/** @type {{ title: string, text: string, line: AnswerLine }[]} */
let askedErrors = [];
const errorsToFind = () => {
  if (!askedErrors.length)
    askedErrors = Object.entries(data.signatures).map(([id, { title, cause, advice, texts }]) => ({
      title: asWords(title),
      text: asWords([title, cause, advice, ...texts.map(({ text }) => text)].join(" ")),
      line: { text: `Error: ${title}. ${advice}`, href: `error=${id}` },
    }));
  return askedErrors;
};
/** @type {(asked: any, found: any[], needed: string[]) => { best: Row[], unheard: string[] }} */
const searchedRows = ({ about }, found, needed) => {
  /** @type {[string, string[]][]} */
  const asked = [...about];
  const isNeeded = asked.map(([, like]) => like.some((word) => needed.includes(word)));
  const points = asked.length ? rows.map((row) => asked.map(([, like]) => pointsOf(row, like))) : [];
  // A row that only mentions some of several words, or lacks a needed one, is no answer.
  const hits = points.map((its) =>
    (its.every(Boolean) || its.some((one) => one > 1)) && isNeeded.every((must, at) => !must || its[at])
      ? its.filter(Boolean).length
      : 0,
  );
  const most = Math.max(0, ...hits);
  const order = (/** @type {Row} */ row) => [
    -points[row.index].reduce((sum, one) => sum + one, 0),
    Number(!found.some(({ id }) => row.cells[/** @type {Target} */ (targetOf.get(id)).index].basis)),
    Number(row.role !== "reproducer"),
  ];
  return {
    best: rows
      .filter((_, at) => most && hits[at] === most)
      .map((row) => ({ row, by: order(row) }))
      .sort(({ by: one }, { by: other }) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2])
      .map(({ row }) => row),
    unheard: asked
      .filter(
        ([, like], at) =>
          !isNeeded[at] &&
          !points.some((its) => its[at]) &&
          !errorsToFind().some(({ text }) => holds(text, like)),
      )
      .map(([shown]) => shown),
  };
};
/** @type {(question: string) => Answer} */
const answerTo = (question) => {
  const asked = readQuestion(question);
  /** @type {(kind: string) => string[]} */
  const names = (kind) => once(asked.names[kind] || []);
  const asks = (/** @type {string} */ what) => names("asks").includes(what);
  /** @type {AnswerLine[]} */
  const lines = [];
  const tell = (/** @type {string} */ text, href = "") => lines.push({ text, href });
  /** @type {(keys: string[], card?: string) => AnswerLine[]} */
  const facts = (keys, card = "") =>
    keys
      .filter((key) => Object.hasOwn(lexicon.facts, key))
      .map((key) => lexicon.facts[key])
      .map(([text, href]) => ({
        text: text.replaceAll("{card}", card).replaceAll(`(${card}, `, "("),
        href,
      }));
  const known = (/** @type {string} */ key) => Object.hasOwn(lexicon.facts, key);
  /** @type {(scales: string[]) => any[]} */
  const ofScales = (scales) =>
    once(asked.versions.filter((/** @type {any} */ { scale }) => scales.includes(scale)));
  const fitting = (/** @type {any} */ version, series = "") => {
    const jetson = asked.jetson && version.scale === "tensorrt";
    const fits = askedColumns.filter((column) => isOf(column, version) && (column.jetson || !jetson));
    return fits.filter((column) => column.series === (series || fits[0].series));
  };
  const main = askedColumns.filter(({ series }) => series === "TensorRT");

  // The step and the columns that are asked for.
  let own = ofScales(Object.keys(PRODUCTS));
  let versions = own.length ? own : ofScales(RELEASES);
  if (asks("newest") && !versions.length)
    own = versions = main.slice(-1).map(({ short }) => ({ scale: "tensorrt", number: short }));
  const between = () => {
    for (const series of asks("plan") ? [] : once(askedColumns.map((column) => column.series))) {
      const ends = versions.slice(0, 2).map((version) => fitting(version, series));
      if (ends[1] && ends.every(({ length }) => length))
        return asked.turned ? ends.map(bestOf).reverse() : ends.map(bestOf);
    }
    return [];
  };
  const upTo = () => {
    const { number } = versions[0] || {};
    const alone = !asked.about.size && !names("cards").length && !names("asks").length;
    if (versions.length !== 1 || versions !== own || names("foreign").length) return [];
    if (!asks("step") && !(alone && !number.includes("."))) return [];
    const fits = fitting(versions[0]);
    const earlier = askedColumns.filter(
      (column) => column.series === fits[0]?.series && compared(column.version, number) < 0,
    );
    return earlier.length ? [bestOf(earlier), bestOf(fits)] : [];
  };
  const ends = between();
  const step = ends.length ? ends : upTo();
  const found = step.length
    ? [...step]
    : versions.flatMap((version) => fitting(version).slice(version.number.includes(".") ? -1 : 0));
  const { best, unheard } = searchedRows(
    asked,
    found,
    names("operators").map((name) => name.toLowerCase()),
  );

  if (asks("plan") && (own.length > 1 || asks("built"))) {
    if (own.length > 1) {
      const [old, now] = own;
      const order = compared(old.number, now.number);
      const [one, other] = [old, now].map(({ number }) => numbersOf(number)[0]);
      const crosses = one === other || lexicon.across.includes(`${one} ${other}`);
      const later = crosses && compared(old.number, "8.6") >= 0 && old.scale !== "rtx";
      const [a, b] = [old, now].map(({ scale, number }) => `${PRODUCTS[scale]} ${number}`);
      const form = order === 0 ? "same" : order > 0 ? "earlier" : later ? "later" : "far";
      tell(say(`plan_${form}`, { a, b }), "error=foreign-engine");
    }
    tell(say("plan_any"), "error=foreign-engine");
  }
  const measured = main.filter((column) => column.measured);
  // The measured step answers for no version that was not measured.
  const fits = own.every((version) => fitting(version).at(-1)?.measured);
  const [a, b] = step.length ? step : fits && measured.length > 1 ? [measured[0], measured.at(-1)] : [];
  if (asks("latency") && !a) tell(say("untimed"));
  else if (asks("latency")) {
    const timed = (asked.about.size ? best : rows)
      .map((row) => {
        const [old, now] = [a, b].map(({ id }) => row.cells[/** @type {Target} */ (targetOf.get(id)).index]);
        const times = /** @type {any[]} */ ([old.latency_ms, now.latency_ms]);
        return { row, now, times, ratio: times.every(Boolean) ? times[1].median / times[0].median : 0 };
      })
      .filter(({ ratio }) => ratio)
      .sort((one, other) => other.ratio - one.ratio);
    for (const { row, now, times } of timed.slice(0, MOST_ROWS)) {
      const [old, later] = times.map(timeOf);
      const gpu = now.gpu ? now.gpu[1] : "CPU";
      tell(say("timed", { title: row.title, old, new: later, a: a.name, b: b.name, gpu }), now.id);
    }
    tell(say(timed.length ? "one_layer" : "not_timed", { a: a.name, b: b.name }));
  }
  if (step.length && !asks("latency"))
    tell(`${say("step", { a: a.name, b: b.name })} ${headlineBetween(a.id, b.id)}`, "step");
  for (const version of own.filter((one) => !fitting(one).length)) {
    const every = askedColumns
      .filter(({ scale, jetson }) => scale === version.scale && jetson === asked.jetson)
      .sort((one, other) => compared(one.version, other.version));
    const below = every.filter((column) => compared(column.version, version.number) < 0).length;
    const near = every.slice(Math.max(below - 1, 0), below + 1);
    tell(
      say("no_column", {
        asked: `${PRODUCTS[version.scale]} ${version.number}${asked.jetson ? " on Jetson" : ""}`,
        nearest: near.map(({ name }) => name).join(" and "),
      }),
      "targets",
    );
    lines.push(...facts([`${version.scale} ${version.number.split(".").slice(0, 2).join(".")}`]));
    if (!step.length) found.push(...near);
  }
  for (const card of names("cards")) {
    const capability = lexicon.cards[card];
    const beside = [...found.map(({ id }) => id), ...names("precisions")];
    lines.push(...facts([...beside.map((one) => `${capability} ${one}`), capability], card));
  }
  for (const operator of names("operators")) {
    for (const { short, version } of found.filter(({ scale }) => scale === "tensorrt")) {
      const run = lexicon.operators[operator].runs
        .filter((/** @type {string[]} */ [since]) => compared(since, version) <= 0)
        .at(-1);
      tell(say("reads", { version: short, reads: run ? run[1] : `does not read ${operator}` }), "operators");
    }
    lines.push(...facts([operator]));
  }
  for (const ask of names("operators").length ? [] : names("asks"))
    lines.push(...facts([...found.map(({ id }) => `${ask} ${id}`), ask].filter(known).slice(0, 1)));
  const types = facts(names("precisions"));
  const wanted = new Set(found.map(({ series }) => series));
  const firsts = new Map();
  for (const row of asks("latency") ? [] : best)
    if (row.sentences.length && !firsts.has(row.case)) firsts.set(row.case, row);
  const ofRows = [...firsts.values()].slice(0, MOST_ROWS).flatMap((row, at) => {
    const told =
      row.sentences.find((/** @type {any} */ { series }) => wanted.has(series)) || row.sentences[0];
    const line = {
      text: `${row.title}: ${told.series} ${told.text}.`,
      href: row.cells.find((/** @type {Cell} */ { basis }) => basis).id,
    };
    return at ? [line] : [line, { text: row.case.summary, href: "" }];
  });
  lines.push(
    ...(asked.about.size <= names("precisions").length ? [...types, ...ofRows] : [...ofRows, ...types]),
  );
  const exact = step.length ? [] : own.filter(({ number }) => number.includes("."));
  const told = found.filter((column) => exact.some((version) => isOf(column, version))).map(({ id }) => id);
  const quiet = !lines.length;
  lines.push(...facts(told.slice(0, quiet ? MOST_COLUMNS : 1)));
  for (const { scale, number } of ofScales(lexicon.stacks))
    if (!step.length || !RELEASES.includes(scale))
      lines.push(...facts([`${scale} ${number}`, scale].filter(known).slice(0, 1)));
  if (quiet && !asked.versions.length)
    lines.push(...facts(names("scales").length || !asked.jetson ? names("scales") : ["jetpack"]));
  const likes = [
    ...[...asked.about].filter(([shown]) => !unheard.includes(shown)).map(([, like]) => like),
    ...names("cards").map((card) => [card.toLowerCase()]),
    ...own.filter(({ number }) => number.includes(".")).map(({ number }) => [number]),
  ];
  const inTitle = (/** @type {any} */ { title }) => likes.filter((like) => holds(title, like)).length;
  if (likes.length > Math.min(1, best.length))
    lines.push(
      ...errorsToFind()
        .filter((one) => inTitle(one) && likes.every((like) => holds(one.text, like)))
        .sort((one, other) => inTitle(other) - inTitle(one))
        .slice(0, MOST_FOUND_ERRORS)
        .map(({ line }) => line),
    );
  const unknown = [...unheard, ...names("foreign")];
  if (unknown.length && (lines.length || names("foreign").length))
    tell(say("unknown", { words: unknown.join(", ") }));
  if (!lines.length) tell(say("nothing"));
  return {
    lines,
    step: step.length ? [a.id, b.id] : null,
    columns: found.map(({ id }) => id),
    rows: best,
    timed: asks("latency"),
  };
};
