// ---- layer tables, alone or aligned with another column ---------------------------------------------------------
/** @type {(heading: string) => string | null} */
const kindOf = (heading) => (heading.startsWith("#") ? "num" : ["Severity", "Precision", "Code"].includes(heading) ? "fix" : ["Inputs", "Weights", "Outputs"].includes(heading) ? "short" : null);
/** @type {<T extends unknown[]>(headings: string[], lines: T[], rowClass?: (line: T) => string | null) => Element} */
const table = (headings, lines, rowClass) => make("table", {},
  make("thead", {}, make("tr", {}, headings.map((text) => make("th", { scope: "col", class: kindOf(text) }, text.replace("#", ""))))),
  make("tbody", {}, lines.map((line) => make("tr", { class: rowClass ? rowClass(line) : null },
    line.map((entry, index) => make("td", { class: kindOf(headings[index]) }, entry instanceof Node ? entry : String(entry ?? "")))))));
/** @type {(uses: Use[]) => Element} */
const joined = (uses) => make("span", {}, (uses || []).map(([, text], index) => (index ? [make("br"), text] : [text])).flat());
/** @type {(layer: Layer) => Element} */
const layerTold = ({ name, type, tactic, nodes }) => make("span", {}, name, make("br"),
  make("span", { class: "quiet" }, [type, nodes.length ? "from " + nodes.join(" + ") : "", tactic].filter(Boolean).join("; ")));
/** @type {(cell: Cell) => Content[]} */
const layerTable = (cell) => {
  if (!cell.layers) return [];
  const withTime = cell.layers.some((layer) => layer.time !== null);
  const headings = ["Layer", "Precision", "Inputs", "Weights", "Outputs", ...(withTime ? ["#Time"] : [])];
  return [region("Layers", table(headings, cell.layers.map((layer) => [
    layerTold(layer), layer.precision, joined(layer.inputs), joined(layer.weights), joined(layer.outputs), ...(withTime ? [ms(layer.time)] : [])]))),
  withTime ? make("p", { class: "quiet" }, "Layer times are from a profiled run; with the events between layers they add up to more than the latency.") : null,
  cell.unparsedLayers ? make("p", { class: "quiet" }, `${cell.unparsedLayers} more layers could not be read.`) : null,
  cell.layerSource ? make("p", { class: "quiet" }, `Read from: ${cell.layerSource}.`) : null];
};
// Pairs layers that came from the same ONNX nodes, then those that share some of them (of one type before others, then
// the most), then, of those that came from none, the ones of one type in order. What has no partner is paired with null.
/** @type {(left: Layer[], right: Layer[]) => [left: Layer | null, right: Layer | null][]} */
const alignLayers = (left, right) => {
  const partner = new Map();
  const taken = new Set();
  const pair = (/** @type {number} */ one, /** @type {number} */ two) => { partner.set(one, two); taken.add(two); };
  const nodes = (/** @type {Layer} */ layer) => [...layer.nodes].sort().join("\n");
  const free = (/** @type {(layer: Layer) => boolean} */ test) => right.findIndex((layer, index) => !taken.has(index) && test(layer));
  for (const strict of [true, false]) {
    left.forEach((layer, one) => {
      if (partner.has(one) || !layer.nodes.length) return;
      const two = free((other) => nodes(other) === nodes(layer) && (!strict || other.type === layer.type));
      if (two >= 0) pair(one, two);
    });
  }
  left.forEach((layer, one) => {
    if (partner.has(one) || !layer.nodes.length) return;
    let [best, most] = [-1, 0];
    right.forEach((other, two) => {
      const shared = layer.nodes.filter((node) => other.nodes.includes(node)).length;
      const score = shared / (layer.nodes.length + other.nodes.length - shared || 1) + (shared && other.type === layer.type ? 1 : 0);
      if (!taken.has(two) && score > most) [best, most] = [two, score];
    });
    if (best >= 0) pair(one, best);
  });
  left.forEach((layer, one) => {
    if (partner.has(one) || layer.nodes.length) return;
    const two = free((other) => !other.nodes.length && other.type === layer.type);
    if (two >= 0) pair(one, two);
  });
  /** @type {[Layer | null, Layer | null][]} */
  const made = left.map((layer, one) => [layer, partner.has(one) ? right[partner.get(one)] : null]);
  right.forEach((layer, two) => { if (!taken.has(two)) made.push([null, layer]); });
  return made;
};
/** @type {(one: Cell, two: Cell, names: [string, string], sameStack: boolean) => Content[]} */
const alignedTable = (one, two, names, sameStack) => {
  const alone = (/** @type {string} */ name) => make("em", { class: "alone" }, `no such layer on ${name}`);
  const lines = alignLayers(one.layers || [], two.layers || []).map(([left, right]) => [
    left ? layerTold(left) : alone(names[0]), left ? left.precision : "", right ? layerTold(right) : alone(names[1]), right ? right.precision : "",
    left && right && typeof left.time === "number" && typeof right.time === "number" ? `${ms(left.time)}${sameStack ? " → " : " | "}${ms(right.time)}` : ""]);
  const headings = [names[0], "Precision", names[1], "Precision", ...(lines.some((line) => line[4]) ? ["#Time"] : [])];
  return [make("p", { class: "quiet" }, "Matched by the ONNX nodes that layers came from, then by type; marked where precision differs or one side has no such layer."),
    lines.some((line) => line[4]) && !sameStack ? make("p", { class: "quiet" }, "The two were timed on different stacks: their times stand beside each other and are not compared.") : "",
    region("Layers side by side", table(headings, lines.map((line) => line.slice(0, headings.length)), (line) => (line[1] === line[3] ? null : "lostrow")))];
};
