"""Kept conclusions do not change a report's bytes, and are made anew after any change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.case import Case
from harness.matrix import Matrix
from harness.record.outcome import Outcome
from harness.record.store import Store
from harness.report import results
from harness.report.kept import Kept
from harness.report.writer import build_report
from tests.report import factory

pytestmark = pytest.mark.unit

#: A second case, without records.
OTHER = replace(factory.case(), name="other")


def stored(folder: Path, *more: Outcome) -> Store:
    found = factory.outcomes()
    found.pop("conv_silu.qdq-trt102", None)
    with Store(folder, run="r1") as store:
        for outcome in (*found.values(), *factory.two_gpus(), *more):
            store.append(outcome)
    return store


def written(
    folder: Path,
    store: Store,
    kept: Kept | None = None,
    *,
    matrix: Matrix | None = None,
    cases: tuple[Case, ...] = (factory.case(), OTHER),
) -> dict[str, bytes]:
    """Write a report and return its files."""
    build_report(matrix or factory.matrix(), cases, store, folder, kept=kept)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the cases whose part is made, as they are."""
    names: list[str] = []
    plain = results._part

    def part(found: results.Recorded, case: Case, *rest: object) -> results.CasePart:
        names.append(case.name)
        return plain(found, case, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(results, "_part", part)
    return names


def test_a_report_of_what_was_kept_has_the_bytes_of_one_made_anew(tmp_path: Path, made: list[str]) -> None:
    store = stored(tmp_path / "store")
    plain = written(tmp_path / "plain", store)
    assert made == ["conv_silu", "other"]
    for name in ("cold", "warm"):
        assert written(tmp_path / name, store, Kept(tmp_path / "kept", "code")) == plain
    assert made == ["conv_silu", "other"] * 2, "the last one took what was kept"


def measured_again(store: Store) -> None:
    again = factory.ran("qdq", "ort131")
    with Store(store.path, run="r2") as more:
        more.append(
            replace(again, stamps=replace(again.stamps, when="2026-11-22T10:15:00.000+00:00", run="r2"))
        )


def not_tried(store: Store) -> None:
    lacking = factory.outcome("qdq", "trt86", state="not_run", reason="needs a driver", layers=(), end=None)
    with Store(store.path, run="r2") as more:
        more.append(lacking)


def no_past(store: Store) -> None:
    for path in (store.path / "history").iterdir():
        path.write_text(path.read_text().replace("precision_lost", "ok"))


@pytest.mark.parametrize("change", [measured_again, not_tried, no_past])
def test_another_record_or_past_makes_the_part_of_its_case_anew(
    tmp_path: Path, made: list[str], change: Callable[[Store], None]
) -> None:
    store, kept = stored(tmp_path / "store"), tmp_path / "kept"
    before = written(tmp_path / "first", store, Kept(kept, "code"))
    change(store)
    made.clear()
    after = written(tmp_path / "kept-report", store, Kept(kept, "code"))
    assert made == ["conv_silu"]
    assert after != before
    assert after == written(tmp_path / "plain", store)
    assert len(list(kept.iterdir())) == 2, "what no report asks for is deleted"


def other_matrix() -> Matrix:
    known = factory.matrix()
    return replace(known, targets=tuple(replace(each, label=f"{each.label}!") for each in known))


def other_case(**fields: object) -> Case:
    first, *rest = factory.case()
    return replace(factory.case(), variants=(replace(first, **fields), *rest))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sources",
    [
        {"matrix": other_matrix()},
        {"cases": (other_case(expectations=()), OTHER)},
        {"cases": (factory.case(), replace(other_case(build=lambda: factory.model(2.0)), name="other"))},
        {"cases": (other_case(title="Another title"), OTHER)},
    ],
    ids=["matrix", "claims", "model", "words"],
)
def test_another_matrix_or_case_is_never_answered_by_what_was_kept(
    tmp_path: Path, made: list[str], sources: dict[str, object]
) -> None:
    store, kept = stored(tmp_path / "store"), tmp_path / "kept"
    written(tmp_path / "first", store, Kept(kept, "code"))
    made.clear()
    report = written(tmp_path / "kept-report", store, Kept(kept, "code"), **sources)  # type: ignore[arg-type]
    assert made
    assert report == written(tmp_path / "plain", store, **sources)  # type: ignore[arg-type]


def test_other_code_makes_all_anew(tmp_path: Path, made: list[str]) -> None:
    store = stored(tmp_path / "store")
    for code in ("one", "other"):
        written(tmp_path / code, store, Kept(tmp_path / "kept", code))
    assert made == ["conv_silu", "other"] * 2


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:-9] + b"x" + data[-8:], bytes])
def test_what_is_damaged_is_passed_over(
    tmp_path: Path, made: list[str], damage: Callable[[bytes], bytes]
) -> None:
    store, kept = stored(tmp_path / "store"), tmp_path / "kept"
    plain = written(tmp_path / "first", store, Kept(kept, "code"))
    for path in kept.iterdir():
        path.write_bytes(damage(path.read_bytes()) if damage is not bytes else b"")
    made.clear()
    assert written(tmp_path / "again", store, Kept(kept, "code")) == plain
    assert made == ["conv_silu", "other"]


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    store, kept = stored(tmp_path / "store"), tmp_path / "kept"
    plain = written(tmp_path / "first", store)
    kept.write_text("no folder")
    assert written(tmp_path / "again", store, Kept(kept, "code")) == plain
