"""The report of a suite in its folder, as that of any run, and the lines that tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.history import read_history, take_history, update_history
from harness.matrix import Matrix
from harness.record.outcome import Outcome
from harness.record.speaking import Today
from harness.record.store import SUITES, Store
from harness.report.model import Results
from harness.report.results import ReportSources, layer_files, results_of, run_records
from harness.report.writer import LAYERS, write_layers, write_report
from harness.suites.running import FILE, About
from harness.text import grouped
from harness.words import UNJUDGED, Class


@dataclass(frozen=True)
class SuiteReport:
    """A suite's results, and the folder that they lie in."""

    about: About
    folder: Path
    results: Results

    @property
    def page(self) -> Path:
        """Return the place of its page."""
        return self.folder / "index.html"

    def lines(self, targets: frozenset[str] | None = None) -> Iterator[str]:
        """Yield counts by target, of all or of some."""
        ends = grouped((cell.target, cell.cls) for cell in self.results.cells if cell.cls not in UNJUDGED)
        for target in (each.id for each in self.results.targets if targets is None or each.id in targets):
            counts = Counter(ends.get(target, ()))
            yield f"{self.about.name} on {target}: {', '.join(f'{counts[cls]} {cls}' for cls in Class if counts[cls])}"


def is_suite(folder: Path) -> bool:
    """Tell whether a reports folder is that of a suite."""
    return (folder / FILE).is_file()


def suite_folders(reports: Path) -> list[Path]:
    """Return the folder of each suite that a reports folder has records of, by name."""
    return [path for path in sorted((reports / SUITES).glob("*/")) if Store(path).holds_records]


def build_suites(matrix: Matrix, reports: Path) -> list[SuiteReport]:
    """Write the report of each suite in a reports folder; return them."""
    every = (build_suite(matrix, folder) for folder in suite_folders(reports))
    return [report for report in every if report]


def build_suite(matrix: Matrix, folder: Path) -> SuiteReport | None:
    """Write history and report of one suite; return it, None if no record is of a version in the matrix."""
    about, found = About.read(folder), _recorded(matrix, folder, Store(folder))
    if found is None:
        return None
    update_history(folder, run_records(found))
    report = SuiteReport(about, folder, results_of(found, read_history(folder)))
    write_layers(folder / LAYERS, layer_files(found))
    write_report(report.results, folder)
    return report


def absorb_suites(reports: Path, other: Path) -> Iterator[str]:
    """Take in the suites of another reports folder; yield a sentence on each."""
    for theirs in suite_folders(other):
        folder = reports / SUITES / theirs.name
        About.read(theirs).keep(folder)
        with Store(folder) as store:
            taken = store.absorb(Store(theirs))
        past = take_history(folder, theirs)
        yield f"{other}: {taken} records of the suite {theirs.name} and {past} of its runs of the past taken in"


def _recorded(matrix: Matrix, folder: Path, store: Store) -> ReportSources | None:
    """Return a suite's records with its cells on the targets that ran it at their present version."""
    outcomes = tuple(store.outcomes())
    known = {target.name: target for target in matrix}
    ran = {
        each.target
        for each in outcomes
        if each.target in known and known[each.target].runs_version(each.stamps.engine_version)
    }
    if not ran:
        return None
    shown = matrix.only(ran)
    cells = About.read(folder).cells(shown)
    newest: dict[str, Outcome] = {}
    for outcome in sorted(outcomes, key=lambda each: each.stamps.when):
        newest[outcome.cell] = outcome
    hashes = {key: (each.stamps.model_sha256, each.stamps.recipe_sha256) for key, each in newest.items()}
    # A report keeps no models: of the last run's model is every record that counts.
    today = {cell.id: Today(*hashes.get(cell.id, ("", "")), cell.target, "") for cell in cells}
    cases = {cell.case.name: cell.case for cell in reversed(cells)}
    return ReportSources(shown, tuple(reversed(cases.values())), cells, {}, today, outcomes, {})
