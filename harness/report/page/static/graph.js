// ---- the reproducer as a picture: ONNX nodes top-down, filled and labelled by the precision they ran in ----------
const BOX = { width: 160, height: 50, across: 172, gap: 34, end: 16, text: 136 };
const HATCH = new Map(Object.values(data.patterns).filter(([, path]) => path));
let patterns = 0;
/** @type {(kind: string) => string} */
const precisionMark = (kind) => (kind === "" ? "none" : data.patterns[kind]?.[0] || "other");
/** @type {(prefix: string) => Element} */
const defs = (prefix) => make("defs", {}, [...HATCH].map(([kind, path]) => make("pattern",
  { id: `${prefix}-${kind}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", class: `g-${kind}` },
  make("rect", { width: 6, height: 6, class: "ground" }), make("path", { d: path, class: "hatch" }))),
make("marker", { id: `${prefix}-tip`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, make("path", { d: "M0 0L8 4L0 8z", class: "tip" })));
// Fonts differ from machine to machine: what is a little too long is set narrower, what is longer is cut at one end.
const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
const SANS = getComputedStyle(document.documentElement).getPropertyValue("--sans");
const MONO = getComputedStyle(document.documentElement).getPropertyValue("--mono");
/** @type {{ [kind: string]: string }} */
const FONTS = { op: `650 12px ${SANS}`, kind: `600 11px ${SANS}`, "edge-text": `11px ${SANS}`, name: `10px ${MONO}`, end: `10px ${MONO}` };
const NARROWEST = 0.88;
/** @type {(text: string, kind: string, space: number, at: Attributes, keepEnd?: boolean) => Element} */
const fitted = (text, kind, space, at, keepEnd) => {
  ruler.font = FONTS[kind];
  const letters = [...text];
  let kept = letters.length;
  const shown = () => (kept === letters.length ? text : keepEnd ? "…" + letters.slice(-kept).join("") : letters.slice(0, kept).join("") + "…");
  const wide = () => ruler.measureText(shown()).width;
  while (wide() * NARROWEST > space && kept > 1) kept = Math.min(kept - 1, 60);
  return make("text", { ...at, class: kind, ...(wide() > space ? { textLength: space, lengthAdjust: "spacingAndGlyphs" } : {}) }, shown());
};
// Ranks in which no box stands are low: they hold names of inputs and outputs, and wires that pass.
/** @type {(graph: Graph) => [tops: Map<number, [number, number]>, height: number]} */
const ranksOf = (graph) => {
  const every = [...graph.nodes.map((node) => node.rank), ...graph.ends.map((end) => end.rank)];
  const boxed = new Set(graph.nodes.map((node) => node.rank));
  const tops = new Map();
  let y = 8;
  for (let rank = Math.min(...every); rank <= Math.max(...every); rank += 1) {
    const height = boxed.has(rank) ? BOX.height : BOX.end;
    tops.set(rank, [y, y + height]);
    y += height + BOX.gap;
  }
  return [tops, y - BOX.gap + 8];
};
// A wire leaves and enters upright and goes straight down its lanes, so that it never bends behind a box.
/** @type {(stops: [x: number, y: number, straight?: boolean][]) => string} */
const wirePath = (stops) => stops.slice(1).reduce((path, [x, y, straight], index) => {
  const [fromX, fromY] = stops[index];
  const middle = (fromY + y) / 2;
  return path + (straight ? `V${y}` : `C${fromX} ${middle} ${x} ${middle} ${x} ${y}`);
}, `M${stops[0][0]} ${stops[0][1]}`);
/** @type {(graph: Graph, wire: Wire, where: Where, told: (tensor: number) => string, width: number, tip: string) => Element} */
const drawWire = (graph, { tensor, source, sink, port, ports, lanes }, where, told, width, tip) => {
  const [from, to] = [where(source), where(sink)];
  const enters = sink < graph.nodes.length ? to.x + BOX.width * ((port + 1) / (ports + 1) - 0.5) : to.x;
  /** @type {[x: number, y: number, straight?: boolean][]} */
  const stops = [[from.x, from.bottom], ...lanes.flatMap(([first, last, across]) => [
    /** @type {[number, number]} */ ([where.x(across), where.span(first)[0]]), /** @type {[number, number, boolean]} */ ([where.x(across), where.span(last)[1], true])]), [enters, to.top]];
  const path = wirePath(stops);
  const text = cut(graph.tensors[tensor][1] || "type not known", 34);
  ruler.font = FONTS["edge-text"];
  const half = ruler.measureText(text).width / 2 + 4;
  const x = Math.max(half, Math.min(width - half, (stops[0][0] + stops[1][0]) / 2));
  return make("g", { class: "edge", tabindex: "0", role: "img", "aria-label": told(tensor) }, make("title", {}, told(tensor)),
    make("path", { class: "reach", d: path }), make("path", { class: "wire", d: path, "marker-end": `url(#${tip})` }),
    make("text", { x, y: (stops[0][1] + stops[1][1]) / 2 + 4, "text-anchor": "middle", class: "edge-text" }, text));
};
/** @type {(graph: Graph, node: GraphNode, at: { x: number; top: number }, prefix: string, ran: Map<string, Ran>, layers: Layer[] | undefined, wanted: Map<string, string>) => Element} */
const drawNode = (graph, node, at, prefix, ran, layers, wanted) => {
  const { kind, lost } = ran.get(node.name) || { kind: "", lost: false };
  const word = kind ? kind.toUpperCase() : layers && layers.length ? "folded or not told" : "not told";
  const want = wanted.get(node.name);
  const mark = precisionMark(kind);
  const words = `${node.op} ${node.name}: ${word}${want ? `, wanted ${want}` : ""}`;
  return make("g", { class: `node g-${mark}${lost ? " lost" : ""}`, role: "img", "aria-label": words, transform: `translate(${at.x - BOX.width / 2} ${at.top})` },
    make("title", {}, words + node.constants.map((tensor) => `\nconstant ${graph.tensors[tensor][0]}: ${graph.tensors[tensor][1]}`).join("")),
    make("rect", { class: "body", width: BOX.width, height: BOX.height, rx: 5 }),
    make("rect", { class: "band", width: 12, height: BOX.height - 2, x: 1, y: 1, rx: 4, fill: HATCH.has(mark) ? `url(#${prefix}-${mark})` : null }),
    fitted(node.op, "op", BOX.text, { x: 18, y: 16 }), fitted(node.name, "name", BOX.text, { x: 18, y: 29 }, true),
    fitted(word + (lost ? ` ≠ ${want?.toUpperCase()}` : ""), "kind", BOX.text, { x: 18, y: 43 }));
};
/** @type {(cell: Cell) => Map<string, Ran>} */
const ranOf = (cell) => new Map((cell.precision || []).map((one) => [one.node, one]));
// Draws one graph; `ran` maps node names to what they ran in, `layers` tells where it is known that a node vanished.
/** @type {(graph: Graph, ran: Map<string, Ran>, layers: Layer[] | undefined, wanted: Map<string, string>, label: string) => Element} */
const drawGraph = (graph, ran, layers, wanted, label) => {
  const prefix = `g${(patterns += 1)}`;
  const [tops, height] = ranksOf(graph);
  const x = (/** @type {number} */ across) => 8 + BOX.width / 2 + ((across - 8) * BOX.across) / 16;
  const items = [...graph.nodes, ...graph.ends];
  const span = (/** @type {number} */ rank) => tops.get(rank) || [0, 0];
  const where = Object.assign((/** @type {number} */ item) => {
    const { rank, across } = items[item];
    const [top, bottom] = span(rank);
    return { x: x(across), top, bottom };
  }, { x, span });
  const lanes = graph.wires.flatMap((wire) => wire.lanes.map(([, , across]) => x(across) + 12));
  const width = Math.max(...items.map(({ across }, item) => x(across) + (item < graph.nodes.length ? BOX.width : 120) / 2), ...lanes) + 8;
  const uses = new Map((layers || []).flatMap((layer) => [...layer.inputs, ...layer.weights, ...layer.outputs]));
  const told = (/** @type {number} */ tensor) => {
    const [name, type] = graph.tensors[tensor];
    const use = uses.get(name);
    return `${name}: ${type || "type not known"}${use ? `; in the engine ${use}` : ""}`;
  };
  return make("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, defs(prefix),
    graph.wires.map((wire) => drawWire(graph, wire, where, told, width, `${prefix}-tip`)),
    graph.nodes.map((node, index) => drawNode(graph, node, where(index), prefix, ran, layers, wanted)),
    graph.ends.map(({ tensor }, index) => {
      const at = where(graph.nodes.length + index);
      return fitted(graph.tensors[tensor][0], "end", 120, { x: at.x, y: at.bottom - 5, "text-anchor": "middle" }, true);
    }));
};
/** @type {(kinds: string[]) => Element} */
const graphLegend = (kinds) => {
  const prefix = `g${(patterns += 1)}`;
  return make("p", { class: "graph-legend" }, kinds.map((kind) => {
    const mark = precisionMark(kind);
    return make("span", {}, make("svg", { width: 16, height: 14, "aria-hidden": "true", class: `key g-${mark}` }, defs(prefix + mark),
      make("rect", { class: "band", width: 14, height: 12, x: 1, y: 1, rx: 3, fill: HATCH.has(mark) ? `url(#${prefix}${mark}-${mark})` : null })),
    ` ${kind ? kind.toUpperCase() : "folded away, or the engine does not tell"}`);
  }), make("span", {}, "≠ not the precision wanted"));
};
/** @type {(variant: Variant, sides: Side[]) => Element[]} */
const graphView = (variant, sides) => {
  const graph = variant.graph;
  if (!graph) return [make("p", { class: "quiet" }, "This graph is too large to draw, or could not be read.")];
  const wantedBy = (/** @type {boolean} */ baseline) => new Map(baseline ? [] : variant.wanted || []);
  const kinds = [...new Set(sides.flatMap(({ cell }) => { const ran = ranOf(cell); return graph.nodes.map((node) => ran.get(node.name)?.kind || ""); }))].sort();
  return [graphLegend(kinds), make("div", { class: "graphs" }, sides.map(({ name, baseline, cell, state }) => make("figure", {},
    make("figcaption", {}, make("b", {}, name), " ", state),
    make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `Graph on ${name}` }, drawGraph(graph, ranOf(cell), cell.layers, wantedBy(baseline), `ONNX graph on ${name}`))))),
  make("p", { class: "quiet" }, "Point at or focus an arrow for its tensor's type. Constants are told in a node's tooltip.")];
};
