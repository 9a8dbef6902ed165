// ---- the reproducer as a picture: ONNX nodes top-down, filled and labelled by the precision they ran in ----------
const BOX = { width: 150, height: 50, across: 164, down: 84 };
const HATCH = { int8: "M0 6L6 0", uint8: "M0 6L6 0", int4: "M0 6L6 0", fp16: "M0 3H6", bf16: "M0 3H6", fp8: "M3 0V6", fp4: "M3 0V6" };
let patterns = 0;
const precisionMark = (kind) => (HATCH[kind] ? kind : ["fp32", "tf32"].includes(kind) ? "fp32" : kind === "" ? "none" : "other");
const defs = (prefix) => make("defs", {}, Object.entries(HATCH).map(([kind, path]) => make("pattern",
  { id: `${prefix}-${kind}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", class: `g-${kind}` },
  make("rect", { width: 6, height: 6, class: "ground" }), make("path", { d: path, class: "hatch" }))),
make("marker", { id: `${prefix}-tip`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, make("path", { d: "M0 0L8 4L0 8z", class: "tip" })));
const short = (text, limit) => (text.length > limit ? "…" + text.slice(1 - limit) : text);
// Draws one graph; `ran` maps node names to precisions, `layers` tells where it is known that a node vanished.
const drawGraph = (graph, ran, layers, wanted, label) => {
  const prefix = `g${(patterns += 1)}`;
  const place = (node) => ({ x: 8 + (node[5] * BOX.across) / 2, y: 44 + node[4] * BOX.down });
  const producer = new Map(graph.nodes.flatMap((node, index) => node[3].map((tensor) => [tensor, index])));
  const constants = new Set(graph.constants);
  const width = Math.max(...graph.nodes.map((node) => place(node).x)) + BOX.width + 8;
  const height = Math.max(...graph.nodes.map((node) => place(node).y)) + BOX.height + 44;
  const uses = new Map((layers || []).flatMap((layer) => [...layer[3], ...layer[4], ...layer[5]]));
  const told = (tensor) => {
    const [name, type] = graph.tensors[tensor];
    const use = uses.get(name);
    return `${name}: ${type || "type not known"}${use ? `; in the engine ${use}` : ""}`;
  };
  const edges = [];
  const edge = (from, to, tensor) => {
    const middle = (from.y + to.y) / 2;
    const text = make("text", { x: (from.x + to.x) / 2 + 4, y: middle - 3, class: "edge-text" }, short(graph.tensors[tensor][1] || "type not known", 34));
    edges.push(make("g", { class: "edge", tabindex: "0", role: "img", "aria-label": told(tensor) }, make("title", {}, told(tensor)),
      make("path", { class: "reach", d: `M${from.x} ${from.y}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y}` }),
      make("path", { class: "wire", d: `M${from.x} ${from.y}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y}`, "marker-end": `url(#${prefix}-tip)` }), text));
  };
  const ends = [];
  graph.nodes.forEach((node) => {
    const at = place(node);
    const inputs = node[2].filter((tensor) => tensor >= 0 && !constants.has(tensor));
    inputs.forEach((tensor, index) => {
      const to = { x: at.x + (BOX.width * (index + 1)) / (inputs.length + 1), y: at.y };
      if (producer.has(tensor)) {
        const from = place(graph.nodes[producer.get(tensor)]);
        edge({ x: from.x + BOX.width / 2, y: from.y + BOX.height }, to, tensor);
      } else {
        ends.push(make("text", { x: to.x, y: to.y - 26, "text-anchor": "middle", class: "end" }, short(graph.tensors[tensor][0], 20)));
        edge({ x: to.x, y: to.y - 22 }, to, tensor);
      }
    });
    node[3].filter((tensor) => graph.outputs.includes(tensor)).forEach((tensor) => {
      const from = { x: at.x + BOX.width / 2, y: at.y + BOX.height };
      ends.push(make("text", { x: from.x, y: from.y + 36, "text-anchor": "middle", class: "end" }, short(graph.tensors[tensor][0], 20)));
      edge(from, { x: from.x, y: from.y + 22 }, tensor);
    });
  });
  const boxes = graph.nodes.map((node) => {
    const at = place(node);
    const kind = ran.get(node[0]) || "";
    const word = kind && kind !== "unknown" ? kind.toUpperCase() : layers && layers.length ? "folded or not told" : "not told";
    const want = wanted.get(node[0]);
    const lost = want && kind && kind !== "unknown" && !samePrecision(want, kind);
    const weights = node[2].filter((tensor) => constants.has(tensor)).map((tensor) => graph.tensors[tensor]);
    const mark = precisionMark(kind === "unknown" ? "" : kind);
    const words = `${node[1]} ${node[0]}: ${word}${want ? `, wanted ${want}` : ""}`;
    return make("g", { class: `node g-${mark}${lost ? " lost" : ""}`, role: "img", "aria-label": words, transform: `translate(${at.x} ${at.y})` },
      make("title", {}, words + weights.map(([name, type]) => `\nconstant ${name}: ${type}`).join("")),
      make("rect", { class: "body", width: BOX.width, height: BOX.height, rx: 5 }),
      make("rect", { class: "band", width: 12, height: BOX.height - 2, x: 1, y: 1, rx: 4, fill: HATCH[mark] ? `url(#${prefix}-${mark})` : null }),
      make("text", { x: 18, y: 16, class: "op" }, short(node[1], 18)), make("text", { x: 18, y: 29, class: "name" }, short(node[0], 20)),
      make("text", { x: 18, y: 43, class: "kind" }, word + (lost ? ` ≠ ${want.toUpperCase()}` : "")));
  });
  return make("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, defs(prefix), edges, boxes, ends);
};
const graphLegend = (kinds) => {
  const prefix = `g${(patterns += 1)}`;
  return make("p", { class: "graph-legend" }, kinds.map((kind) => {
    const mark = precisionMark(kind);
    return make("span", {}, make("svg", { width: 16, height: 14, "aria-hidden": "true", class: `key g-${mark}` }, defs(prefix + mark),
      make("rect", { class: "band", width: 14, height: 12, x: 1, y: 1, rx: 3, fill: HATCH[mark] ? `url(#${prefix}${mark}-${mark})` : null })),
    ` ${kind ? kind.toUpperCase() : "folded away, or the engine does not tell"}`);
  }), make("span", {}, "≠ not the precision wanted"));
};
const graphView = (variant, sides) => {
  const graph = variant.graph;
  if (!graph) return [make("p", { class: "quiet" }, "This graph is too large to draw, or could not be read.")];
  const wanted = new Map(variant.wanted || []);
  const kinds = [...new Set(sides.flatMap(({ cell }) => { const ran = new Map(cell.precision || []); return graph.nodes.map((node) => { const kind = ran.get(node[0]) || ""; return kind === "unknown" ? "" : kind; }); }))].sort();
  return [graphLegend(kinds), make("div", { class: "graphs" }, sides.map(({ name, cell, state }) => make("figure", {},
    make("figcaption", {}, make("b", {}, name), " ", state),
    make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `Graph on ${name}` }, drawGraph(graph, new Map(cell.precision || []), cell.layers, wanted, `ONNX graph on ${name}`))))),
  make("p", { class: "quiet" }, "Point at or focus an arrow for its tensor's type. Constants are told in a node's tooltip.")];
};
