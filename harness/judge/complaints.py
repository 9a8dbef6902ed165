# ruff: noqa: E501  (patterns and texts stand on one line)
"""An engine's complaints, without the lines that only repeat a failure, and their places in the model: operator and node."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from harness.layers.operators import MULTIPLYING
from harness.record.outcome import Node, Outcome, ParserError
from harness.text import some

#: The parser's refusals before the first node.
INPUT = "network input"
#: Refusals of a file's stamp, before any input is looked at.
MODEL = "model"

#: The logger's line before the parser's complaint; `output` is the node's first.
PARSING = re.compile(
    r'While parsing node number \d+ \[(?P<operator>[^\s\]]+)(?: -> "(?P<output>[^"]*)")?\]', re.ASCII
)
#: The ends of the names of parser functions that import no operator.
NO_OPERATOR = r"(?:Model|Graph|Nodes?|Inputs?|Outputs?|LocalFunctions?|Initializers?)\b"
IMPORTER = re.compile(
    r"In function (?:import|check)(?!" + NO_OPERATOR + r")(?P<operator>[A-Z]\w*):", re.ASCII
)
IMPORTING = re.compile(r"ERROR: (?P<tensor>(?:(?!ERROR: )[^\n])*?):\d+ In function importInput:", re.ASCII)
#: The beginning of a message that TensorRT 10's parser hands to `trtexec` and Polygraphy.
NUMBERED = re.compile(
    r"In node -?\d+ with name: (?P<node>(?:(?!In node ).)*?) and operator: (?P<operator>\S+) \(", re.ASCII
)
#: A refusal of the builder's configuration: of the recipe, not of a node, even if there is but one.
RECIPE = re.compile(r"\bBuilderFlag::k")
#: A refusal of the file, which one node in it has no part in.
STAMP = re.compile(
    r"Unsupported model IR version: \d|Opset \d+ is under development and support for this is limited"
)
#: Why one tactic of a layer was given up, or its region: the layer that then has no implementation is named later.
REASON = re.compile(
    r"Skipping tactic \S{1,40} due to (?P<reason>[\s\S]+)|DCHECK\(|Error during shape inference of|No Myelin Error exists"
    r"|MyelinCheckException|no tactics to implement operation|un(?:in)?itialized dimension",
    re.ASCII,
)
#: The layer that no kernel computes; its name ends with the sentence.
NO_IMPLEMENTATION = re.compile(
    r"[Cc]ould not find any implementation for node:? (?P<node>[^\s.…)](?:(?! In \w+ at |\.? due to insuff)[^\n])*)",
    re.ASCII,
)
#: A layer of a loop, the nodes that make loops, and the way to a layer inside of a branch or loop, before its own name.
LOOP = re.compile(r"\(Unnamed Loop\* (\d{1,4})\)", re.ASCII)
LOOPING = frozenset({"LSTM", "GRU", "RNN", "Loop", "Scan"})
_BODIED = frozenset({"Loop", "Scan", "If"})
INSIDE = re.compile(
    r"\A\$\$myelin\$\$\(Unnamed (?:IfConditional|Loop)\* \d{1,4}\)\^(?:[^^]*\^)*(?!\(Unnamed )", re.ASCII
)
#: In how many messages before the layer a reason of it stands.
NEAR = 40
#: Refusals of one text whose places are looked up: each look-up goes through all that the logger said.
MOST_REFUSED = 50


class Place(NamedTuple):
    """An operator and the name of its node, "" if unknown.

    For a refused node of a subgraph some versions give its operator and the name of the node around it. The same form
    stands for an operator that an engine puts in place of the only node.
    """

    operator: str = ""
    node: str = ""

    def __str__(self) -> str:
        noun = self.operator if self.operator in (INPUT, MODEL) else f"{self.operator} node".lstrip()
        return f"{noun} {self.node!r}" if self.node else self.operator


def ended(node: str) -> str:
    """Return a layer's name without the end of the sentence that it stands in."""
    return re.sub(r"\.\)?\.?\s*\Z", "", node).rstrip()


def find_place(
    outcome: Outcome, text: str, *, operator: str = "", node: str = "", at_error: bool = True
) -> Place:
    """Return the place that a record's text complains about; `operator` and `node` are those that it names itself.

    With `at_error` a text of another source belongs to the place of the parser's first error.
    """
    if RECIPE.search(text):
        return Place()
    if STAMP.search(text):
        return Place(MODEL)
    if node:
        return _place_of(node, operator, outcome.nodes)
    for found in _looked_up(outcome, text, operator, at_error=at_error):
        operator = operator or found.operator
        if found.node and operator == found.operator:
            return found
    named = some([each.name for each in outcome.nodes if each.op == operator])
    if named or len(outcome.nodes) != 1:
        return Place(operator, named)
    return Place(operator or outcome.nodes[0].op, outcome.nodes[0].name)


def _place_of(name: str, operator: str, nodes: tuple[Node, ...]) -> Place:
    """Return the place of a node that is named, or of the layer that it is in."""
    known = _named_in(name, nodes) or _loop_of(name, nodes)
    if known:
        return Place(operator or known.op, known.name)
    return Place(operator, INSIDE.sub("", name) if nodes else name)


def _loop_of(name: str, nodes: tuple[Node, ...]) -> Node | None:
    """Return the node that makes the loop of a layer, if the loop's number tells which.

    Loops are numbered as they are parsed, those in bodies too.
    """
    numbers, loops = LOOP.findall(name), [node for node in nodes if node.op in LOOPING]
    if not numbers:
        return None
    if len(loops) == 1:
        return loops[0]
    first = next((at for at, node in enumerate(nodes) if node.op in _BODIED), len(nodes))
    counted = [node for node in loops if node in nodes[: first + 1]]
    return next(islice(counted, int(numbers[0]), None), None)


def _looked_up(outcome: Outcome, text: str, operator: str, *, at_error: bool) -> Iterator[Place]:
    """Yield the place by each source, the surest first."""
    yield from _by_errors(outcome, text.strip().partition("\n")[0], operator, at_error=at_error)
    if numbered := NUMBERED.search(text):
        yield Place(numbered["operator"], numbered["node"])
    if known := _named_in(text, outcome.nodes):
        yield Place(known.op, known.name)


def _by_errors(outcome: Outcome, line: str, operator: str, *, at_error: bool) -> Iterator[Place]:
    refused = [error for error in outcome.parser_errors if line in error.text]
    # A library's print past the logger is in no parser error; the error that it led to is the first.
    others = [each for each in outcome.parser_errors if at_error and operator in ("", each.operator)]
    for error in refused[:MOST_REFUSED] or others[:1]:
        found = _logged(outcome, error.text.strip().partition("\n")[0])
        if error.operator:
            found = Place(error.operator, error.node or found.node)
        if found.operator != INPUT or len(outcome.nodes) != 1:
            yield found


def _logged(outcome: Outcome, line: str) -> Place:
    """Return the place that the logger told just before it repeated a complaint of the parser."""
    current = Place()
    for message in outcome.messages:
        current = _told(message.text, current)
        if line and line in message.text and current.operator:
            return current
    return Place() if line else current


def _told(text: str, before: Place) -> Place:
    """Return the place that a message tells, else the one that was told before."""
    if parsing := PARSING.search(text):
        return Place(parsing["operator"], f"node_of_{parsing['output']}" if parsing["output"] else "")
    if importing := IMPORTING.search(text):
        return Place(INPUT, importing["tensor"])
    importer = IMPORTER.search(text)
    return Place(importer["operator"]) if importer and not before.operator else before


def _named_in(text: str, nodes: tuple[Node, ...]) -> Node | None:
    """Return the known node whose name stands first in a text; a layer's name may go on after the node's.

    A fused layer (`weights + Q + Conv`) is known by the first node in it that multiplies.
    """
    found = {}
    for node in nodes:
        # A name that is a mere word stands in many a sentence that is not about the node.
        if node.name not in text or (node.name != text and node.name.isalpha()):
            continue
        match = re.search(rf"(?<![\w/])(?<!\w\.){re.escape(node.name)}(?![A-Za-z0-9/]|\.\w)", text)
        if match:
            fused = " + " in text and node.op not in MULTIPLYING
            found[fused, match.start(), -len(node.name)] = node
    return found[min(found)] if found else None


#: Characters kept of a line in a reason; the record's messages hold the whole text.
_LONGEST = 400
_ERRORS = frozenset({"ERROR", "INTERNAL_ERROR"})

#: Lines that follow a failure and never cause one. A machine without a GPU makes TensorRT-RTX 1.4 to 1.7 add the
#: catchCudaError line to every failure, whatever the failure was: taken as a cause it would hide the real one.
NOISE = re.compile(
    r"In catchCudaError at"
    r"|Assertion engine != nullptr failed|Engine could not be created from network|Engine set up failed"
    r"|--- (?:Begin|End) node ---"
)
#: The agent's own sentences about an engine that failed silently: the cause of last resort.
_AGENT = re.compile(
    r"build_serialized_network returned no engine|the ONNX parser refused the model"
    r"|the runtime refused the plan"
)


def errors(outcome: Outcome) -> tuple[str, ...]:
    """Return the error texts, oldest first: logger, then parser, then the process's own; noise lines cut out.

    A text of noise alone is left out; the agent's own sentence stays, at the end.
    """
    texts = [message.text for message in outcome.messages if message.severity in _ERRORS]
    texts += [error.text for error in outcome.parser_errors]
    texts.append(outcome.error)
    if outcome.end is not None and outcome.end.kind != "finished":
        texts.append(outcome.end.detail)
    return tuple(text for text in map(without_noise, texts) if text)


def refusals(outcome: Outcome) -> tuple[str, ...]:
    """Return the ONNX parser's error list as lines of operator, code and text, any of which may be missing."""
    return tuple(
        ": ".join(filter(None, (error.operator, error.code, without_noise(error.text))))
        for error in outcome.parser_errors
    )


def fatal(outcome: Outcome) -> str:
    """Return the error that ended the job, on one line: the parser's first, else the logger's last, or "".

    It begins with operator, node and the parser's code, as far as the record knows them.
    """
    if outcome.parser_errors:
        first = next(filter(_said, outcome.parser_errors), outcome.parser_errors[0])
        place = find_place(outcome, without_noise(first.text))
        said = str(place), first.code, _said(first) or "the parser says no more"
        return _line(": ".join(filter(None, said)))
    own = (message.text for message in reversed(outcome.messages) if message.severity in _ERRORS)
    texts = (*own, outcome.error)
    found = next((text for text in map(without_noise, texts) if text and not _AGENT.search(text)), "")
    if found:
        return _line(": ".join(filter(None, (str(find_place(outcome, found)), found))))
    return _line(without_noise(outcome.error))


def _said(error: ParserError) -> str:
    # An assertion of the parser that has no sentence with it prints as its own value.
    text = without_noise(error.text)
    return "" if text == "false" else text


def warnings(outcome: Outcome) -> tuple[str, ...]:
    """Return the engine's messages that are no errors, oldest first."""
    return tuple(message.text for message in outcome.messages if message.severity not in _ERRORS)


def native(outcome: Outcome) -> tuple[str, ...]:
    """Return the lines that the native library wrote past the logger."""
    return tuple(
        line for line in outcome.native_output.splitlines() if line.strip() and not NOISE.search(line)
    )


def without_noise(text: str) -> str:
    """Return a text without its lines that only repeat that something failed."""
    return "\n".join(line for line in text.splitlines() if line.strip() and not NOISE.search(line)).strip()


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
