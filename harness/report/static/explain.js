// ---- a pasted log -> what is known of it, as harness/judge has it ----
// logs.py, diagnosis.py, complaints.py and findings.py.
// All that is known arrives as data (report/page.py); the patterns count in code points, as Python's do.
/** @type {(found: any) => any} */
const compiled = (found) => {
  const regex = (/** @type {string} */ source) => new RegExp(source, "u");
  const regexes = (/** @type {{ [name: string]: string }} */ every) =>
    Object.fromEntries(Object.entries(every).map(([name, source]) => [name, regex(source)]));
  return {
    ...found,
    signatures: found.signatures.map((/** @type {any} */ each) => ({
      ...each,
      patterns: each.patterns.map((/** @type {string[]} */ [where, ...sources]) => [
        where,
        ...sources.map((source) => source && regex(source)),
      ]),
    })),
    owners: regex(found.owners),
    finders: regexes(found.finders),
    prefixes: found.prefixes.map(regex),
    lacking: found.lacking.map(regex),
  };
};
const ERRORS = new Set(["ERROR", "INTERNAL_ERROR"]);
const QUIET = new Set(["VERBOSE", "INFO"]);
/** @type {(text: string) => string[]} */
const textLines = (text) => text.split(/\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/);
/** @type {(text: string) => string} */
const firstLine = (text) => text.trim().split("\n", 1)[0];
/** @type {(text: string, sign: string) => number} */
const countOf = (text, sign) => text.split(sign).length - 1;

// ---- who said what ----
/** @type {Line} */
const prefixed = ({ prefixes, severities, finders, limits }, line) => {
  let severity = "",
    bare = true,
    text = finders.quoted.test(line) ? line.trim().replace(/,+$/, "").slice(1, -1) : line;
  for (let round = 0; round < limits.prefixes; round += 1) {
    let found = null,
      word = "";
    for (const prefix of prefixes) {
      const match = prefix.exec(text);
      word = (match?.groups?.severity || "").toUpperCase();
      if (match && match[0] && (!word || word in severities)) {
        found = [prefix, match[0].length];
        break;
      }
    }
    if (!found) break;
    severity = severity || severities[word] || "";
    // The mark of a quotation alone makes no message of a line.
    bare = bare && found[0] === prefixes[0];
    text = text.slice(found[1]);
  }
  return [severity, text.trimStart(), bare || !severity];
};
/** @type {(known: any, text: string) => string} */
const lackedName = ({ lacking }, text) => {
  for (const pattern of lacking) {
    const found = pattern.exec(text)?.groups;
    if (!found) continue;
    const owner = (found.owner || "").split(/[.:]+/).at(-1);
    const name = found.option || found.name.replace(/^k(?=[A-Z])/, "");
    return owner ? `${owner}.${name}` : name;
  }
  return "";
};
/** @type {(text: string) => any} */
const ofRecord = (text) => {
  const value = (/** @type {string} */ name) => {
    const match = new RegExp(`'${name}': (?:'((?:[^'\\\\]|\\\\.)*)'|"((?:[^"\\\\]|\\\\.)*)")`).exec(text);
    return (match?.[1] ?? match?.[2] ?? "").replace(/\\(.)/g, (_, letter) =>
      letter === "n" ? "\n" : letter,
    );
  };
  return { text: value("text"), code: value("code"), operator: value("operator") };
};
/** @type {(known: any, text: string) => any} */
const readLog = (known, log) => {
  const { finders, limits, codes, begin } = known;
  /** @type {any} */
  const said = {
    messages: [],
    order: [],
    parserErrors: [],
    native: [],
    errors: [],
    missing: [],
    at: new Map(),
    phase: "",
  };
  const forms = new Map(),
    quiet = new Set();
  const formOf = (/** @type {string} */ text) => text.replace(/0x[0-9a-fA-F]+|\d+/g, "#");
  /** @type {any} */
  let open = null;
  let operator = "";
  const refusal = (/** @type {string} */ text) => {
    operator = finders.parsing.exec(text)?.groups.operator || operator;
    const [refused, listed, plain] = [
      finders.refused.exec(text)?.groups,
      finders.listed.exec(text.trim())?.groups,
      finders.refusal.exec(text.trim())?.groups,
    ];
    const its = refused || listed || plain;
    if (its)
      said.parserErrors.push({
        text: its.text,
        code: refused ? codes[Number(its.code)] || "" : its.code,
        operator: refused ? operator : its.operator || its.by || "",
      });
  };
  const message = (
    /** @type {string} */ severity,
    /** @type {string} */ text,
    /** @type {number} */ number,
  ) => {
    const form = formOf(text);
    const many = forms.get(form) || 0;
    if (many || forms.size < limits.forms) forms.set(form, many + 1);
    if (many >= (QUIET.has(severity) && !finders.reason.test(text) ? 1 : limits.alike)) return;
    if (!said.at.has(text)) said.at.set(text, number);
    if (said.order.length >= limits.messages) {
      for (const [, gone] of said.order.splice(limits.messages / 2, limits.dropped)) said.at.delete(gone);
      for (const list of [said.messages, said.native]) list.splice(limits.messages / 2, limits.dropped);
    }
    said.order.push([severity, text]);
    if (severity !== "VERBOSE") said.messages.push([severity || "ERROR", text]);
    if (!severity) {
      // It may be the logger's, the parser's or the library's own: it is tried as each.
      said.messages.push(["WARNING", text]);
      said.native.push(text);
    }
    const alone = severity ? null : finders.alone.exec(text)?.groups;
    const name = (QUIET.has(severity) ? "" : lackedName(known, text)) || alone?.member || alone?.name || "";
    if (name) said.missing.push([name, text]);
    refusal(text);
  };
  const close = () => {
    const was = open;
    open = null;
    if (!was || !/\w/.test(was.text)) return;
    const { kind, severity, text, number } = was;
    if (kind === "message" || kind === "loose") {
      message(kind === "loose" ? "" : severity, text, number);
      return;
    }
    if (!said.at.has(text)) said.at.set(text, number);
    if (kind === "missing") said.missing.push([text.trim(), text]);
    else if (kind === "parser error") said.parserErrors.push(ofRecord(text));
    else if (kind === "native") said.native.push(text);
    else if (kind === "failed" || (kind === "end" && !text.startsWith("finished")))
      said.errors.push(kind === "end" ? text.replace(/^\S+ /, "") : text);
    else if (kind === "phase") said.phase = finders.failed_phase.exec(text)?.groups.phase || said.phase;
  };
  const goesOn = (/** @type {string} */ text, /** @type {string} */ line, /** @type {boolean} */ loose) =>
    loose
      ? finders.asks.test(text.slice(-300)) || line.startsWith("Error is:")
      : finders.follows.test(line) ||
        finders.announces.test(text.slice(-300)) ||
        text.slice(0, 80).includes(begin) ||
        (text.length < limits.joined && countOf(text, "(") > countOf(text, ")"));
  let number = 0;
  for (const raw of log.split(/\r\n|\n|\r/)) {
    number += 1;
    if (!raw && !open) continue;
    const plain = raw.replace(/\x1b\[[0-9;]*m/g, "");
    const line = plain.length > limits.line ? [...plain].slice(0, limits.line).join("") : plain;
    const form = formOf(line);
    // A verbose log says the same of each of a thousand tactics.
    if (quiet.has(form)) {
      close();
      continue;
    }
    const own = finders.own_entry.exec(line);
    const [severity, text, bare] = own ? ["", line.slice(own[0].length), false] : prefixed(known, line);
    if (bare && open && goesOn(open.text, line, open.kind === "loose")) {
      open.text += "\n" + line;
      continue;
    }
    close();
    open = { kind: own ? own.groups.kind : bare ? "loose" : "message", severity, text, number };
    if (
      open.kind === "message" &&
      QUIET.has(severity) &&
      quiet.size < limits.forms &&
      !finders.reason.test(text)
    )
      quiet.add(form);
  }
  close();
  if (!said.phase && said.messages.some((/** @type {string[]} */ [, text]) => finders.calibrates.test(text)))
    said.phase = "calibrate";
  return said;
};

// ---- the texts, by place ----
/** @type {(known: any, text: string) => string} */
const withoutNoise = ({ finders }, text) =>
  textLines(text)
    .filter((line) => line.trim() && !finders.noise.test(line))
    .join("\n")
    .trim();
/** @type {(node: string) => string} */
const endedName = (node) => node.replace(/\.\)?\.?\s*$/, "").trimEnd();
/** @type {(known: any, said: any) => any} */
const searched = (known, said) => {
  const { finders, names, owners, generic } = known;
  const { messages, parserErrors, errors, missing } = said;
  const clean = (/** @type {string} */ text) => withoutNoise(known, text);
  const told = (/** @type {string[]} */ texts) =>
    [...new Set(texts)].filter(Boolean).map((text) => ({ text, groups: {}, said: "" }));
  const severe = [
    ...messages
      .filter((/** @type {string[]} */ [severity]) => ERRORS.has(severity))
      .map((/** @type {string[]} */ [, text]) => text),
    ...parserErrors.map((/** @type {any} */ { text }) => text),
    errors.join("\n"),
  ]
    .map(clean)
    .filter(Boolean);
  const native = textLines(said.native.join("\n")).filter((line) => line.trim() && !finders.noise.test(line));
  const order = said.order.map((/** @type {string[]} */ [, text]) => text.trim());
  const unread = [...new Set([...severe, ...order])].flatMap((text) => {
    const found = finders.no_importer.exec(text)?.groups;
    return found ? [{ text: `${found.a || found.b}: No importer registered`, groups: {}, said: text }] : [];
  });
  const named = missing.flatMap((/** @type {string[]} */ [name, text]) => {
    const dot = name.lastIndexOf(".");
    const [owner, bare] = [name.slice(0, Math.max(dot, 0)), name.slice(dot + 1)];
    const row =
      (generic.includes(name) ? null : names[name]) ||
      ((owner ? owners.test(owner) : !generic.includes(bare)) ? names[bare] : null);
    return row
      ? [{ text: row[0], groups: { name: bare, since: row[1], now: row[2] }, said: text || name }]
      : [];
  });
  /** @type {any[]} */
  const reasons = [];
  /** @type {[number, string][]} */
  let waiting = [];
  // TensorRT 8 says twice in a row that a layer has no implementation: both lines have the same reasons.
  /** @type {{ node: string; of: [number, string][] }} */
  let last = { node: "", of: [] };
  order.forEach((/** @type {string} */ text, /** @type {number} */ at) => {
    const failed = finders.no_implementation.exec(text)?.groups;
    if (finders.reason.test(text)) waiting.push([at, text]);
    else if (failed) {
      const node = endedName(failed.node);
      if (waiting.length || node !== last.node) last = { node, of: waiting };
      for (const [then, reason] of [...last.of].reverse()) {
        if (at - then <= known.limits.near)
          reasons.push({ text: reason, groups: { node, reason }, said: text });
      }
      waiting = [];
    }
  });
  const positions = new Map();
  order.forEach((/** @type {string} */ text, /** @type {number} */ at) => {
    for (const one of [clean(text), text]) positions.set(one, [...(positions.get(one) || []), at]);
  });
  return {
    errors: told(severe),
    native: told(native),
    any: told([...order, ...native]),
    reasons,
    names: named,
    // What is put together of the parser's list stands in no log: its text alone does.
    parser: [
      ...new Map(
        parserErrors
          .map((/** @type {any} */ { operator, code, text }) => [
            [operator, code, clean(text)].filter(Boolean).join(": "),
            clean(text),
          ])
          .filter((/** @type {string[]} */ [text]) => text),
      ).entries(),
    ]
      .map(([text, own]) => ({ text, groups: {}, said: own }))
      .concat(unread),
    warnings: told(
      messages
        .filter((/** @type {string[]} */ [severity]) => !ERRORS.has(severity))
        .map((/** @type {string[]} */ [, text]) => text),
    ),
    missing_api: missing.map((/** @type {string[]} */ [name, text]) => ({
      text: name,
      groups: {},
      said: text,
    })),
    around: (/** @type {string} */ text) =>
      (positions.get(text) || [])
        .slice(0, known.limits.places)
        .flatMap((/** @type {number} */ at) =>
          order.slice(Math.max(0, at - known.limits.close), at + known.limits.close + 1),
        ),
  };
};
/** @type {(match: any) => { [name: string]: string }} */
const captured = (match) =>
  Object.fromEntries(Object.entries(match.groups || {}).filter(([, value]) => value !== undefined));
// Yields where a signature is found, pattern by pattern; null between two, where a long search may rest.
/** @type {HitsOf} */
const hitsOf = function* (known, signature, texts) {
  for (const [where, pattern, near, unless] of signature.patterns) {
    for (const { text, groups: given, said } of texts[where]) {
      const match = pattern.exec(text);
      if (!match) continue;
      let groups = { ...given, ...captured(match) };
      const around = near || unless ? texts.around(said || text) : [];
      if (unless && around.some((/** @type {string} */ one) => unless.test(one))) continue;
      if (near) {
        const close = around.map((/** @type {string} */ one) => near.exec(one)).find(Boolean);
        if (!close) continue;
        groups = { ...groups, ...captured(close) };
      }
      if (signature.standard_op) {
        const read = known.operators[groups.op || ""];
        if (!read) continue;
        groups = { ...groups, ...read };
      }
      yield { where, text, message: said || text, groups };
    }
    yield null;
  }
};

// ---- what is said of it ----
/** @type {(known: any, texts: string[]) => string} */
const versionIn = ({ finders }, texts) => {
  for (const text of texts) {
    const found = finders.version.exec(text)?.groups;
    if (found?.banner) {
      const [one, two] = found.banner.length > 4 ? [-4, -2] : [1, 2];
      return [found.banner.slice(0, one), found.banner.slice(one, two), found.banner.slice(two)]
        .map(Number)
        .join(".");
    }
    if (found) return found.said || found.library;
  }
  return "";
};
/** @type {(versions: string, version: string) => boolean} */
const fitsVersion = (versions, version) =>
  !version ||
  [...versions.matchAll(/([<>=]{1,2})([\d.]+)/g)].every(([, how, bound]) => {
    const other = bound.split(".").map(Number),
      own = version.split(".").map(Number).slice(0, other.length);
    const differs = other.findIndex((part, at) => part !== own[at]);
    const order = differs < 0 ? 0 : (own[differs] ?? -1) < other[differs] ? -1 : 1;
    return { ">=": order >= 0, "<": order < 0, "<=": order <= 0, ">": order > 0 }[how] ?? order === 0;
  });
/** @type {(said: any, text: string) => number} */
const lineOf = ({ at }, text) => {
  for (const part of [text.trim(), firstLine(text)]) {
    const line = at.get(part) || ([...at].find(([whole]) => whole.includes(part)) || ["", 0])[1];
    if (line) return line;
  }
  return 0;
};
// What the entry says, with the text's own words where it holds all that the sentence leaves blank.
/** @type {Finding} */
const findingOf = (said, signature, every) => {
  const [{ message, groups }] = every;
  const values = { op: signature.operator, ...groups };
  /** @type {any} */
  const general = data.signatures[signature.id];
  const filled = (/** @type {string} */ field) =>
    [...signature[field].matchAll(/\{(\w+)\}/g)].every(([, name]) => values[name] !== undefined)
      ? signature[field].replace(
          /\{(\w+)\}/g,
          (/** @type {any} */ _, /** @type {string} */ name) => values[name],
        )
      : general[field];
  const lines = new Set(every.map((/** @type {any} */ one) => lineOf(said, one.message)).filter(Boolean));
  return {
    id: signature.id,
    kind: signature.kind,
    where: lineOf(said, message),
    message: message.trim(),
    others: Math.max(lines.size - 1, 0),
    said: {
      title: filled("title"),
      cause: filled("cause"),
      advice: filled("advice"),
      harmless: filled("harmless"),
    },
  };
};
/** @type {Unknown} */
const unknownIn = (said, told, findings, { finders, limits }) => {
  let severe = said.order
    .filter(
      (/** @type {string[]} */ [severity, text]) =>
        (ERRORS.has(severity) || (!severity && finders.severe.test(text))) && !finders.context.test(text),
    )
    .map((/** @type {string[]} */ [, text]) => text);
  severe = [
    ...severe,
    ...said.parserErrors
      .map((/** @type {any} */ { text }) => text)
      .filter(
        (/** @type {string} */ text) => !severe.some((/** @type {string} */ one) => one.includes(text)),
      ),
  ];
  if (!findings.length && !severe.length)
    severe = said.order
      .filter((/** @type {string[]} */ [severity]) => severity !== "VERBOSE")
      .map((/** @type {string[]} */ [, text]) => text);
  const known = [...told].map((text) => text.trim()).filter(Boolean);
  const left = [...new Set(severe)]
    .filter(
      (text) =>
        !known.some((one) => text.includes(one) || one.includes(text.trim())) &&
        !(findings.length && finders.node_alone.test(text)),
    )
    .map((text) => text.trim());
  return [...new Set(left)].slice(0, limits.unknown);
};
// Explains a log: failures in the order in which the harness tries them, then warnings, then what is harmless.
// A text that an earlier signature explains is not told again. It yields where it may rest, and returns the
// explanation.
/** @type {Explaining} */
const explaining = function* (known, log, version = "") {
  const said = readLog(known, log);
  const texts = searched(known, said);
  version =
    version ||
    versionIn(
      known,
      said.order.map((/** @type {string[]} */ [, text]) => text),
    );
  /** @type {any[]} */
  const findings = [];
  const explained = new Set(),
    told = new Set();
  for (const signature of known.signatures) {
    if (
      (signature.phases.length && signature.kind !== "harmless" && !signature.phases.includes(said.phase)) ||
      !fitsVersion(signature.versions, version)
    )
      continue;
    const first = new Map(),
      own = new Set();
    for (const hit of hitsOf(known, signature, texts)) {
      if (!hit) {
        yield null;
        continue;
      }
      told.add(hit.text).add(hit.message);
      if (
        explained.has(hit.text) ||
        explained.has(hit.message) ||
        own.has(hit.message) ||
        own.size >= known.limits.others
      )
        continue;
      own.add(hit.text).add(hit.message);
      const name = hit.where === "names" ? hit.groups.name || "" : "";
      first.set(name, [...(first.get(name) || []), hit]);
    }
    for (const every of [...first.values()].slice(0, known.limits.same))
      findings.push(findingOf(said, signature, every));
    for (const { text, message } of [...first.values()].flat())
      for (const one of [text, message, ...text.split("\n"), ...message.split("\n")]) {
        explained.add(one);
        // The parser's list has the same line without its code.
        explained.add(one.replace(/^\[[0-9]{1,2}\] /, ""));
      }
  }
  return { findings, unknown: unknownIn(said, told, findings, known), version };
};
