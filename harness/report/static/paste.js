// ---- what is pasted is explained here (explain.js) and goes nowhere ----
// A search rests when it has held the page this long (ms), so that typing and scrolling go on.
const REST_AFTER = 12;
const MOST_PASTED = 4000000;
const rest = (after = 0) =>
  new Promise((done) => {
    setTimeout(done, after);
  });
/** @type {any} */
let knownErrors = null;
let pasted = 0;
// Returns the explanation, or null where another paste came meanwhile.
/** @type {(text: string, mine: number) => Promise<any>} */
const explained = async (text, mine) => {
  knownErrors = knownErrors || compiled(words.errors);
  const steps = explaining(knownErrors, text);
  let since = performance.now();
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (performance.now() - since <= REST_AFTER) continue;
    await rest();
    if (mine !== pasted) return null;
    since = performance.now();
  }
};
const HEADS = { failure: "Also in this text", warning: "A warning", harmless: "Not a failure" };
// The versions that have the error, and its rows, of which each says where it fails and since when it works.
/** @type {(id: string) => Content} */
const hereElement = (id) => {
  const versions = new Set(
    data.signatures[id]?.seen.map(({ where, basis }) => `${where.replace(".*", "")} (${basis})`),
  );
  const found = rows.flatMap((row) =>
    row.cells
      .filter(({ signature }) => signature === id)
      .slice(0, 1)
      .map((cell) =>
        para(
          bold(cellLink(cell.id, row.title)),
          ": ",
          row.sentences
            .filter(({ series }) => series === targetOf.get(cell.target)?.series)
            .map(({ text }) => `${text}.`),
        ),
      ),
  );
  return [
    versions.size && para(bold("Seen on "), listed([...versions], 5), "."),
    found.slice(0, 3),
    found.length > 3 && aside(`and ${found.length - 3} more: `, errorLink(id, id)),
  ];
};
/** @type {(found: any, first: boolean) => Element} */
const findingElement = ({ id, kind, message, where, others, said }, first) =>
  make(
    "div",
    { class: `found ${kind}`, "data-id": id },
    heading(
      first ? "The cause: " : `${HEADS[/** @type {"failure"} */ (kind)]}: `,
      `${cut(said.title, 200)} `,
      errorLink(id, id),
    ),
    make("pre", {}, cut(message, 600)),
    where && aside(`Line ${where}${others ? `, and ${counted(others, "more line")} like it` : ""}.`),
    para(cut(said.cause, 2000)),
    para(bold("What to do. "), said.advice),
    said.harmless && para(bold("Is it harmful? "), said.harmless),
    hereElement(id),
    aways(data.signatures[id]?.links || []),
  );
/** @type {(unknown: string[], version: string) => Content[]} */
const unknownReport = (unknown, version) =>
  reportElement("If it is of a failure, copy", [
    "An error text that no signature knows",
    "",
    `Version: ${version || "(TensorRT, platform)"}`,
    "GPU and driver: ",
    "Command: ",
    "Model, or the nodes around: ",
    "",
    ...unknown
      .flatMap((text) => text.split("\n"))
      .slice(0, 40)
      .map((line) => `    ${cut(line, 400)}`),
  ]);
/** @type {(explanation: any, text: string) => Content[]} */
const unknownElement = ({ findings, unknown: severe, version }, text) => {
  const unknown = severe.length || findings.length ? severe : [text.trim()];
  const causes = findings.some((/** @type {any} */ { kind }) => kind === "failure");
  if (!unknown.length)
    return causes
      ? []
      : [
          para(
            "All of this text is known, and nothing in it is a failure. Where a build fails, another line says so: " +
              "paste the whole log.",
          ),
        ];
  const title = causes
    ? `${counted(unknown.length, "further error line is", "further error lines are")} unknown here`
    : findings.length
      ? "No known failure in this text"
      : "Unknown here";
  return [
    make(
      "div",
      { class: "found unknown" },
      heading(title),
      para(
        causes
          ? "They may only follow from the cause above, or have one of their own."
          : "No signature knows this text.",
      ),
      para(
        mono("trt-compat explain FILE"),
        " knows more: the own messages of the tools around TensorRT, what the parts of a line say, and the nodes of " +
          "a fused layer.",
      ),
      unknownReport(unknown, version),
    ),
  ];
};
// The command reads why a layer is not in INT8 in a verbose log's tactics.
/** @type {(text: string) => Content[]} */
const tacticsElement = (text) =>
  !text.includes("Autotuning format combination")
    ? []
    : [
        make(
          "div",
          { class: "found harmless" },
          heading("A build log with the tactics that were tried"),
          para(
            "It also tells why a layer lost its precision or has no kernel, and with a second log what an upgrade " +
              "changed:",
          ),
          command("trt-compat explain build.log"),
          command("trt-compat explain old.log new.log"),
        ),
      ];
const NAMED = " names the node of each, the nodes of a fused layer, and what a version already has.";
// Returns whether there is an answer; of what may be a search, only a known text has one.
/** @type {(text: string, search: boolean) => Promise<boolean>} */
const explainText = async (text, search) => {
  pasted += 1;
  const [mine, place] = [pasted, byId("answer")];
  const explanation =
    text.trim() && (await explained(text.length <= MOST_PASTED ? text : text.slice(-MOST_PASTED), mine));
  if (mine !== pasted) return false;
  place.removeAttribute("aria-busy");
  place.hidden = !explanation || (search && !explanation.findings.length);
  if (place.hidden) {
    place.replaceChildren();
    return false;
  }
  const causes = explanation.findings.filter((/** @type {any} */ { kind }) => kind === "failure");
  place.replaceChildren(
    make("h2", {}, causes.length ? counted(causes.length, "known cause") : "No known cause"),
    ...explanation.findings.map((/** @type {any} */ one) => findingElement(one, one === causes[0])),
    ...nodes(explanation.findings.length && aside(mono("trt-compat explain FILE"), NAMED)),
    ...nodes([tacticsElement(text), unknownElement(explanation, text)]),
  );
  return true;
};
