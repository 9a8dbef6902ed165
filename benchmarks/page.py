"""Measures how large and how fast the page is, and prints a table: `python -m benchmarks.page`.

The cells are made up, in the proportions of a real run: two in five measured, each with stamps, some
failing with messages; names differ from variant to variant. The generator's seconds are processor time; interactive is
the page in headless Chromium (`TRT_COMPAT_CHROMIUM` names it) once it answers, by the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.run import Samples, machine, note, table
from harness.case import Expectation, Link
from harness.compare.kinds import steps_of
from harness.known.model import (
    Advice,
    CaseView,
    GraphView,
    Known,
    Layers,
    NodeView,
    Span,
    TargetView,
    Timing,
    VariantView,
)
from harness.record.outcome import Stamps
from harness.report.model import Results
from harness.report.page import render
from harness.report.writer import results_json
from harness.words import Basis, Class, Precision, Role, Verdict

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_VARIANTS_A_CASE = 20
_LINK = Link("https://github.com/NVIDIA/TensorRT/issues/3640", "TensorRT issue 3640")
_ADVICE = Advice(
    "no-int8-convolution",
    "This version has no INT8 convolution",
    "The builder of this version has no kernel that takes quantised data for a convolution of this form.",
    "Take a version that has one, or leave the convolution out of the quantised part.",
    ("case0.variant1",),
)


def results(cells: int) -> Results:
    """Return a made-up matrix of about so many cells, the same at every call."""
    columns = min(50, max(2, cells // 50))
    count = cells // columns
    targets = tuple(_target(index) for index in range(columns))
    variants = [_variant(index) for index in range(count)]
    cases = tuple(
        CaseView(
            f"case{start // _VARIANTS_A_CASE}",
            f"Problem number {start // _VARIANTS_A_CASE}",
            "The builder refuses a convolution that stands between two others.",
            (_LINK,),
            tuple(variants[start : start + _VARIANTS_A_CASE]),
        )
        for start in range(0, count, _VARIANTS_A_CASE)
    )
    chance = random.Random(0)  # noqa: S311
    made = tuple(_cell(variant, target, chance) for variant in variants for target in targets)
    whole = Results(targets, cases, made)
    return replace(whole, steps=steps_of(whole.rows()))


def _target(index: int) -> TargetView:
    stamps = Stamps(engine_version=f"10.{index}.0", via="docker", when="2026-01-01T00:00:00+00:00")
    return TargetView(
        id=f"trt10{index:02}",
        label=f"TensorRT 10.{index}",
        family=f"TensorRT {10 + index // 10}",
        series="TensorRT",
        engine="tensorrt",
        version=f"10.{index}.0",
        short=f"10.{index}",
        platform="linux/amd64",
        image=f"registry.example/tensorrt:{index}",
        needs="an NVIDIA GPU",
        stamps=stamps if index % 5 < 2 else None,
    )


def _variant(index: int) -> VariantView:
    case, name = f"case{index // _VARIANTS_A_CASE}", f"variant{index % _VARIANTS_A_CASE}"
    nodes = tuple(f"/model.{index}/{op}" for op in ("conv1/Conv", "act/Sigmoid", "act/Mul", "conv2/Conv"))
    graph = GraphView(
        tuple(
            NodeView(node, node.rpartition("/")[2], (before,), (node + "_output_0",))
            for before, node in zip(("images", *(one + "_output_0" for one in nodes)), nodes, strict=False)
        ),
        ("images",),
        (nodes[-1] + "_output_0",),
        {"images": "float32 1x3x64x64"},
    )
    return VariantView(
        case=case,
        name=name,
        title=f"Convolution {index} and SiLU with Q and DQ around both",
        role=(Role.REPRODUCER, Role.WORKAROUND, Role.CONTROL)[index % 3],
        counterpart=None,
        wanted=((nodes[0], Precision.INT8), (nodes[3], Precision.INT8)),
        recipe={},
        recipe_text="graph typing; flags INT8+FP16",
        recipe_sha256=f"{index:064x}",
        model_sha256=f"{index * 7919:064x}",
        claims=(
            Expectation.reported(Class.BUILD_FAILED, "<10.9", _LINK),
            Expectation.reported(Class.OK, ">=10.9", _LINK, level="builds"),
        ),
        tags=("sized",),
        sentences=(
            Span("TensorRT", "fails to build on 10.0 (measured); fixed in 10.1 (measured): builds, INT8 2/2"),
        ),
        graph=graph,
    )


def _cell(variant: VariantView, target: TargetView, chance: random.Random) -> Known:
    where = (f"{variant.case}.{variant.name}-{target.id}", variant.case, variant.name, target.id)
    blank = Known(*where, Class.NOT_RUN, Verdict.NOT_RUN, text="not run", reason="not run for this report")
    if target.stamps is None:
        if chance.random() < 0.4:
            return blank
        failing: dict[str, Any] = {
            "cls": Class.BUILD_FAILED,
            "stands": Class.BUILD_FAILED,
            "basis": Basis.REPORTED,
        }
        return replace(blank, **failing, claims=(0,), text="fails to build")
    phases = {"parse": 0.002, "build": chance.random()}
    found = _refusal(variant) if chance.random() < 0.35 else _success(variant, chance)
    when = f"2026-01-01T00:{chance.randrange(60):02}:{chance.randrange(60):02}+00:00"
    return replace(blank, **found, basis=Basis.MEASURED, phases=phases, stamps="run", when=when)


def _refusal(variant: VariantView) -> dict[str, Any]:
    text = f"Error Code 10: Could not find any implementation for node {variant.wanted[0][0]}."
    return {
        "cls": Class.BUILD_FAILED,
        "stands": Class.BUILD_FAILED,
        "verdict": Verdict.KNOWN_FAILURE,
        "text": "fails to build",
        "reason": "fails to build, as reported",
        "signature": _ADVICE.id,
        "diagnosis": _ADVICE,
        "errors": (text,),
    }


def _success(variant: VariantView, chance: random.Random) -> dict[str, Any]:
    lost = chance.random() < 0.1
    kind, cls = (Precision.FP32, Class.PRECISION_LOST) if lost else (Precision.INT8, Class.OK)
    middle = 0.05 + chance.random() / 100
    return {
        "cls": cls,
        "stands": cls,
        "verdict": Verdict.EXPECTED,
        "text": "loses precision" if lost else "works",
        "reason": "works, and nothing says it should not",
        "chip": "INT8 0/2" if lost else "INT8 2/2",
        "precision": {node: kind for node, _ in variant.wanted},
        "layers": Layers(f"{chance.getrandbits(256):064x}", 4, "inspector"),
        "latency": Timing(middle, middle * 1.1, 100, "cuda_events", noise="too few", spread=0.02),
    }


def ready(browser: Browser, file: Path) -> float:
    """Return the milliseconds until a page answers."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    found = float(page.evaluate("performance.getEntriesByName('ready')[0].startTime"))
    page.close()
    return found


def _measure(browser: Browser, file: Path, cells: int, rows: Samples) -> None:
    """Write a page of so many cells into a file, and look at it."""
    made = results(cells)
    start = time.process_time()
    data = results_json(made)
    text = render(json.loads(data), {})
    seconds = time.process_time() - start
    file.write_text(text, encoding="utf-8")
    note(rows, f"{len(made.cells)} cells: generator, s", seconds)
    note(rows, f"{len(made.cells)} cells: page, MB", file.stat().st_size / 1e6)
    note(rows, f"{len(made.cells)} cells: interactive after, ms", ready(browser, file))


def main() -> int:
    """Measure each size and print the table."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__.partition("\n")[0])
    parser.add_argument("cells", nargs="*", type=int, default=[1000, 10_000, 100_000])
    parser.add_argument("--times", type=int, default=5, metavar="N", help="rounds (default: 5)")
    options = parser.parse_args()
    print(machine(), flush=True)
    rows: Samples = {}
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        named = os.environ.get("TRT_COMPAT_CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=named, args=flags)
        for cells in options.cells:
            for _ in range(options.times):
                _measure(browser, Path(folder) / "page.html", cells, rows)
        browser.close()
    print(table(rows, options.times))
    return 0


if __name__ == "__main__":
    sys.exit(main())
