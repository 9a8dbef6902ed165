"""`verify`: a finished folder is whole, and each thing that can be wrong with it is named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.record.outcome import Latency, Outcome
from harness.record.store import Store
from harness.report.verify import verify_published, verify_report
from harness.report.writer import build_report
from tests.report import factory

pytestmark = pytest.mark.unit


def faults(folder: Path) -> str:
    """Return the faults of a folder, a line each."""
    return "\n".join(verify_report(factory.matrix(), (factory.case(),), Store(folder), folder))


def finished(folder: Path, *outcomes: Outcome) -> Path:
    """Write a report on outcomes."""
    with Store(folder) as store:
        for outcome in outcomes or factory.outcomes().values():
            store.append(outcome, "the log")
    build_report(factory.matrix(), (factory.case(),), Store(folder), folder)
    return folder


def test_a_finished_folder_has_no_fault(tmp_path: Path) -> None:
    """Also if cells failed, crashed, were not run or are out of date."""
    assert faults(finished(tmp_path)) == ""


def test_a_line_that_is_no_record_is_a_fault_and_the_others_are_looked_at(tmp_path: Path) -> None:
    """And the report, which passed it over with a sentence, follows from the others."""
    finished(tmp_path)
    (file,) = (tmp_path / "records").iterdir()
    first, _, rest = file.read_bytes().partition(b"\n")
    file.write_bytes(first + b'\n{"schema": 2}\n' + rest)
    assert faults(tmp_path).startswith(f"{file}:2: not a record")
    assert "\n" not in faults(tmp_path)


def test_records_are_read_and_models_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a report, and by its check: of a long history that is most of the time they take."""
    done: list[str] = []

    def noted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*given: Any) -> Any:
            done.append(name)
            return call(*given)

        return noting

    case = factory.case()
    cases = (replace(case, variants=tuple(replace(one, build=noted(one.name, one.build)) for one in case)),)
    monkeypatch.setattr(Store, "outcomes", noted("records", Store.outcomes))
    finished(tmp_path)
    done.clear()
    build_report(factory.matrix(), cases, Store(tmp_path), tmp_path)
    assert sorted(done) == sorted([*(one.name for one in case), "records"])
    done.clear()
    verify_report(factory.matrix(), cases, Store(tmp_path), tmp_path)
    assert done == ["records"]


@pytest.mark.parametrize(
    "name",
    [
        *("index.html", "results.json", "results.schema.json", "results.csv", "summary.md"),
        "models/conv_silu-qdq.onnx",
    ],
)
def test_every_file_is_held_against_the_records(tmp_path: Path, name: str) -> None:
    """One byte more, or no file at all."""
    path = finished(tmp_path) / name
    path.write_bytes(path.read_bytes() + b"\n")
    assert f"{name}: does not follow" in faults(tmp_path)
    path.unlink()
    assert f"{name}: missing" in faults(tmp_path)


def test_a_lost_log_is_named(tmp_path: Path) -> None:
    next((finished(tmp_path) / "logs").rglob("*.gz")).unlink()
    assert "the log cannot be read" in faults(tmp_path)


def test_layers_are_held_against_the_records(tmp_path: Path) -> None:
    """Those of a cell are missing, cut short, or another's."""
    found = sorted(finished(tmp_path).glob("layers/*/*.json.gz"))
    assert len(found) > 2
    found[0].unlink()
    found[1].write_bytes(found[1].read_bytes()[:-1])
    found[2].write_bytes(gzip.compress(b"[]"))
    said = faults(tmp_path).splitlines()
    assert sorted(line.split(":")[0] for line in said) == [str(path) for path in found[:3]]
    for path in found[1:3]:
        path.unlink()
    build_report(factory.matrix(), (factory.case(),), Store(tmp_path), tmp_path)
    assert faults(tmp_path) == ""


def timed(samples: tuple[float, ...]) -> dict[str, Any]:
    return {"latency": Latency(samples, 10, "monotonic"), "phases": {"build": 0.1, "time": 0.1}}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        *(
            ({stamp: ""}, f"has no {stamp} among its stamps")
            for stamp in ("model_sha256", "engine_version", "via", "when", "run", "harness_version")
        ),
        ({"packages": ()}, "has no image_digest or packages"),
        (timed(()), "was timed and has no samples"),
        (timed((0.1, 0.0)), "1 of 2 samples are no time"),
        (timed((0.1, -1.0)), "1 of 2 samples are no time"),
        ({**timed((0.1, 0.1)), "phases": {"build": 0.1}}, "2 samples and was not timed"),
        ({"state": "not_run", "layers": (), "end": None}, "is not_run and does not say why"),
    ],
)
def test_a_record_that_says_too_little_is_named(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    """It could not be compared, a median of no samples would be a figure, or the reader would not know."""
    found = factory.outcome("qdq", "rtx15")
    stamps = {name: fields[name] for name in fields if hasattr(found.stamps, name)}
    rest = {name: value for name, value in fields.items() if name not in stamps}
    bad = replace(found, stamps=replace(found.stamps, **stamps), **rest)
    assert said in faults(finished(tmp_path, bad))


@pytest.mark.parametrize(
    "stamps",
    [{"when": "yesterday"}, {"when": "../../../up/"}, {"run": "../../../../up"}, {"run": "two words"}],
    ids=str,
)
def test_a_run_without_a_name_or_a_time_is_shown_and_named(tmp_path: Path, stamps: dict[str, Any]) -> None:
    """Its history would lie in another folder, or be a file that no later report can read."""
    outcome = factory.outcome("qdq", "rtx15")
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    odd = replace(outcome, stamps=replace(outcome.stamps, **stamps))
    assert "`when` no time" in faults(finished(folder, odd))
    assert not list(tmp_path.rglob("history"))
    assert not list(tmp_path.rglob("*up*"))


def test_a_result_of_another_version_than_today_s_is_no_fault(tmp_path: Path) -> None:
    """As after matrix.yaml was moved to a newer patch: the report shows it as stale, its history keeps it."""
    outcome = factory.outcome("qdq", "rtx15")
    old = replace(outcome, stamps=replace(outcome.stamps, engine_version="1.5.0.98"))
    assert faults(finished(tmp_path, old)) == ""
    (record,) = (tmp_path / "history").glob("*.json")
    assert '"engine": "1.5.0.98"' in record.read_text()
    record.unlink()
    assert f"{record.name}: missing or short" in faults(tmp_path)


def published(folder: Path) -> str:
    """Return the faults of a folder without its records."""
    return "\n".join(verify_published(factory.matrix(), (factory.case(),), folder))


def test_every_cell_is_accounted_for(tmp_path: Path) -> None:
    """A cell that is gone from results.json, or belongs to no target."""
    path = finished(tmp_path) / "results.json"
    assert published(tmp_path) == ""
    data = json.loads(path.read_text())
    gone = data["cells"].pop(0)
    data["cells"].append({**gone, "id": "another"})
    path.write_text(json.dumps(data))
    assert f"by 2 cells: another, {gone['id']}" in published(tmp_path)


def test_results_that_break_the_schema_are_named_by_place(tmp_path: Path) -> None:
    """Field and value; and a file that is no JSON is one sentence."""
    path = finished(tmp_path) / "results.json"
    data = json.loads(path.read_text())
    data["cells"][2]["class"] = "fine"
    path.write_text(json.dumps(data))
    assert "$.cells[2].class: 'fine'" in published(tmp_path)
    path.write_text("{")
    assert "results.json: not JSON" in published(tmp_path)
