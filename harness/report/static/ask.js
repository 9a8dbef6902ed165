// ---- a question -> its answer, as harness/report/asking.py has it ----
const lexicon = words.lexicon;
/** @type {Map<string, string>} */
const terms = new Map(Object.entries(lexicon.terms));
const TOKEN = /\d+(?:\.\d+)*(?:\.x)?|\p{L}+|\S/gu;
const INSIDE = /(?<=[\p{L}\d])[-_/](?=\p{L})|(?<=\p{L})[-_/](?=\d)/gu;
const [MOST_ROWS, MOST_COLUMNS, MOST_FOUND_ERRORS] = [3, 3, 2];
const NAMES = /** @type {{ [scale: string]: string }} */ ({
  tensorrt: "TensorRT",
  rtx: "TensorRT for RTX",
  ort: "ONNX Runtime",
  cuda: "CUDA",
  driver: "Driver",
  jetpack: "JetPack",
  l4t: "L4T",
  ngc: "NGC",
  opset: "Opset",
});
/** @type {(version: string) => number[]} */
const numbersOf = (version) => (version.match(/\d+/g) || []).map(Number);
// As Python compares tuples.
/** @type {(one: string, other: string) => number} */
const compared = (one, other) => {
  const [left, right] = [numbersOf(one), numbersOf(other)];
  const at = left.findIndex((part, index) => part !== right[index]);
  return at < 0 ? left.length - right.length : right[at] === undefined ? 1 : left[at] - right[at];
};
/** @type {(version: string, number: string) => boolean} */
const begins = (version, number) => `${version}.`.startsWith(`${number}.`);
/** @type {(names: string[]) => string} */
const sentence = (names) => names.join(", ").replace(/, (?=[^,]*$)/, " and ");
/** @type {<T>(items: T[]) => T[]} */
const once = (items) => [...new Map(items.map((one) => [JSON.stringify(one), one])).values()];
/** @type {(name: string, values?: any) => string} */
const say = (name, values = {}) =>
  lexicon.says[name].replace(
    /\{(\w+)\}/g,
    (/** @type {string} */ _, /** @type {string} */ key) => values[key],
  );
/** @type {(question: string) => any} */
const readQuestion = (question) => {
  const text = question.trim().split(/\s+/).join(" ").replace(/[-=]>/g, "→").replace(INSIDE, " ");
  const tokens = [...text.matchAll(TOKEN)].map((found) => ({
    text: found[0],
    start: found.index,
    end: found.index + found[0].length,
  }));
  /** @type {any} */
  const found = {
    versions: [],
    cards: [],
    operators: [],
    precisions: [],
    asks: [],
    about: [],
    jetson: false,
    turned: false,
  };
  /** @type {string | null} */
  let scale = null;
  const glued = (/** @type {number} */ at) =>
    at > 0 &&
    at < tokens.length &&
    tokens[at - 1].end === tokens[at].start &&
    /[\p{L}\d]$/u.test(tokens[at - 1].text) &&
    /^[\p{L}\d]/u.test(tokens[at].text);
  const take = (/** @type {string} */ meaning, /** @type {string} */ shown) => {
    const [kind, name] = [meaning.slice(0, meaning.indexOf(":")), meaning.slice(meaning.indexOf(":") + 1)];
    const was = scale;
    scale = null;
    if (kind === "scales") {
      scale = name;
      found.jetson ||= name === "jetpack" || name === "l4t";
    } else if (kind === "between" || kind === "stop") {
      scale = was;
      found.turned ||= shown.toLowerCase() === "than" && found.versions.length === 1;
    } else if (kind === "asks") found.asks.push(name);
    else if (kind === "card") {
      found.cards.push(name);
      found.jetson ||= lexicon.capabilities[lexicon.cards[name]].jetson;
    } else if (kind === "jetson") found.jetson = true;
    else if (kind === "newest") found.asks.push("newest");
    else if (kind === "column") {
      const column = lexicon.columns.find((/** @type {any} */ { id }) => id === name);
      found.jetson ||= column.jetpacks.length > 0;
      found.versions.push({ scale: column.scale, number: column.short });
    } else if (kind === "alike") found.about.push([shown, lexicon.alike[Number(name)]]);
    else {
      (kind === "op" ? found.operators : found.precisions).push(name);
      if (name !== "FP32")
        found.about.push([shown, kind === "op" ? [name.toLowerCase()] : lexicon.precisions[name].like]);
    }
  };
  const capability = (/** @type {string} */ number) => {
    const dotted = number.includes(".") ? number : `${number.slice(0, -1)}.${number.slice(-1)}`;
    const card = Object.keys(lexicon.cards).find((name) => lexicon.cards[name] === dotted);
    if (card) found.cards.push(card);
  };
  const number = (/** @type {number} */ at, /** @type {string} */ whole) => {
    const own = scale;
    scale = null;
    const plain = whole.replace(/\.x$/, "");
    const parts = plain.split(".");
    const asked = lexicon.roles.includes(at ? tokens[at - 1].text.toLowerCase() : "");
    if ((own === null && glued(at)) || glued(at + 1)) return;
    if (own === "sm") capability(plain);
    else if (own !== null) {
      if (own && (own !== "tensorrt" || Number(parts[0]) < 12))
        found.versions.push({ scale: own, number: plain });
    } else if (
      parts.length === 2 &&
      Number(parts[0]) >= 20 &&
      Number(parts[0]) <= 39 &&
      parts[1].length === 2
    )
      found.versions.push({ scale: "ngc", number: plain });
    else if (found.versions.length && asked && parts.length <= 4)
      found.versions.push({ scale: found.versions.at(-1).scale, number: plain });
    else if (Number(parts[0]) < 12 && (parts.length > 1 || whole !== plain || (asked && Number(plain) >= 7)))
      found.versions.push({ scale: "tensorrt", number: plain });
  };
  for (let at = 0; at < tokens.length;) {
    let [many, meaning] = [1, ""];
    for (let most = Math.min(6, tokens.length - at); most > 0 && !meaning; most -= 1) {
      const shown = text.slice(tokens[at].start, tokens[at + most - 1].end);
      const term = terms.get(shown) || terms.get(shown.toLowerCase());
      if (
        term &&
        !glued(at) &&
        (!glued(at + most) || (term.startsWith("scales:") && /^\d/.test(tokens[at + most].text)))
      )
        [many, meaning] = [most, term];
    }
    const word = tokens[at].text.toLowerCase();
    if (meaning) take(meaning, text.slice(tokens[at].start, tokens[at + many - 1].end));
    else if (/^\d/.test(word)) number(at, word);
    else if (/^\p{L}/u.test(word)) {
      if (word.length > 1 && !glued(at)) found.about.push([word, [word]]);
      scale = null;
    }
    at += many;
  }
  if (!found.about.length && found.precisions.includes("FP32")) found.about.push(["FP32", ["fp32"]]);
  return found;
};
/** @type {(column: any, version: any) => boolean} */
const isOf = (column, { scale, number }) => {
  if (scale === "driver") return Boolean(column.driver) && compared(column.driver, number) <= 0;
  if (scale === "jetpack" || scale === "l4t") {
    const release =
      scale === "jetpack"
        ? number
        : lexicon.l4t[Object.keys(lexicon.l4t).find((l4t) => begins(number, l4t)) || ""] || "-";
    return column.jetpacks.some((/** @type {string} */ one) => begins(one, release) || begins(release, one));
  }
  if (scale === "ngc") return column.image.includes(`:${number}-`);
  if (scale === "cuda") return begins(column.cuda, number);
  return (
    column.scale === scale &&
    (begins(column.version, number) || column.short === number || begins(number, column.version))
  );
};
// The newest of the measured columns, else the newest.
/** @type {(fits: any[]) => any} */
const bestOf = (fits) =>
  fits.reduce((one, other) =>
    (Number(other.measured) - Number(one.measured) || compared(other.version, one.version)) > 0 ? other : one,
  );
/** @type {(time: any) => string} */
const timeOf = (time) => {
  const micros = (/** @type {number} */ value) => String(Number((value * 1000).toPrecision(3)));
  return `${micros(time.median)} µs${time.low && time.high ? ` (${micros(time.low)} to ${micros(time.high)})` : ""}`;
};
// The words of a text in small letters, with a blank before and after each.
/** @type {(text: string) => string} */
const asWords = (text) => ` ${(text.toLowerCase().match(/[\p{L}\d]+/gu) || []).join(" ")} `;
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
// How near to a row's title a word stands in it, 0 for nowhere.
/** @type {(row: Row, word: string) => number} */
const pointsOf = (row, word) => {
  const singular = word.length > 3 ? word.replace(/s$/, "") : word;
  const begun = asWords(singular).slice(0, -1);
  const at = placesOf(row).findIndex((text) => text.includes(begun));
  return at < 0 ? 0 : 3 - at;
};
/** @type {(text: string, like: string[]) => boolean} */
const holds = (text, like) => like.some((word) => asWords(text).includes(asWords(word).slice(0, -1)));
/** @type {(one: any) => string} */
const errorText = ({ title, cause, advice, texts }) =>
  [title, cause, advice, ...texts.map((/** @type {any} */ { text }) => text)].join(" ");
/** @type {string[]} */
let errorTextsMade = [];
const errorTexts = () => {
  if (!errorTextsMade.length)
    errorTextsMade = Object.values(data.signatures).map(
      ({ title, cause, advice }) => `${title} ${cause} ${advice}`,
    );
  return errorTextsMade;
};
/** @type {(question: string) => Answer} */
const answerTo = (question) => {
  const asked = readQuestion(question);
  /** @type {any[]} */
  const columns = lexicon.columns;
  const asks = (/** @type {string} */ what) => asked.asks.includes(what);
  const product = (/** @type {any} */ { scale }) => ["tensorrt", "rtx", "ort"].includes(scale);
  let own = asked.versions.filter(product);
  const fitting = (/** @type {any} */ version, series = "") => {
    let fits = columns.filter((column) => isOf(column, version));
    if (asked.jetson && version.scale === "tensorrt") fits = fits.filter(({ jetpacks }) => jetpacks.length);
    return fits.filter((column) => column.series === (series || fits[0].series));
  };
  let versions = once(
    own.length
      ? own
      : asked.versions.filter((/** @type {any} */ { scale }) => ["jetpack", "l4t", "ngc"].includes(scale)),
  );
  if (asks("newest") && !versions.length)
    own = versions = [
      {
        scale: "tensorrt",
        number: columns.filter(({ series }) => series === "TensorRT").at(-1)?.short || "",
      },
    ];
  /** @type {any[]} */
  let found = [];
  /** @type {any[] | null} */
  let step = null;
  const [first] = versions;
  const alone =
    first && !asked.about.length && !asked.cards.length && !asked.asks.length && !first.number.includes(".");
  if (versions.length > 1 && !asks("plan")) {
    for (const series of new Set(columns.map((column) => column.series))) {
      const ends = versions.slice(0, 2).map((/** @type {any} */ version) => fitting(version, series));
      if (!step && ends.every(({ length }) => length))
        step = asked.turned ? ends.map(bestOf).reverse() : ends.map(bestOf);
    }
  } else if (versions.length === 1 && product(first) && (alone || asks("step"))) {
    const fits = fitting(first);
    const earlier = columns.filter(
      (column) =>
        fits.length && column.series === fits[0].series && compared(column.version, first.number) < 0,
    );
    if (earlier.length) step = [bestOf(earlier), bestOf(fits)];
  }
  found = step
    ? [...step]
    : versions.flatMap((/** @type {any} */ version) =>
        fitting(version).slice(version.number.includes(".") ? -1 : 0),
      );
  /** @type {AnswerLine[]} */
  const lines = [];
  const tell = (/** @type {string} */ text, href = "") => lines.push({ text, href });

  if (asks("plan") && (own.length > 1 || asks("built"))) {
    if (own.length > 1) {
      const [[old, now], [one, other]] = [own, own.map((/** @type {any} */ { number }) => numbersOf(number))];
      const order = compared(old.number, now.number);
      const far =
        compared(old.number, "8.6") < 0 ||
        old.scale === "rtx" ||
        other[0] - one[0] > 2 ||
        (one[0] === 8 && other[0] === 11);
      const [a, b] = own.map((/** @type {any} */ { scale, number }) => `${NAMES[scale]} ${number}`);
      tell(
        say(order === 0 ? "plan_same" : order > 0 ? "plan_earlier" : far ? "plan_far" : "plan_later", {
          a,
          b,
        }),
        "error=foreign-engine",
      );
      if (one[0] !== other[0]) tell(say("plan_major"));
    }
    tell(say("plan_any"), "error=foreign-engine");
  }
  const likeOf = new Map(asked.about);
  const about = [...likeOf];
  const held = new Set();
  const operators = asked.operators.map((/** @type {string} */ name) => name.toLowerCase());
  const needed = about.filter(([, like]) =>
    like.some((/** @type {string} */ word) => operators.includes(word)),
  );
  const scored = (about.length ? rows : []).map((row) => {
    const points = about.map(([shown, like]) => [
      shown,
      Math.max(...like.map((/** @type {string} */ word) => pointsOf(row, word))),
    ]);
    const hits = points.filter(([, each]) => each);
    hits.forEach(([shown]) => held.add(shown));
    const isKnown = found.some(({ id }) => row.cells[/** @type {Target} */ (targetOf.get(id)).index].basis);
    return {
      row,
      hits: needed.every(([shown]) => hits.some(([hit]) => hit === shown)) ? hits.length : 0,
      order: [
        points.reduce((sum, [, each]) => sum - each, 0),
        Number(!isKnown),
        Number(row.role !== "reproducer"),
        row.index,
      ],
    };
  });
  const most = Math.max(0, ...scored.map(({ hits }) => hits));
  const best = scored
    .filter(({ hits }) => most && hits === most)
    .sort((one, other) => {
      const at = one.order.findIndex((part, index) => part !== other.order[index]);
      return one.order[at] - other.order[at];
    })
    .map(({ row }) => row);
  const unheard = about
    .map(([shown]) => shown)
    .filter(
      (shown) =>
        !held.has(shown) &&
        !needed.some(([one]) => one === shown) &&
        !errorTexts().some((text) => holds(text, likeOf.get(shown))),
    );

  const measured = columns.filter((column) => column.series === "TensorRT" && column.measured);
  const pair = step || (measured.length > 1 ? [measured[0], measured.at(-1)] : null);
  if (asks("latency") && pair) {
    const timed = (about.length ? best : rows).flatMap((row) => {
      const [old, now] = pair.map(({ id }) => row.cells[/** @type {Target} */ (targetOf.get(id)).index]);
      return old.latency_ms && now.latency_ms
        ? [{ row, old: old.latency_ms, now: now.latency_ms, gpu: now.gpu ? now.gpu[1] : "CPU", id: now.id }]
        : [];
    });
    const [a, b] = pair.map(({ name }) => name);
    timed
      .sort((one, other) => other.now.median / other.old.median - one.now.median / one.old.median)
      .slice(0, MOST_ROWS)
      .forEach(({ row, old, now, gpu, id }) =>
        tell(say("timed", { title: row.title, old: timeOf(old), new: timeOf(now), a, b, gpu }), id),
      );
    tell(timed.length ? say("one_layer") : say("not_timed", { a, b }));
  }
  if (step && !asks("latency"))
    tell(
      `${say("step", { a: step[0].name, b: step[1].name })} ${headlineBetween(step[0].id, step[1].id)}`,
      "step",
    );
  for (const version of once(own)) {
    if (fitting(version).length) continue;
    const every = columns
      .filter(({ scale, jetpacks }) => scale === version.scale && jetpacks.length > 0 === asked.jetson)
      .sort((one, other) => compared(one.version, other.version));
    const near = [
      ...every.filter((column) => compared(column.version, version.number) < 0).slice(-1),
      ...every.filter((column) => compared(column.version, version.number) > 0).slice(0, 1),
    ];
    tell(
      say("no_column", {
        asked: `${NAMES[version.scale]} ${version.number}${asked.jetson ? " on Jetson" : ""}`,
        nearest: sentence(near.map(({ name }) => name)),
      }),
      "targets",
    );
    const release = lexicon.releases[version.number.split(".").slice(0, 2).join(".")];
    if (version.scale === "tensorrt" && release) tell(release);
    if (!step) found.push(...near);
  }
  for (const card of once(asked.cards)) {
    const capability = lexicon.cards[card];
    const takes = lexicon.capabilities[capability];
    const kinds = [takes.architecture, `SM ${capability}`].filter((one) => one && one !== card);
    for (const { id, scale, short } of found) {
      const form = takes.columns.includes(id) ? "takes_card" : "no_card";
      if (["tensorrt", "rtx"].includes(scale) && !(step && form === "takes_card"))
        tell(say(form, { version: short, card, capability }), `target-${id}`);
    }
    for (const precision of once(asked.precisions)) {
      const { lowest, lacks } = lexicon.precisions[precision];
      if (lowest)
        tell(
          say(
            lacks.includes(capability) || compared(capability, lowest) < 0 ? "no_precision" : "has_precision",
            { card, capability, precision, lowest },
          ),
        );
    }
    tell(`${card} (${kinds.join(", ")}): ${takes.says.join(" ")}`, "targets");
  }
  for (const operator of once(asked.operators)) {
    const first = lexicon.operators[operator];
    const since = first.match(/\d+\.\d+/);
    for (const { scale, short, version } of found)
      if (scale === "tensorrt")
        tell(
          say(since && compared(since[0], version) <= 0 ? "is_read" : "not_read", {
            version: short,
            operator,
          }),
          "operators",
        );
    tell(`${operator}: TensorRT reads it ${first}.`, "operators");
    if (!rows.some((row) => row.graph.nodes.some(({ op }) => op === operator)))
      tell(say("no_row", { operator }));
  }
  if (asks("operators") && !asked.operators.length) {
    const own = found.find(({ id }) => lexicon.told[`operators ${id}`] !== undefined);
    tell(
      own
        ? `Of ONNX's operators ${own.name} does not read: ${lexicon.told[`operators ${own.id}`]}.`
        : "Operators by version:",
      "operators",
    );
  }
  const leads = /** @type {{ [ask: string]: string }} */ ({
    exists: "targets",
    measured: "targets",
    data: "data",
    report: "",
    run: "",
  });
  for (const ask of once(asked.asks)) if (ask in leads) tell(lexicon.told[ask], leads[ask]);
  const types = once(asked.precisions)
    .map((name) => ({ text: lexicon.precisions[name].says, href: "" }))
    .filter(({ text }) => text);
  const wanted = new Set(found.map(({ series }) => series));
  const firsts = new Map();
  for (const row of best) if (row.sentences.length && !firsts.has(row.case)) firsts.set(row.case, row);
  const ofRows = asks("latency")
    ? []
    : [...firsts.values()].slice(0, MOST_ROWS).flatMap((row, at) => {
        const told =
          row.sentences.find((/** @type {any} */ { series }) => wanted.has(series)) || row.sentences[0];
        const line = {
          text: say("row", { title: row.title, sentence: `${told.series} ${told.text}` }),
          href: row.cells.find((/** @type {Cell} */ { basis }) => basis).id,
        };
        return at ? [line] : [line, { text: row.case.summary, href: "" }];
      });
  lines.push(...(about.length <= asked.precisions.length ? [...types, ...ofRows] : [...ofRows, ...types]));
  const facts =
    step || !own.length
      ? []
      : found.filter((column) =>
          own.some((/** @type {any} */ version) => version.number.includes(".") && isOf(column, version)),
        );
  facts
    .slice(0, lines.length ? 1 : MOST_COLUMNS)
    .forEach(({ name, says, id }) => tell(`${name}: ${says}`, `target-${id}`));
  for (const version of once(asked.versions)) {
    if (
      product(version) ||
      !(version.scale in NAMES) ||
      (step && ["jetpack", "ngc", "l4t"].includes(version.scale))
    )
      continue;
    const what = `${NAMES[version.scale]} ${version.number}`;
    const fits = columns.filter((column) => isOf(column, version));
    if (version.scale === "opset") {
      const first = lexicon.opsets.find((/** @type {number[]} */ [opset]) => opset >= Number(version.number));
      tell(
        say("columns_with", {
          what,
          columns: first ? `TensorRT ${first[1]} and later, by NVIDIA's operator tables` : "no table yet",
        }),
        "operators",
      );
    } else if (!fits.length) tell(say("no_columns_with", { what }), "targets");
    else if (fits.length <= MOST_COLUMNS)
      fits.forEach(({ name, says, id }) => tell(`${what}: ${name}, ${says}`, `target-${id}`));
    else
      tell(
        say("columns_with", { what, columns: sentence([...new Set(fits.map(({ name }) => name))]) }),
        "targets",
      );
  }
  const likes = [
    ...asked.about
      .filter((/** @type {any[]} */ [shown]) => !unheard.includes(shown))
      .map((/** @type {any[]} */ [, like]) => like),
    ...asked.cards.map((/** @type {string} */ card) => [card.toLowerCase()]),
    ...own
      .filter((/** @type {any} */ { number }) => number.includes("."))
      .map((/** @type {any} */ { number }) => [number]),
  ];
  const heldIn = (/** @type {string} */ text) => likes.filter((like) => holds(text, like)).length;
  if (likes.length > Math.min(1, best.length))
    Object.entries(data.signatures)
      .filter(
        ([, one]) =>
          likes.every((like) => holds(errorText(one), like)) && likes.some((like) => holds(one.title, like)),
      )
      .sort(([, one], [, other]) => heldIn(other.title) - heldIn(one.title))
      .slice(0, MOST_FOUND_ERRORS)
      .forEach(([id, { title, advice }]) => tell(`Error: ${title}. ${advice}`, `error=${id}`));
  if (unheard.length && lines.length) tell(say("unknown", { words: unheard.join(", ") }));
  if (!lines.length) tell(say("nothing"));
  return {
    lines,
    step: step && /** @type {[string, string]} */ (step.map(({ id }) => id)),
    columns: found.map(({ id }) => id),
    rows: best,
    timed: asks("latency"),
  };
};
