"""Results with a stranger's text in every field that a model, a log, a machine or a file can fill."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from harness.case import Link, Precision
from harness.compare.versions import Change
from harness.known.model import GraphView, NodeView, Span
from harness.record.outcome import Stamps
from harness.report.model import RanOn, Results, RunView
from tests.report import factory

#: Texts that are checked before: names that case modules and matrix.yaml are refused for, and hashes made here.
SAFE = {
    "Results": set(),
    "TargetView": {"id", "series", "engine", "version", "product"},
    "CaseView": {"name"},
    "VariantView": {"case", "name", "counterpart", "recipe_sha256", "model_sha256"},
    "Known": {"id", "case", "variant", "target", "log", "failed_phase", "stamps"},
    "Layers": {"sha256"},
    "Change": {"case", "variant", "before", "after", "kind"},
    "Advice": {"id"},
    "Expectation": {"platform", "versions", "kind", "scope"},
    "RowSteps": {"known"},
}
#: Texts that strangers might write, by their aim.
HOSTILE = {
    "markup": "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "closing": "</script x><!--<script>",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "template": "{{ 7 * 7 }} {% raw %} ${7*7}",
    "bidi": "abc\u202etxt.exe\u2066",
    "controls": "a\x00b\x07c\x1b[31mred\x1b[0m",
    "surrogate": "x\udcffy",
    "long": "n" * 10_000,
    "emoji": "\U0001f468\u200d\U0001f469 \u4f60\u597d",
    "markdown": "](https://evil.example) `|` # @everyone <b>",
}
#: Invisible characters.
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
HTTPS = "https://stranger.example/"


def everywhere(text: str) -> Results:
    """Return `factory.results()` with the text in every other field, and with every kind of evidence."""
    plain = factory.results()
    (case,) = plain.cases
    graph = GraphView(
        (NodeView(text, text, (text, "w"), ("t",)), NodeView(text + "2", text, ("t",), (text + "o",))),
        (text,),
        (text + "o",),
        {text: text, "w": text},
    )
    variants = tuple(replace(one, sentences=(*one.sentences, Span("x", "x"))) for one in case.variants)
    change = Change("conv_silu", "qdq", "RTX", "rtx14", "rtx15", "x", "result", None, "x")
    rich = replace(
        plain,
        cases=(replace(case, variants=variants),),
        changes=(change,),
        runs=(RunView("x", "x", (RanOn("x", 1, Stamps(engine_version="x", via="x", packages=("x",))),)),),
    )
    made: Results = _poisoned(rich, text)
    (case,) = made.cases
    variants = tuple(replace(one, graph=graph) for one in case.variants)
    cells = tuple(replace(cell, precision=_with(cell.precision, text)) for cell in made.cells)
    return replace(made, cases=(replace(case, variants=variants),), cells=cells)


def _with(precision: dict[str, Precision], name: str) -> dict[str, Precision]:
    return dict.fromkeys((name, *precision), next(iter(precision.values()), Precision.FP32))


def _poisoned(value: Any, text: str) -> Any:
    if isinstance(value, str) and not isinstance(value, Enum):
        return text if value else value
    if isinstance(value, dict):
        return {_poisoned(key, text): _poisoned(entry, text) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_poisoned(entry, text) for entry in value)
    if isinstance(value, Link):
        return Link(HTTPS + text, text)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    kept = SAFE.get(type(value).__name__, set())
    changed = {
        one.name: _poisoned(getattr(value, one.name), text) for one in fields(value) if one.name not in kept
    }
    return replace(value, **changed)
