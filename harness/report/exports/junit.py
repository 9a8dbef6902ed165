"""`junit.xml`: the cells as test cases, a suite a target, for the test tabs of CI services.

The same cells are red here as under pytest. A known failure is `skipped` with its claim as the message, as pytest
itself writes an xfail: JUnit has no word for it; as a `failure` it would keep every build red and hide the one that
matters, and as a plain pass it would hide the failure. A cell that is fixed passes and says so in its output, for good
news must not break a build; infrastructure is an `error`, which services count apart from failures.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from harness.report.by_gpu import disagreement
from harness.report.labels import BUCKETS, bucket
from harness.text import clip, visible

if TYPE_CHECKING:
    from harness.report.model import CellView, Results, TargetView

_RED = ("regressed", "new")
_GREEN = ("disputed", "fixed", "not_reproduced", "expected", "new_ok")
#: Where no engine was asked, unless it said itself that it wants a GPU.
_UNASKED = ("claimed", "not_run")
#: Passes that say what they are.
_TOLD = ("disputed", "fixed", "not_reproduced")
#: XML 1.0 has no spelling for these two; `visible` takes care of the other characters it forbids.
_NO_CHARACTERS = re.compile("[\ufffe\uffff]")
_LONGEST_MESSAGE = 600
_LONGEST_TITLE = 200
_LONGEST_BODY = 4000


def junit(results: Results) -> str:
    """Return the file; totals stand at the root and at each suite, times are seconds of the cell's phases."""
    root = ET.Element("testsuites", name="TensorRT compatibility matrix")
    for target in results.targets:
        cells = [cell for cell in results.cells if cell.target == target.id]
        suite = ET.SubElement(root, "testsuite", name=_text(target.id))
        for cell in cells:
            _case(suite, cell, target)
        _totals(suite, cells)
    _totals(root, results.cells)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, cell: CellView, target: TargetView) -> None:
    where = bucket(cell)
    entry = ET.SubElement(
        suite,
        "testcase",
        classname=_text(f"{cell.target}.{cell.case}"),
        name=_text(cell.id),
        time=_seconds(cell),
    )
    said = _said(cell, target, where)
    if where in _RED:
        found = ET.SubElement(entry, "failure", type=str(cell.cls), message=_text(said, _LONGEST_MESSAGE))
        found.text = _text(_body(cell), _LONGEST_BODY)
    elif where == "infra":
        ET.SubElement(entry, "error", type=str(cell.cls), message=_text(said, _LONGEST_MESSAGE))
    elif where not in _GREEN:
        ET.SubElement(entry, "skipped", type=where, message=_text(said, _LONGEST_MESSAGE))
    elif where in _TOLD:
        ET.SubElement(entry, "system-out").text = _text(said, _LONGEST_BODY)


def _said(cell: CellView, target: TargetView, where: str) -> str:
    """Return the message: what is known of a failure and its cause first, then the verdict in a sentence.

    What the publisher's machine lacks is no reader's business: of a cell that no engine was asked, what it needs is.
    """
    name = BUCKETS[where][0]
    if where in _UNASKED and not cell.phases:
        return f"Not run for this report: needs {target.needs}. {name}"
    differing = disagreement(cell.by_gpu)
    gpus = f" (GPUs disagree: {differing})" if differing else ""
    verdict = f"{name}{gpus}: {cell.sentence or cell.reason}"
    found = cell.diagnosis
    if found is None:
        return verdict
    place = f", at {found.place}" if found.place else ""
    return f"{clip(found.title, _LONGEST_TITLE)}{place}. {verdict}. Cause: {found.cause}"


def _body(cell: CellView) -> str:
    """Return what a reader of a red test wants first: the reason, the cause and its cure, the engine's own words."""
    parts = [cell.reason]
    if cell.diagnosis:
        parts.append(f"{cell.diagnosis.title}. {cell.diagnosis.cause} {cell.diagnosis.advice}")
    parts += [error.text for error in cell.parser_errors]
    parts += [message.text for message in cell.messages if message.severity != "WARNING"]
    return "\n".join(filter(None, [*parts, cell.error]))


def _totals(element: ET.Element, cells: list[CellView] | tuple[CellView, ...]) -> None:
    where = [bucket(cell) for cell in cells]
    element.set("tests", str(len(where)))
    element.set("failures", str(sum(key in _RED for key in where)))
    element.set("errors", str(where.count("infra")))
    element.set("skipped", str(sum(key not in (*_RED, *_GREEN, "infra") for key in where)))
    element.set("time", f"{sum(sum(cell.phases.values()) for cell in cells):.3f}")


def _seconds(cell: CellView) -> str:
    return f"{sum(cell.phases.values()):.3f}"


def _text(text: str, limit: int = _LONGEST_MESSAGE) -> str:
    return _NO_CHARACTERS.sub("\ufffd", clip(visible(text), limit))
