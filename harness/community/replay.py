"""A cell's log -> what its record must say: the events are read from the log and folded as when they came."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import onnx

from harness.bounded import parse_json
from harness.case import model_sha256
from harness.layers import asked
from harness.record.from_json import decode
from harness.record.log import LEFT_OUT, SEEN, STAMPS, entries
from harness.record.outcome import Accuracy, Layer, Outcome
from harness.run.numbers import Reference
from harness.run.observation import Observation
from harness.run.prepared import Prepared
from harness.run.session import Event

if TYPE_CHECKING:
    from harness.case import Variant
    from harness.plan import Cell

_SEVERITIES = frozenset({"ERROR", "INTERNAL_ERROR", "WARNING", "INFO", "VERBOSE"})
#: Entries that are one event with one field.
_PLAIN = {
    "unavailable": "text",
    "failed": "text",
    "missing": "name",
    "agent fault": "text",
    "harness": "text",
}
_EVENTS = {"missing": "missing_api", "agent fault": "agent_fault", "harness": "agent_fault"}
_PHASE = re.compile(r"(.+) (\d+\.\d{3}) s( failed)?", re.DOTALL)
_CUT_SHORT = " cut short"
#: Fields of a record that its log does not hold, or holds in part.
_KEPT = ("latency", "stamps", "log_sha256", "key", "schema")


def subject(variant: Variant) -> Prepared:
    """Return a variant as far as its log is read with it: the model and its nodes, without inputs and reference."""
    data = variant.model_bytes()
    nodes = asked(onnx.load_model_from_string(data))
    return Prepared(data, model_sha256(data), nodes, {}, Reference(None))


def replayed(cell: Cell, ready: Prepared, recorded: Outcome, log: str) -> Outcome:
    """Return the record that a log gives, with the samples, the times of layers and the stamps of the recorded one.

    Raises ValueError for a log that no harness wrote.
    """
    found = list(entries(log))
    said = [parse_json(text) for kind, text in found if kind == SEEN]
    if len(said) != 1 or not isinstance(said[0], dict):
        raise ValueError(f"it has {len(said)} entries of the kind {SEEN!r}, and not one")
    seen = Observation()
    seen.hear(_event(kind, text) for kind, text in found if kind not in (STAMPS, SEEN, LEFT_OUT))
    outcome = seen.outcome(cell, ready, recorded.stamps)
    end = outcome.end
    if end and recorded.end:
        # Exit code, signal and peak memory are as recorded: the log has only the sentence on how it ended.
        end = replace(recorded.end, kind=end.kind, detail=end.detail)
    return replace(
        outcome,
        **{name: getattr(recorded, name) for name in _KEPT},
        end=end,
        layers=_with_times(outcome.layers, recorded.layers),
        ran=said[0].get("ran") is True,
        engine_bytes=said[0].get("engine_bytes"),
        uncompared=str(said[0].get("uncompared", "")),
        accuracy=tuple(decode(Accuracy, figures) for figures in said[0].get("accuracy", ())),
    )


def stamps_in(log: str) -> dict[str, Any]:
    """Return what a log says that it is of; raises ValueError where it does not say so once."""
    found = [parse_json(text) for kind, text in entries(log) if kind == STAMPS]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise ValueError(f"it has {len(found)} entries of the kind {STAMPS!r}, and not one")
    stamps: dict[str, Any] = found[0]
    return stamps


def _with_times(layers: tuple[Layer, ...], recorded: tuple[Layer, ...]) -> tuple[Layer, ...]:
    if len(layers) != len(recorded):
        return layers
    return tuple(replace(layer, time_ms=other.time_ms) for layer, other in zip(layers, recorded, strict=True))


def _event(kind: str, text: str) -> Event:
    if kind in _SEVERITIES:
        return _made("message", severity=kind, text=text)
    if kind in _PLAIN:
        return _made(_EVENTS.get(kind, kind), **{_PLAIN[kind]: text})
    if kind in _READ:
        return _READ[kind](text)
    raise ValueError(f"an entry is of the kind {kind[:40]!r}, which no harness writes")


def _end(text: str) -> Event:
    how, _, detail = text.partition(" ")
    return _made("end", kind=how, detail=detail, peak_rss_bytes=None)


def _phase(text: str) -> Event:
    if text.endswith(_CUT_SHORT):
        return _made("phase_begin", name=text.removesuffix(_CUT_SHORT))
    found = _PHASE.fullmatch(text)
    if found is None:
        raise ValueError(f"an entry of the kind 'phase' says {text[:60]!r}")
    return _made("phase", name=found[1], seconds=float(found[2]), ok=not found[3])


def _fields(text: str) -> dict[str, Any]:
    try:
        found = ast.literal_eval(text)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"an entry of the kind 'parser error' says {text[:60]!r}") from error
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise ValueError(f"an entry of the kind 'parser error' says {text[:60]!r}")
    return found


def _made(event: str, **fields: Any) -> Event:  # noqa: ANN401  (JSON)
    return Event({**fields, "type": event}, b"")


def _body(text: str, **fields: str) -> Event:
    return Event(dict(fields), text.encode("utf-8", "backslashreplace"))


#: Entries that are read in a way of their own.
_READ: dict[str, Callable[[str], Event]] = {
    "native": lambda text: _made("native", text=f"{text}\n"),
    "parser error": lambda text: _made("parser_error", **_fields(text)),
    "inspector": lambda text: _body(text, type="layers", source="inspector"),
    "calibration cache": lambda text: _body(text, type="calibration_cache"),
    "end": _end,
    "phase": _phase,
}
