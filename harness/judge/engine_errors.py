"""What an engine complained of, without the lines that only repeat that something failed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.judge.place import find_place

if TYPE_CHECKING:
    from harness.record.outcome import Outcome, ParserError

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
#: What the agent itself says where the engine only returned nothing: the cause of last resort.
_AGENT = re.compile(
    r"build_serialized_network returned no engine|the ONNX parser refused the model"
    r"|the runtime refused the plan"
)


def errors(outcome: Outcome) -> tuple[str, ...]:
    """Return the error texts, oldest first: logger, then parser, then the process's own; noise lines cut out.

    A text that is nothing but noise is left out; the agent's own sentence stays, at the end.
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
        errors = outcome.parser_errors
        return _refused(outcome, next((error for error in errors if _told(error)), errors[0]))
    own = [message.text for message in outcome.messages if message.severity in _ERRORS]
    for text in map(without_noise, (*own[::-1], outcome.error)):
        if text and not _AGENT.search(text):
            return _line(": ".join(filter(None, (str(find_place(outcome, text)), text))))
    return _line(without_noise(outcome.error))


def _refused(outcome: Outcome, error: ParserError) -> str:
    place = find_place(outcome, without_noise(error.text))
    return _line(": ".join(filter(None, (str(place), error.code, _told(error) or "the parser says no more"))))


def _told(error: ParserError) -> str:
    # An assertion of the parser that has no sentence with it prints as its own value.
    text = without_noise(error.text)
    return "" if text == "false" else text


def warnings(outcome: Outcome) -> tuple[str, ...]:
    """Return what the engine warned of or told, oldest first."""
    return tuple(message.text for message in outcome.messages if message.severity not in _ERRORS)


def native(outcome: Outcome) -> tuple[str, ...]:
    """Return what the native library wrote past the logger, a line each."""
    return tuple(
        line for line in outcome.native_output.splitlines() if line.strip() and not NOISE.search(line)
    )


def without_noise(text: str) -> str:
    """Return a text without its lines that only repeat that something failed."""
    return "\n".join(line for line in text.splitlines() if line.strip() and not NOISE.search(line)).strip()


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
