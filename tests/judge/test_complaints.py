"""What of all that an engine said is an error, and which of its errors is told."""

from __future__ import annotations

from typing import Any

import pytest

from harness.judge.complaints import errors, fatal, native, refusals, warnings
from harness.record.outcome import End, Message, Node, Outcome, ParserError

pytestmark = pytest.mark.unit

NOISE = "Engine could not be created from network"
AGENT = "build_serialized_network returned no engine"


def record(*messages: str, **changes: Any) -> Outcome:
    """Return a record of messages, each "SEVERITY text"."""
    said = tuple(Message(*message.split(" ", 1)) for message in messages)
    return Outcome("c.v-t", "c", "v", "t", "done", messages=said, **changes)


def test_errors_are_those_of_logger_parser_and_process_in_this_order() -> None:
    """Without what only repeats that something failed; what is no error is a warning."""
    found = record(
        "WARNING a warning",
        f"ERROR first\n\n  \n{NOISE}\n last ",
        f"ERROR {NOISE}",
        "INFO told",
        "INTERNAL_ERROR inner",
        parser_errors=(ParserError("of the parser"), ParserError("")),
        error=AGENT,
        end=End("signalled", "killed by SIGSEGV"),
    )
    assert errors(found) == ("first\n last", "inner", "of the parser", AGENT, "killed by SIGSEGV")
    assert warnings(found) == ("a warning", "told")
    assert errors(record(end=End("finished", "all is well"))) == errors(record()) == ()


def test_refusals_leave_out_what_the_parser_did_not_say() -> None:
    refused = ParserError("no", "8", "/a", "Conv"), ParserError(f"{NOISE}\nno"), ParserError("", "8")
    assert refusals(record(parser_errors=refused)) == ("Conv: 8: no", "no", "8")


def test_native_lines_are_those_with_text() -> None:
    assert native(record(native_output=f"one\n \n{NOISE}\n two\n")) == ("one", " two")


@pytest.mark.parametrize(
    ("messages", "changes", "said"),
    [
        ((), {}, ""),
        # The last of the logger that is not the agent's own sentence, which is the cause of last resort.
        (("ERROR first", "INTERNAL_ERROR last", f"ERROR {NOISE}", "WARNING later"), {"error": AGENT}, "last"),
        ((f"ERROR {NOISE}",), {"error": AGENT}, AGENT),
        # It is of no node, not even of the only one.
        ((), {"error": AGENT, "nodes": (Node("/c", "Conv"),)}, AGENT),
        ((), {"error": "KeyError: 'x'"}, "KeyError: 'x'"),
        (("ERROR logged",), {"error": "KeyError: 'x'"}, "logged"),
        # The parser's first that says more than its own value, before any of the logger's.
        (("ERROR logged",), {"parser_errors": (ParserError("one", "8"), ParserError("two"))}, "8: one"),
        ((), {"parser_errors": (ParserError("false"), ParserError("two", "9"))}, "9: two"),
        (
            (),
            {"parser_errors": (ParserError("false", "7"), ParserError("", "9"))},
            "7: the parser says no more",
        ),
        # On one line of 400 characters.
        (("ERROR two\n lines",), {}, "two lines"),
        ((f"ERROR {'x' * 400}",), {}, "x" * 400),
        ((f"ERROR {'x' * 401}",), {}, "x" * 397 + "..."),
    ],
)
def test_the_error_that_ended_a_job(messages: tuple[str, ...], changes: dict[str, Any], said: str) -> None:
    assert fatal(record(*messages, **changes)) == said
