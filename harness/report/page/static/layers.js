// ---- layer tables, alone or aligned with another column ---------------------------------------------------------
const kindOf = (heading) => (heading.startsWith("#") ? "num" : ["Severity", "Precision", "Code"].includes(heading) ? "fix" : ["Inputs", "Weights", "Outputs"].includes(heading) ? "short" : null);
const table = (headings, lines, rowClass) => make("table", {},
  make("thead", {}, make("tr", {}, headings.map((text) => make("th", { scope: "col", class: kindOf(text) }, text.replace("#", ""))))),
  make("tbody", {}, lines.map((line) => make("tr", { class: rowClass ? rowClass(line) : null },
    line.map((entry, index) => make("td", { class: kindOf(headings[index]) }, entry instanceof Node ? entry : String(entry ?? "")))))));
const joined = (uses) => make("span", {}, (uses || []).map(([, text], index) => (index ? [make("br"), text] : [text])).flat());
const layerTold = ([name, type, , , , , tactic, nodes]) => make("span", {}, name, make("br"),
  make("span", { class: "quiet" }, [type, nodes.length ? "from " + nodes.join(" + ") : "", tactic].filter(Boolean).join("; ")));
const layerTable = (cell) => {
  if (!cell.layers) return [];
  const timed = cell.layers.some((layer) => layer[8] !== null);
  const headings = ["Layer", "Precision", "Inputs", "Weights", "Outputs", ...(timed ? ["#Time"] : [])];
  return [region("Layers", table(headings, cell.layers.map((layer) => [
    layerTold(layer), layer[2], joined(layer[3]), joined(layer[4]), joined(layer[5]), ...(timed ? [ms(layer[8])] : [])]))),
  timed ? make("p", { class: "quiet" }, "Layer times are from a profiled run; with the events between layers they add up to more than the latency.") : null,
  cell.unparsedLayers ? make("p", { class: "quiet" }, `${cell.unparsedLayers} more layers could not be read.`) : null,
  cell.layerSource ? make("p", { class: "quiet" }, `Read from: ${cell.layerSource}.`) : null];
};
// Pairs layers that came from the same ONNX nodes, then those that share some of them (of one type before others, then
// the most), then, of those that came from none, the ones of one type in order. What has no partner is paired with null.
const alignLayers = (left, right) => {
  const partner = new Map();
  const taken = new Set();
  const pair = (one, two) => { partner.set(one, two); taken.add(two); };
  const nodes = (layer) => [...layer[7]].sort().join("\n");
  const free = (test) => right.findIndex((layer, index) => !taken.has(index) && test(layer));
  for (const strict of [true, false]) {
    left.forEach((layer, one) => {
      if (partner.has(one) || !layer[7].length) return;
      const two = free((other) => nodes(other) === nodes(layer) && (!strict || other[1] === layer[1]));
      if (two >= 0) pair(one, two);
    });
  }
  left.forEach((layer, one) => {
    if (partner.has(one) || !layer[7].length) return;
    let [best, most] = [-1, 0];
    right.forEach((other, two) => {
      const shared = layer[7].filter((node) => other[7].includes(node)).length;
      const score = shared / (layer[7].length + other[7].length - shared || 1) + (shared && other[1] === layer[1] ? 1 : 0);
      if (!taken.has(two) && score > most) [best, most] = [two, score];
    });
    if (best >= 0) pair(one, best);
  });
  left.forEach((layer, one) => {
    if (partner.has(one) || layer[7].length) return;
    const two = free((other) => !other[7].length && other[1] === layer[1]);
    if (two >= 0) pair(one, two);
  });
  const made = left.map((layer, one) => [layer, partner.has(one) ? right[partner.get(one)] : null]);
  return [...made, ...right.filter((_, two) => !taken.has(two)).map((layer) => [null, layer])];
};
const alignedTable = (one, two, names, sameStack) => {
  const alone = (name) => make("em", { class: "alone" }, `no such layer on ${name}`);
  const lines = alignLayers(one.layers || [], two.layers || []).map(([left, right]) => [
    left ? layerTold(left) : alone(names[0]), left ? left[2] : "", right ? layerTold(right) : alone(names[1]), right ? right[2] : "",
    left && right && typeof left[8] === "number" && typeof right[8] === "number" ? `${ms(left[8])}${sameStack ? " → " : " | "}${ms(right[8])}` : ""]);
  const headings = [names[0], "Precision", names[1], "Precision", ...(lines.some((line) => line[4]) ? ["#Time"] : [])];
  return [make("p", { class: "quiet" }, "Matched by the ONNX nodes that layers came from, then by type; marked where precision differs or one side has no such layer."),
    lines.some((line) => line[4]) && !sameStack ? make("p", { class: "quiet" }, "The two were timed on different stacks: their times stand beside each other and are not compared.") : "",
    region("Layers side by side", table(headings, lines.map((line) => line.slice(0, headings.length)), (line) => (line[1] === line[3] ? null : "lostrow")))];
};
