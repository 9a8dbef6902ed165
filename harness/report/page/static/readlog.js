// ---- a pasted log -> what was said where, as the harness records it when it runs a cell itself --------------------
/** @type {{ [word: string]: string }} */
const SEVERITY = { V: "VERBOSE", D: "VERBOSE", I: "INFO", W: "WARNING", E: "ERROR", F: "INTERNAL_ERROR", C: "ERROR", X: "ERROR", "!": "ERROR",
  VERBOSE: "VERBOSE", DEBUG: "VERBOSE", INFO: "INFO", WARNING: "WARNING", WARN: "WARNING", ERROR: "ERROR", CRITICAL: "ERROR", FATAL: "INTERNAL_ERROR",
  "INTERNAL ERROR": "INTERNAL_ERROR", INTERNAL_ERROR: "INTERNAL_ERROR" };
// What may stand before a message, one after the other; a captured word is the severity. Of TensorRT's loggers for C++ and
// Python, trtexec, Polygraphy, ONNX Runtime, Python's logging, and whoever quotes a log.
const PREFIXES = [
  /^[ \t]*[>*•–-][ \t]+/,
  /^[ \t]*\d{1,7}:(?=\[)/,
  /^[ \t]*[\w.-]{1,40} +\|(?= )/,
  /^[ \t]*\[\d\d\/\d\d\/\d{4}-\d\d:\d\d:\d\d\]/,
  /^[ \t]*\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?(?: +(VERBOSE|DEBUG|INFO|WARNING|ERROR|INTERNAL ERROR))?[ \t]*\]?/,
  /^[ \t]*\[([VIWEF]):onnxruntime:[^\]]{0,200}\]/,
  /^[ \t]*\[(?:TRT|TensorRT|TensorRT-RTX|TRT-LLM|trtexec)\]:?/,
  /^[ \t]*\[([VDIWEFCX!])\]/,
  /^[ \t]*\[(VERBOSE|DEBUG|INFO|WARNING|WARN|ERROR|INTERNAL_ERROR|CRITICAL|FATAL)\]/,
  /^[ \t]*(VERBOSE|DEBUG|INFO|WARNING|ERROR|INTERNAL ERROR|CRITICAL):(?:[\w.]{1,40}:)?(?=\s)/,
];
// Of an entry of this project's own logs: what is no message of the engine's.
const OWN_ENTRY = /^\[(stamps|seen|left out|phase|end|missing|parser error|failed|native|harness|inspector|unavailable|agent fault|calibration cache)\] ?/;
// How ErrorCode of NvOnnxParser.h numbers them: a log has the number, the parser's list the name.
const CODES = ["SUCCESS", "INTERNAL_ERROR", "MEM_ALLOC_FAILED", "MODEL_DESERIALIZE_FAILED", "INVALID_VALUE", "INVALID_GRAPH", "INVALID_NODE", "UNSUPPORTED_GRAPH",
  "UNSUPPORTED_NODE", "UNSUPPORTED_NODE_ATTR", "UNSUPPORTED_NODE_INPUT", "UNSUPPORTED_NODE_DATATYPE", "UNSUPPORTED_NODE_DYNAMIC", "UNSUPPORTED_NODE_SHAPE", "REFIT_FAILED"];
const REFUSED = /In function \w+:\n?\s*\[(\d{1,2})\] ([^]*)/;
const LISTED = /^In node -?\d+(?: with name: (.*?) and operator: (\S*))? \(\w+\): ([A-Z_]+): ([^]*)/;
const REFUSAL = /^([A-Z]\w{0,60}): ([A-Z]+(?:_[A-Z]+)+): ([^]*)/;
const NODE_NAME = /(?:^|\n)(?:Node name: (.+)|name: "([^"]*)")/;
// What Python and a C++ compiler say of a name that the version lacks.
const NO_ATTRIBUTE = /(?:type object |module )?'([\w.]{1,120})'(?: object)? has no attribute '(\w{1,80})'/;
const NO_MEMBER = /['‘](\w{1,80})['’] is not a member of ['‘](?:[\w:]{0,60}::)?(\w{1,80})['’]/;
const BARE_NAME = /^(?:(?:tensorrt|trt)\.(\w[\w.]{0,80})|([A-Z]\w{0,60}\.\w{1,60}|I[A-Z]\w{0,60}))$/;

const MOST_PREFIXES = 8;

/** @type {(line: string) => { severity: string; text: string; bare: boolean }} */
const prefixed = (line) => {
  const quoted = /^\s*(["'`])(?!\1)[^]+\1,?\s*$/.test(line);
  let severity = "", text = quoted ? line.trim().replace(/,$/, "").slice(1, -1) : line, bare = true;
  for (let round = 0, found = true; found && round < MOST_PREFIXES; round += 1) {
    found = false;
    for (const prefix of PREFIXES) {
      const match = prefix.exec(text);
      if (!match || !match[0]) continue;
      severity = severity || SEVERITY[match[1]] || "";
      // A mark of a quotation alone makes no message of the line.
      if (prefix !== PREFIXES[0]) bare = false;
      text = text.slice(match[0].length);
      found = true;
    }
  }
  return { severity, text: text.trimStart(), bare: bare || !severity };
};
/** @type {(line: string) => { severity: string; text: string } | null} */
const ofJson = (line) => {
  const text = line.trim().replace(/,$/, "");
  if (text[0] !== "{" || !text.endsWith("}")) return null;
  try {
    const found = JSON.parse(text);
    const said = found.text ?? found.message ?? found.msg ?? found.log;
    const severity = SEVERITY[String(found.severity ?? found.level ?? "").toUpperCase()];
    return typeof said === "string" ? { severity: severity || prefixed(said).severity, text: prefixed(said).text } : null;
  } catch { return null; }
};
// A message goes on where its brackets are open, where it announces more, or where the next line is set in.
/** @type {(text: string, line: string) => boolean} */
const goesOn = (text, line) => /^\s|^\[\d{1,2}\] /.test(line) || /:$|--- Begin node ---|\($/.test(text.slice(-200)) || /Begin node ---/.test(text.slice(0, 80))
  || text.length < 4000 && (text.match(/\(/g) || []).length > (text.match(/\)/g) || []).length;
/** @type {(text: string) => string | null} */
const lackedName = (text) => {
  const attribute = NO_ATTRIBUTE.exec(text);
  if (attribute) {
    const owner = attribute[1].split(".").at(-1) || "";
    return /^[A-Z]/.test(owner) ? `${owner}.${attribute[2]}` : attribute[2];
  }
  const member = NO_MEMBER.exec(text);
  return member ? `${member[2]}.${member[1].replace(/^k(?=[A-Z])/, "")}` : null;
};
// A name that stands alone on its line is asked about.
/** @type {(text: string) => string | null} */
const nameAlone = (text) => {
  const alone = BARE_NAME.exec(text.trim());
  return alone ? alone[1] || alone[2] : null;
};
/** @type {(text: string) => ParserError} */
const ofRecord = (text) => {
  const field = (/** @type {string} */ name) => {
    const match = new RegExp(`'${name}': (?:'((?:[^'\\\\]|\\\\.)*)'|"((?:[^"\\\\]|\\\\.)*)")`).exec(text);
    return (match?.[1] ?? match?.[2] ?? "").replace(/\\(.)/g, (_, letter) => (letter === "n" ? "\n" : letter));
  };
  return { text: field("text"), code: field("code"), node: field("node"), operator: field("operator") };
};
// Puts one message where the harness has it: the logger's, and of a refusal of the parser's also into its list of errors.
class LogReader {
  constructor() {
    /** @type {Said} */
    this.said = { messages: [], parserErrors: [], native: "", errors: [], missing: [], failedPhase: "", verbose: [], loose: [], at: new Map() };
    this.number = this.began = 0;
    /** @type {string[]} */
    this.native = [];
    this.operator = this.node = "";
    /** @type {{ severity: string; text: string; kind: string } | null} */
    this.open = null;
  }
  /** @type {(line: string) => void} */
  line(line) {
    this.number += 1;
    const own = OWN_ENTRY.exec(line);
    const json = own ? null : ofJson(line);
    const { severity, text, bare } = own ? { severity: "", text: line.slice(own[0].length), bare: false } : json ? { ...json, bare: !json.severity } : prefixed(line);
    if (bare && this.open && this.open.kind !== "loose" && goesOn(this.open.text, line)) {
      this.open.text += "\n" + line;
      return;
    }
    this.close();
    this.began = this.number;
    this.open = { severity, text, kind: own ? own[1] : bare ? "loose" : "message" };
  }
  close() {
    const { open } = this;
    this.open = null;
    if (!open || !/\w/.test(open.text)) return;
    const { kind, severity, text } = open;
    if (!this.said.at.has(text)) this.said.at.set(text, this.began);
    if (kind === "message") this.message(severity, text);
    else if (kind === "loose") this.loose(text);
    else if (kind === "missing") this.said.missing.push(text.trim());
    else if (kind === "parser error") this.said.parserErrors.push(ofRecord(text));
    else if (kind === "native") this.native.push(text);
    else if (kind === "failed" || kind === "end" && !text.startsWith("finished")) this.said.errors.push(kind === "end" ? text.replace(/^\S+ /, "") : text);
    else if (kind === "phase" && / failed$| cut short$/.test(text)) this.said.failedPhase = text.split(" ")[0];
  }
  /** @type {(severity: string, text: string) => void} */
  message(severity, text) {
    // The harness keeps what is logged at VERBOSE in the log alone.
    if (severity === "VERBOSE") this.said.verbose.push(text);
    else this.said.messages.push([severity, text]);
    const missing = ERRORS.has(severity) ? lackedName(text) : null;
    if (missing) this.said.missing.push(missing);
    this.refusal(text);
  }
  // A line without a severity may be the logger's, the parser's or the library's own: it is tried as each.
  /** @type {(text: string) => void} */
  loose(text) {
    this.said.loose.push(text);
    this.native.push(text);
    this.said.messages.push(["ERROR", text], ["WARNING", text]);
    const missing = lackedName(text) || nameAlone(text);
    if (missing) this.said.missing.push(missing);
    this.refusal(text);
  }
  /** @type {(text: string) => void} */
  refusal(text) {
    const parsing = /While parsing node number \d+ \[([^\s\]]+)/.exec(text);
    if (parsing) [this.operator, this.node] = [parsing[1], ""];
    const named = this.operator && /Begin node ---/.test(text) ? NODE_NAME.exec(text) : null;
    if (named) this.node = named[1] ?? named[2];
    const [refused, listed, plain] = [REFUSED.exec(text), LISTED.exec(text.trim()), REFUSAL.exec(text.trim())];
    if (refused) this.said.parserErrors.push({ text: refused[2], code: CODES[Number(refused[1])] || "", operator: this.operator, node: this.node });
    else if (listed) this.said.parserErrors.push({ text: listed[4], code: listed[3], operator: listed[2] || "", node: listed[1] || "" });
    else if (plain) this.said.parserErrors.push({ text: plain[3], code: plain[2], operator: plain[1], node: "" });
  }
  /** @type {() => Said} */
  end() {
    this.close();
    this.said.native = this.native.join("\n");
    if (!this.said.failedPhase && this.said.messages.some(([, text]) => /[Cc]alibrat/.test(text))) this.said.failedPhase = "calibrate";
    return this.said;
  }
}
/** @type {(text: string) => Said} */
const readLog = (text) => {
  const reader = new LogReader();
  for (const line of text.replace(/\x1b\[[0-9;]*m/g, "").split(/\r\n|\n|\r/)) reader.line(line);
  return reader.end();
};
