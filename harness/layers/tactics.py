"""An engine's verbose build log -> the tactics that the builder tried for each layer, with their times.

TensorRT 8.5 to 10.x print, for a layer and each combination of formats that it offers:

    =============== Computing costs for /conv/Conv
    *************** Autotuning format combination: Int8(4096,4096:32,64,1) -> Float(49152,1024,32,1) ***************
    --------------- Timing Runner: /conv/Conv (CaskConvolution[0x80000009])
    Tactic Name: sm80_xmma_... Tactic: 0x3e52 Time: 0.0063
    /conv/Conv (CaskConvolution[0x80000009]) profiling completed in 2.1 seconds. Fastest Tactic: 0x3e52 Time: 0.0063
    CaskFlattenConvolution has no valid tactics for this config, skipping          (8.x)
    Skipping CaskFlattenConvolution: No valid tactics for /conv/Conv               (10.x)
    >>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: 0x3e52

Up to 8.5 a kernel is named on a
line of its own, `/conv/Conv Set Tactic Name: volta_... Tactic: 0x3e52`, and timed on the next. A tactic that failed
takes `inf`, or 3.40282e+38. Late 10.x partitions the graph in several ways and prices each; the engine is one of them.
A time that it knows from another way is one line: `/conv/Conv [Int8(...) -> Float(...)] got cached result:
CaskConvolution, tactic 0x3e52, 0.0063 ms`. Blocks of reformatting costs price a conversion between two formats; those
under the name of a Cast, Q or DQ (`costs: /Cast`) price that node into each format. Which tensors it joins is told by
the parser: `/Cast [Cast] inputs: [input -> (1, 32)[FLOAT]], `. `Adding reformat layer` lines are the conversions of the
engine. The engine's layers stand at the end: `Layer(CaskConvolution): NAME, Tactic: 0x3e52, in (Float[1,3]) -> ...` (up
to 8.5 `in[Float(1,3)]`), or `Name: NAME, LayerType: ...` of a detailed profile. A build that calibrates prints a first
round in floating point. A layer into whose weights both Q and DQ were folded is quantised no more. TensorRT for RTX and
ONNX Runtime print no tactics.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from harness.layers.datatype import precision_of
from harness.layers.names import is_compiled, is_region
from harness.layers.operators import MULTIPLYING
from harness.record.outcome import FORMAT, Combination, Conversion, Layer, Node, Tactics, TensorUse

#: Names and formats longer than this are cut.
_NAME = 2000
#: Layers, combinations of one and prices that are kept of a log; layers that a record holds.
_LAYERS, _COMBINATIONS, _PRICES, _RECORDED = 20000, 200, 20000, 256
#: A tactic that failed takes as many milliseconds, or inf.
_FAILED = 1e30

# No part is of unbounded length: a line that is nearly right all along takes time in proportion.
_COSTS = re.compile(
    r"= Computing (?P<reformat>reformatting )?costs(?: for(?! available format set) ?(?P<layer>.*)|: (?P<node>.+))?"
)
_FORMATS = re.compile(r"\* Autotuning (?P<what>format combination|Reformat): ?(?P<formats>.{0,4000}?) \*{3}")
_CACHED = re.compile(
    r"\[(?P<formats>[^\[\]]{0,4000})\] got cached result: \w{1,80}, tactic (?P<id>\w{1,20}), (?P<ms>\S{1,20}) ms"
)
_REFUSED = re.compile(
    r" has no valid tactics for this config|Skipping \w{1,80}: No valid tactics for "
    r"|Skipping tactic \S{1,20} due to exception"
)
_MEMORY = re.compile(
    r"Tactic Device request: |Skipping tactic .{1,80} due to insuff?icient memory"
    r"|Tactic: \S{1,20} skipped\. Scratch requested"
)
_ADDED = re.compile(
    r"Adding reformat layer: Reformatted (?P<side>Input|Output) Tensor (?P<at>\d{1,4}) to (?P<layer>.{1,2000}) "
    rf"\((?P<tensor>.{{1,2000}})\) from (?P<source>{FORMAT}) to (?P<target>{FORMAT})"
)
_LISTED = re.compile(
    r"\bLayer\((?P<type>\w{1,80})\): (?P<layer>.{1,2000}), Tactic: (?P<id>-?\w{1,20}), (?P<edges>.* -> .*)"
)
_NAMED = re.compile(r"Name: (?P<layer>.{1,2000}?), LayerType: (?P<type>\w{1,80}), (?P<edges>Inputs: .*)")
_TACTIC_NAME = re.compile(r"TacticName: (?P<name>[^,]+)")
_EDGE = re.compile(r"\((?P<listed>\w{1,20})\[|\[(?P<before>\w{1,20})\(|Format/Datatype: (?P<named>\w+)")
_TENSOR = re.compile(
    r"(?:\A|, | -> )(?P<listed>\S.{0,2000}?) ?(?:\(\w{1,20}\[[^\]]{0,200}\]\)|\[\w{1,20}\([^)]{0,200}\)\])"
    r"|\{ Name: (?P<named>.{1,2000}?), (?:Location|Dimensions|Format/Datatype): "
)
#: A node that only changes the type of its one tensor; the builder prices it into each format.
_ENDS = re.compile(
    r"^(?:\[[^\]]{1,60}\] ){0,4}(?:VERBOSE: )?(?P<node>\S.{0,2000}?) "
    r"\[(?:Cast|QuantizeLinear|DequantizeLinear|Identity)\] (?P<side>in|out)puts: \[(?P<tensor>.{1,2000}?) -> "
)
_FUSED = re.compile(
    r"ConstWeights(?P<quantize>Quantize)?Fusion: Fusing (?P<weights>.{1,2000}) with (?P<node>.{1,2000})"
)
_WHOLE = re.compile(
    r"(?P<again>Starting Calibration)|(?P<lacking>Could not find any implementation )"
    r"|Selected Device: (?P<gpu>.{1,200})"
)
#: A line without any of these words tells of no tactic.
_SPOKEN = re.compile(
    "Autotuning|Tactic|tactics|Skipping t|cached result|"
    "Computing |Adding ref|Starting C|Name: |Fusing |Selected Device: |any implementation |"
    r"(?:Cast|Linear|Identity)\] (?:in|out)puts: "
)


@dataclass
class _Open:
    """The combination that is being read."""

    formats: str
    timed: dict[str, tuple[float, str]] = field(default_factory=dict)
    fastest: tuple[float, str] | None = None
    refused: int = 0
    memory: bool = False

    def closed(self) -> Combination:
        """Return it as it is recorded; `Time: 0` is of a tactic that was not timed."""
        best = min(filter(lambda each: each[0] > 0, self._times()), default=None)
        name = self.timed.get(best[1], (0.0, ""))[1] if best else ""
        return Combination(
            formats=self.formats,
            time_us=round(best[0] * 1000, 4) if best else None,
            tactic=name or (best[1] if best else ""),
            timed=len(self.timed),
            refused=self.refused,
            short_of_memory=self.memory,
        )

    def _times(self) -> Iterator[tuple[float, str]]:
        yield from ((ms, tactic) for tactic, (ms, _) in self.timed.items())
        if self.fastest:
            yield self.fastest


@dataclass
class BuildLog:
    """The tactics of a build: combinations by layer, prices in us by (source, target) format, conversions made.

    `beside` has such prices by the node that converts, a Cast, Q or DQ, and `joins` such nodes by the tensor that they
    make, "in" of a layer, or read, "out" of it; `made` has the conversion behind the layer that makes a tensor.
    `engine` has the layers of the engine, with type, tactic, tensors and the type of the first input, as far as the log
    lists them; `unquantised` names the layers into whose weights Q and DQ were folded; `gpu` is the GPU that trtexec
    names, `lacking` whether the build ended with a layer that has no implementation.
    """

    layers: dict[str, list[Combination]] = field(default_factory=dict)
    prices: dict[tuple[str, str], float] = field(default_factory=dict)
    beside: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict)
    joins: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    added: dict[str, list[Conversion]] = field(default_factory=dict)
    made: dict[str, Conversion] = field(default_factory=dict)
    engine: dict[str, Layer] = field(default_factory=dict)
    unquantised: set[str] = field(default_factory=set)
    gpu: str = ""
    lacking: bool = False

    def of(self, layer: str) -> Tactics | None:
        """Return the tactics of a layer with the prices that its formats need; None for a layer without a block."""
        combinations = self.layers.get(layer)
        if combinations is None:
            return None
        added = tuple(map(self._whole, self.added.get(layer, ())))
        mine = {each for combination in combinations for each in combination.sides}
        mine |= {each for conversion in added for each in (conversion.source, conversion.target)}
        prices = tuple(
            Conversion(source=source, target=target, time_us=us)
            for (source, target), us in self.prices.items()
            if source in mine and target in mine
        )
        neighbours = tuple(self._neighbours(layer, added, mine))
        return Tactics(layer, tuple(combinations), (*prices, *neighbours), added)

    def _whole(self, conversion: Conversion) -> Conversion:
        """Return the conversion of an input from the format of the kernel that makes it, if it is done in two."""
        first = self.made.get(conversion.tensor) if conversion.side == "in" else None
        return (
            replace(conversion, source=first.source)
            if first and first.target == conversion.source
            else conversion
        )

    def _neighbours(
        self, layer: str, added: Sequence[Conversion], mine: Collection[str]
    ) -> Iterator[Conversion]:
        """Yield the prices of the nodes that convert a layer's inputs and outputs, into and from its own formats."""
        edges = self.engine.get(layer)
        for side, tensors in (("in", edges.inputs), ("out", edges.outputs)) if edges else ():
            real = {each.at: each.tensor for each in added if each.side == side}
            for at, tensor in enumerate(tensors):
                for node in self.joins.get((side, real.get(at, tensor.name)), ()):
                    for (source, target), us in self.beside.get(node, {}).items():
                        if (target if side == "in" else source) in mine:
                            yield Conversion(source, target, us, node, side, at)


class TacticsReader:
    """Reads a log line by line, and keeps a bounded part of a log of any length."""

    def __init__(self) -> None:
        self._build = BuildLog()
        self._layer = ""
        # Whether a block of conversions began, and whether the combination at hand is one.
        self._conversions = False
        self._pricing = False
        # The node that the block of conversions is the price of.
        self._node = ""
        self._open: _Open | None = None
        self._names: dict[str, str] = {}
        self._quantised: set[str] = set()
        self._folded: set[str] = set()
        #: The first pattern that is found takes the line.
        self._takers = (
            (_FORMATS, self._formats),
            (_COSTS, self._costs),
            (_ADDED, self._add),
            *((pattern, self._list) for pattern in (_LISTED, _NAMED)),
            *((pattern, self._join) for pattern in (_FUSED, _ENDS)),
            (_WHOLE, self._whole),
            (_CACHED, self._cached),
        )

    def take(self, line: str) -> None:
        """Take the next line."""
        if "Time: " in line:
            if self._open is not None:
                self._time(line, self._open)
        elif " Set Tactic Name: " in line:
            named, _, tactic = line.rpartition(" Tactic: ")
            self._name(tactic.split(" ", 1)[0], named.rpartition(" Set Tactic Name: ")[2])
        elif _SPOKEN.search(line):
            self._line(line)

    def _line(self, line: str) -> None:
        for pattern, take in self._takers:
            if found := pattern.search(line):
                take(found)
                return
        if self._open is not None:
            self._open.refused += bool(_REFUSED.search(line))
            self._open.memory |= bool(_MEMORY.search(line))

    def _formats(self, found: re.Match[str]) -> None:
        self._combination(found["formats"], pricing=self._conversions or found["what"] == "Reformat")

    def _costs(self, found: re.Match[str]) -> None:
        """Take the head of a layer's block, or of a block of conversions."""
        self._close()
        self._conversions = bool(found["reformat"])
        self._node = (found["node"] or "").strip()[:_NAME]
        layer = "" if self._conversions else (found["layer"] or "").strip()[:_NAME]
        self._begin(layer)

    def _cached(self, found: re.Match[str]) -> None:
        now = self._combination(found["formats"], pricing=self._conversions)
        self._time(f"Tactic: {found['id']} Time: {found['ms']}", now)

    def _whole(self, found: re.Match[str]) -> None:
        """Take a word on the build as a whole."""
        if found["again"]:
            self._build = BuildLog(gpu=self._build.gpu, joins=self._build.joins)
        elif found["lacking"]:
            self._build.lacking = True
        else:
            self._build.gpu = found["gpu"].strip()

    def build(self) -> BuildLog:
        """Return the tactics in the lines taken; of a layer that was built twice, the last."""
        self._close()
        return self._build

    def _combination(self, formats: str, *, pricing: bool) -> _Open:
        self._close()
        self._pricing = pricing
        self._open = _Open(formats.strip()[:_NAME])
        return self._open

    def _begin(self, layer: str) -> None:
        self._layer = layer
        if layer:
            # The layer is priced once more: for another profile or partition, or by another build in the same log.
            self._build.layers.pop(layer, None)
            self._build.added.pop(layer, None)
            if len(self._build.layers) < _LAYERS:
                self._build.layers[layer] = []

    def _time(self, line: str, now: _Open) -> None:
        """Take the time of a tactic; nine of ten lines are of these, so no pattern is used."""
        head, _, ms = line.rpartition(" Time: ")
        head, _, tactic = head.rpartition("Tactic: ")
        try:
            time = float(ms)
        except ValueError:
            return
        if time >= _FAILED:
            return
        if head.endswith("Fastest "):
            if now.fastest is None or time < now.fastest[0]:
                now.fastest = time, tactic
            return
        if "Tactic Name: " in head:
            name = head.rpartition("Tactic Name: ")[2].strip()
            if name:
                self._name(tactic, name)
        else:
            name = self._names.get(tactic, "")
        # Runners without named kernels count from 0 alike.
        if len(now.timed) < _PRICES and not 0 < now.timed.get(tactic, (0.0, ""))[0] < time:
            now.timed[tactic] = time, name

    def _name(self, tactic: str, name: str) -> None:
        if len(self._names) < _PRICES:
            self._names[tactic] = name

    def _close(self) -> None:
        if self._open is None:
            return
        closed, self._open = self._open.closed(), None
        if self._pricing:
            sides = closed.sides
            prices, beside = self._build.prices, self._build.beside
            if self._node:
                prices = beside.setdefault(self._node, {}) if len(beside) < _LAYERS else {}
            if len(sides) == 2 and closed.time_us is not None and len(prices) < _PRICES:  # noqa: PLR2004
                prices.setdefault((sides[0], sides[1]), closed.time_us)
            return
        of_layer = self._build.layers.get(self._layer)
        if of_layer is not None and len(of_layer) < _COMBINATIONS:
            of_layer.append(closed)

    def _join(self, found: re.Match[str]) -> None:
        """Take the input or the output of a node that converts, or a fusion into weights."""
        if "side" in found.re.groupindex:
            side = "in" if found["side"] == "out" else "out"
            if len(self._build.joins) < _LAYERS:
                # The same node again where a log has several builds.
                self._build.joins.setdefault((side, found["tensor"]), {})[found["node"]] = None
            return
        weights, fused = found["weights"], f"{found['weights']} + {found['node']}"
        if found["quantize"]:
            # Q first, then DQ.
            (self._folded if weights in self._quantised else self._quantised).add(fused)
        elif weights in self._folded:
            self._build.unquantised.add(fused)

    def _add(self, found: re.Match[str]) -> None:
        conversion = Conversion(
            source=found["source"],
            target=found["target"],
            tensor=found["tensor"],
            side="in" if found["side"] == "Input" else "out",
            at=int(found["at"]),
        )
        self._build.added.setdefault(found["layer"], []).append(conversion)
        if conversion.side == "out":
            self._build.made[conversion.tensor] = conversion

    def _list(self, found: re.Match[str]) -> None:
        """Take a layer of the engine, its tactic by name if the log has it."""
        edges = found["edges"]
        if "id" in found.re.groupindex:
            tactic = self._names.get(found["id"], found["id"])
        else:
            named = _TACTIC_NAME.search(edges)
            tactic = named["name"] if named else ""
        first = _EDGE.search(edges)
        if len(self._build.engine) < _LAYERS:
            precision = str(precision_of(first[first.lastgroup or 0] if first else ""))
            reads, sign, makes = edges.partition("Outputs: [")
            if not sign:
                reads, _, makes = edges.rpartition(" -> ")
            sides = [
                tuple(TensorUse(each[each.lastgroup or 0], "unknown") for each in _TENSOR.finditer(side))
                for side in (reads, makes)
            ]
            name = found["layer"][:_NAME]
            self._build.engine[name] = Layer(
                name, found["type"], precision, inputs=sides[0], outputs=sides[1], tactic=tactic
            )


def read_tactics(lines: Iterable[str]) -> BuildLog:
    """Return the tactics in the lines of a log."""
    reader = TacticsReader()
    for line in lines:
        reader.take(line)
    return reader.build()


def tactics_of(lines: Iterable[str], layers: Sequence[Layer], nodes: Sequence[Node]) -> tuple[Tactics, ...]:
    """Return the tactics in a log of the layers that hold a node that multiplies.

    Without an engine's layers it is those of which no tactic was timed: one of them has no implementation.
    """
    build = read_tactics(lines)
    multiply = {node.name for node in nodes if node.op in MULTIPLYING}
    wanted = {layer.name for layer in layers if not multiply.isdisjoint(layer.onnx_nodes)}
    if any(map(is_compiled, wanted)):
        # A region is timed under its own name, and its kernels are listed under theirs.
        wanted |= set(filter(is_region, build.layers))
    if not layers:
        wanted = {name for name, tried in build.layers.items() if tried and not any(map(_timed, tried))}
    found = (build.of(name) for name in build.layers if name in wanted)
    return tuple(filter(None, found))[:_RECORDED]


def _timed(combination: Combination) -> bool:
    return combination.time_us is not None
