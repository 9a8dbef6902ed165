"""Nothing is run twice, unless by `--fresh`, but trouble."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main, run
from harness.matrix import Target
from harness.plan import Cell
from harness.record.outcome import Outcome
from harness.record.speaking import Today
from harness.record.store import Store
from harness.report import FILES
from harness.report.page import unpacked
from harness.run import local
from tests.cli import project
from tests.cli.test_run import Scripted
from tests.fixtures import Capture, Patch

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("toy")]

#: Cells of the toy project that the scripted engine knows.
MINE = "relu or foreign"


class Engine:
    """Stands for the engines: counts what is run, keys it, and does to some cells what a test says."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.fields: dict[str, Callable[[], dict[str, Any]]] = {}
        #: The cell before which the run is interrupted.
        self.stops_at = ""

    def runner(self, target: Target, **arguments: Any) -> Scripted:
        engine, run_id = self, arguments["run_id"]

        class Runner(Scripted):
            def run(self, cell: Cell, **options: bool) -> tuple[Outcome, str]:
                if cell.id == engine.stops_at:
                    raise KeyboardInterrupt
                engine.ran.append(cell.id)
                outcome, log = super().run(cell, **options)
                stamps = dataclasses.replace(
                    outcome.stamps, run=run_id, when=f"2026-01-01T00:00:{len(engine.ran):02}"
                )
                key = key_of(cell, outcome.stamps.model_sha256)
                outcome = dataclasses.replace(outcome, stamps=stamps, key=key)
                return dataclasses.replace(outcome, **engine.fields.get(cell.id, dict)()), log

        return Runner(target, {"relu": {}, "foreign": {}})


def key_of(cell: Cell, model: str) -> str:
    return f"{cell.id} {model}"


def keys_of(cells: tuple[Cell, ...], today: Mapping[str, Today], *_: Any, **__: Any) -> dict[str, str]:
    return {cell.id: key_of(cell, today[cell.id].model_sha256) for cell in cells}


@pytest.fixture
def engine(monkeypatch: Patch) -> Engine:
    made = Engine()
    monkeypatch.setattr(local, "TargetRunner", made.runner)
    monkeypatch.setattr(run, "keys_of", keys_of)
    return made


def ran(engine: Engine, *words: str) -> list[str]:
    """Run and return the cells that the engine was given."""
    engine.ran.clear()
    main(["run", "-k", MINE, "--target", "ort131", *words])
    return sorted(engine.ran)


BOTH = ["toy.foreign-ort131", "toy.relu-ort131"]


def test_what_is_recorded_is_taken_and_the_run_says_so(engine: Engine, toy: Path, capsys: Capture) -> None:
    assert ran(engine) == BOTH
    first = json.loads((toy / "reports" / "results.json").read_text())
    capsys.readouterr()
    for _ in range(2):
        assert ran(engine) == []
        said = capsys.readouterr()
        assert "2 of 2 cells" in said.out
        assert said.err.count("\n") == 1, "nothing was run"
    reports = toy / "reports"
    second = json.loads((reports / "results.json").read_text())
    assert second == first
    assert len(list((reports / "history").iterdir())) == 1, "no new sample"
    assert len(list(Store(reports).outcomes())) == 2
    assert main(["verify"]) == 0
    assert ran(engine, "--fresh") == BOTH
    assert len(list((reports / "history").iterdir())) == 2


def test_a_changed_case_runs_its_cells_alone(engine: Engine, toy: Path) -> None:
    assert ran(engine) == BOTH
    path = toy / "cases" / "toy.py"
    path.write_text(path.read_text().replace('Graph("relu")', 'Graph("changed")'))
    assert ran(engine) == ["toy.relu-ort131"]
    assert ran(engine) == []


def test_the_report_is_written_though_nothing_is_run(engine: Engine, toy: Path) -> None:
    """A claim changed, a file is gone, the matrix says something else: none of it runs a cell."""
    page, results = toy / "reports" / "index.html", toy / "reports" / "results.json"
    ran(engine)
    shutil.rmtree(toy / "reports" / "models")
    for name in ("models/toy-relu.onnx", *FILES):
        (toy / "reports" / name).unlink(missing_ok=True)
        assert ran(engine) == []
        assert (toy / "reports" / name).is_file()
    written = page.stat().st_mtime_ns
    assert ran(engine) == []
    assert page.stat().st_mtime_ns == written, "where all is as it was, the report is left as it is"
    text = (toy / "matrix.yaml").read_text()
    (toy / "matrix.yaml").write_text(text.replace("  ort131:\n", "  ort131:\n    label: Another label\n"))
    assert ran(engine) == []
    assert all("Another label" in unpacked(path.read_text()) for path in (results, page))
    assert main(["accept", "--target", "ort131"]) == 0
    assert ran(engine) == []
    assert '"basis":"measured"' in results.read_text()
    assert main(["verify"]) == 0


def test_trouble_is_never_taken(engine: Engine, capsys: Capture) -> None:
    lost = {"state": "infra_error", "reason": "the agent went away", "key": ""}
    fields = iter([lost, {}])
    engine.fields["toy.relu-ort131"] = lambda: next(fields)
    assert ran(engine) == BOTH
    assert "1 infrastructure trouble" in capsys.readouterr().out
    assert ran(engine) == ["toy.relu-ort131"]
    assert project.counted(capsys.readouterr().out) == {"as expected": 2}
    assert ran(engine) == []


def test_a_run_that_was_stopped_goes_on_where_it_was(engine: Engine, toy: Path, capsys: Capture) -> None:
    engine.stops_at = "toy.foreign-ort131"
    assert ran(engine) == ["toy.relu-ort131"]
    engine.stops_at = ""
    capsys.readouterr()
    assert ran(engine) == ["toy.foreign-ort131"]
    assert "1 of 2" in capsys.readouterr().out
    assert len(list(Store(toy / "reports").outcomes())) == 2
