"""Records of a suite made by hand: how each model ended on each target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from harness.record.outcome import Accuracy, End, Message, Node, Outcome, ParserError, Stamps
from harness.suites.running import About, SuiteStore
from tests.report import factory

#: Operator and opset by model.
PLACES = {
    "abs": ("Abs", "13"),
    "add": ("Add", "14"),
    "add_uint8": ("Add", "14"),
    "bitshift": ("BitShift", "11"),
    "mod": ("Mod", "13"),
    "binarizer": ("Binarizer", "ai.onnx.ml 1"),
}
ABOUT = About("onnx-node", "Every <operator>", dict(PLACES))
VERSIONS = {each.name: each.version for each in factory.matrix()}
_END = End("finished", exit_code=0, peak_rss_bytes=70 << 20)


def outcome(
    model: str, target: str, ended: str, when: str = "2026-11-20T02:00:00.000+00:00", run: str = "r1"
) -> Outcome:
    """Return a model's outcome: "built", "ok", "wrong", "parse", "build", "crash" or "fault"."""
    operator = PLACES[model][0]
    case = operator.lower()
    stamps = Stamps(
        "a" * 64,
        "b" * 64,
        VERSIONS[target],
        "venv",
        packages=("engine==1",),
        harness_version="0",
        when=when,
        run=run,
    )
    plain = Outcome(f"{case}.{model}-{target}", case, model, target, "done", end=_END, stamps=stamps)
    plain = replace(
        plain, phases={"parse": 0.00123456, "build": 0.02}, nodes=(Node(f"node_of_{model}", operator),)
    )
    refusal = ParserError("false", code="UNSUPPORTED_NODE", node=f"node_of_{model}", operator=operator)
    good = Accuracy("y", 0.0, 0.0, 1.0)
    return {
        "built": plain,
        "ok": replace(plain, ran=True, accuracy=(good,)),
        "wrong": replace(plain, ran=True, accuracy=(replace(good, max_abs=1.0, max_rel=1.0, cosine=0.1),)),
        "parse": replace(plain, failed_phase="parse", parser_errors=(refusal,)),
        "build": replace(
            plain, failed_phase="build", messages=(Message("ERROR", f"no <kernel> for test_{model}_A"),)
        ),
        "crash": replace(
            plain, failed_phase="build", end=End("signalled", "killed by SIGSEGV", signal="SIGSEGV")
        ),
        "fault": replace(plain, state="infra_error", reason="the agent failed"),
    }[ended]


def record(
    reports: Path, found: Mapping[str, Mapping[str, str]], *, run: str = "r1", day: str = "2026-11-20"
) -> Path:
    """Record how each model ended on each target; return the suite's folder."""
    store = SuiteStore(reports, ABOUT, run=run)
    with store:
        for target, models in found.items():
            for second, (model, ended) in enumerate(models.items()):
                each = outcome(model, target, ended, f"{day}T02:00:{second:02}.500+00:00", run)
                store.append(each, f"[ERROR] {target} on {model}")
    return store.path


_MODELS = ("abs", "add", "add_uint8", "bitshift", "mod", "binarizer")
FIRST = {
    target: dict(zip(_MODELS, found.split(), strict=True))
    for target, found in {
        "rtx16": "built build parse parse build parse",
        "rtx17": "built built build parse crash parse",
        "ort131": "ok ok ok ok wrong ok",
    }.items()
}
