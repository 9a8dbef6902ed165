"""Outcomes that said something, and the signature that is found in them."""

from __future__ import annotations

import dataclasses
from typing import Any

from harness.judge.classify import Classification
from harness.judge.diagnosis import diagnose
from harness.record.outcome import End, Message, Outcome, ParserError
from harness.words import Class

BUILD_FAILED = Classification(Class.BUILD_FAILED, "")


def outcome(*found: tuple[str, str], **changes: Any) -> Outcome:
    """Return a failed build that said these (place, text) things, in order."""
    severity = {"errors": "ERROR", "warnings": "WARNING", "info": "INFO"}
    record = Outcome(
        "c.v-t", "c", "v", "t", "done",
        end=End("finished"),
        failed_phase="build",
        messages=tuple(Message(severity[place], text) for place, text in found if place in severity),
        parser_errors=tuple(
            _refusal(text) if place == "refused" else ParserError(text)
            for place, text in found if place in ("parser", "refused")
        ),
        native_output="\n".join(text for place, text in found if place == "native"),
        missing_api=next((text for place, text in found if place == "missing_api"), None),
    )  # fmt: skip
    return dataclasses.replace(record, **changes)


def found_id(*said: tuple[str, str], cls: Classification = BUILD_FAILED, **changes: Any) -> str | None:
    found = diagnose(outcome(*said, **changes), cls)
    return found.id if found else None


def _refusal(text: str) -> ParserError:
    operator, code, rest = text.split(": ", 2)
    return ParserError(rest, code=code, operator=operator)
