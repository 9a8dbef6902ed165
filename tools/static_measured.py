"""Hold the newest of NVIDIA's operator tables against what TensorRT for RTX made of a suite: precision and recall.

    python tools/static_measured.py reports/suites/onnx-node/results.json onnx-node

Prints the table of docs/check.md, and each model that a table blocks and an engine builds.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import onnx

from harness.known.listed import State, against, uses
from harness.matrix.operators import operator_tables
from harness.suites.items import find_suite
from harness.words import GOOD, UNJUDGED

#: Failures that are not the parser's, by signature: what a table of operators cannot know.
_NOT_OF_THE_PARSER = frozenset({"dynamic-without-profile", "floating-shape-input", "plugin-needs-gpu"})


def blocked(model: bytes) -> str:
    """Return the first node that the newest table blocks, and why; "" where there is none."""
    table = operator_tables()[-1]
    for use in uses(onnx.load_model_from_string(model), lambda node: node.op_type):
        state, words = against(use, table)
        if state is State.BLOCKED:
            return f"{use.operator}: {words}"
    return ""


def main(path: Path, suite: str) -> None:
    """Print the table, then the disagreements."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    ended = [cell for cell in found["cells"] if cell["class"] not in UNJUDGED]
    known = {cell["variant"] for cell in ended}
    reasons = {item.id: blocked(item.model) for item in find_suite(suite).items() if item.id in known}
    print("| engine | blocked, fails | blocked, builds | not blocked, fails | builds | precision | recall |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    wrong: dict[str, list[str]] = {}
    for target in found["targets"]:
        counts = Counter[tuple[bool, bool]]()
        for cell in ended:
            name, fails = cell["variant"], cell["class"] not in GOOD
            if cell["target"] != target["id"] or name not in reasons:
                continue
            if not reasons[name] and cell["signature"] in _NOT_OF_THE_PARSER:
                continue
            counts[bool(reasons[name]), fails] += 1
            if reasons[name] and not fails:
                wrong.setdefault(f"{name} ({reasons[name]})", []).append(target["id"])
        hit, false, missed = counts[True, True], counts[True, False], counts[False, True]
        right = f"{hit / (hit + false):.1%} | {hit / (hit + missed):.1%}"
        version = target["version"]
        print(f"| {target['id']} {version} | {hit} | {false} | {missed} | {counts[False, False]} | {right} |")
    for line, targets in sorted(wrong.items()):
        print(f"- {line}: {', '.join(targets)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
