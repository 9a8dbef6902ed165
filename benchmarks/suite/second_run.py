"""(h) The second run: nothing changed, one case changed, the packages of one target changed."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.suite.figures import Figure, Limit, Section
from benchmarks.suite.running import ROOT, run
from harness.matrix import load_matrix
from harness.run.provision import prepare

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.suite.running import Run, Setting

TITLE = "second run"
_CASE, _TARGET = "mish", "rtx17"
#: What no engine uses, and a change of the environment all the same.
_PIN = "iniconfig==2.0.0"
#: What is put behind a case module: other bytes of each model, and no other engine.
_CHANGE = """

def _changed(build):
    def built():
        model = build()
        model.doc_string = "{mark}"
        return model

    return built


from dataclasses import replace as _replace

CASE = _replace(
    CASE, variants=tuple(_replace(variant, build=_changed(variant.build)) for variant in CASE.variants)
)
"""


@dataclass(frozen=True)
class Round:
    """The runs of one round: the first, and those after a change of nothing, of a case and of a target."""

    first: Run
    nothing: Run
    case: Run
    target: Run

    def beyond(self) -> tuple[int, int, int]:
        """Return how many cells were run again that the change of each does not touch."""
        return (
            len(self.nothing.cells),
            sum(cell.case != _CASE for cell in self.case.cells),
            sum(cell.target != _TARGET for cell in self.target.cells),
        )


def measure(setting: Setting) -> Section:
    """Run everything anew, then three times with what the harness does by itself, in each round."""
    found = [_round(setting) for _ in setting.rounds("h")]
    figures = [Figure("first run", "s", tuple(one.first.ran.seconds for one in found))]
    changes = ("nothing", "case", "target")
    names = ("nothing changed", "one case changed", "one target's packages changed")
    for place, (change, name) in enumerate(zip(changes, names, strict=True)):
        runs: list[Run] = [getattr(one, change) for one in found]
        seconds = tuple(one.ran.seconds for one in runs)
        figures += [
            Figure(f"{TITLE}, {name}", "s", seconds, Limit(2) if change == "nothing" else None),
            Figure(f"{TITLE}, {name}: cells run", "cells", tuple(float(len(one.cells)) for one in runs)),
            Figure(
                f"{TITLE}, {name}: cells run that it does not touch",
                "cells",
                tuple(float(one.beyond()[place]) for one in found),
                Limit(0),
            ),
        ]
    return Section("h", TITLE, tuple(figures))


def _round(setting: Setting) -> Round:
    reports, project = setting.folder(), setting.folder()
    shutil.copytree(ROOT / "cases", project / "cases", ignore=shutil.ignore_patterns("__pycache__"))
    matrix = project / "matrix.yaml"
    matrix.write_text((ROOT / "matrix.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    places = ("--matrix", str(matrix), "--cases", str(project / "cases"))
    options = ("--via", "venv", "-j", str(setting.cores), *places, *setting.selection)
    first = run(reports, *options)
    nothing = run(reports, *options, again=False)
    module = project / "cases" / f"{_CASE}.py"
    change = _CHANGE.replace("{mark}", f"changed at {time.time_ns()}")
    module.write_text(module.read_text(encoding="utf-8") + change, encoding="utf-8")
    case = run(reports, *options, again=False)
    _change_target(matrix)
    return Round(first, nothing, case, run(reports, *options, again=False))


def _change_target(matrix: Path) -> None:
    """Give a target one package more, and make its environment, which is measured by itself."""
    target = load_matrix(matrix).target(_TARGET)
    (old,) = target.packages
    text = matrix.read_text(encoding="utf-8")
    matrix.write_text(text.replace(f"packages: [{old}]", f"packages: [{old}, {_PIN}]"), encoding="utf-8")
    prepare(load_matrix(matrix).target(_TARGET), "venv")
