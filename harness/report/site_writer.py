"""A reports folder -> the site in a folder: its pages, and the whole report under `latest/`, packed.

Of the folder only what this wrote there before is ever replaced or removed: a list of it lies among the files.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from harness.bounded import parse_json, read_text
from harness.errors import HandledError
from harness.record.archive import ARCHIVE, archive_of, pack
from harness.record.store import LOGS
from harness.report.pack import history_of, logs_of, packed_texts
from harness.report.packed import MODELS, RESULTS
from harness.report.results import recorded, results_of
from harness.report.site import site_files
from harness.report.site.material import Beside
from harness.report.site.paths import LATEST
from harness.report.suite_pages import suite_files, suites_beside
from harness.report.writer import model_files, results_json, write_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.case import Case
    from harness.matrix import Matrix
    from harness.record.store import Store
    from harness.report.model import Results
    from harness.report.results import Commands, Models

#: The list of what was written, by its name in the folder.
MANIFEST = "site-manifest.json"
_SCHEMA = 1


def build_site(  # noqa: PLR0913  (what is recorded, and where the site goes)
    matrix: Matrix,
    cases: Sequence[Case],
    store: Store,
    folder: Path,
    *,
    base: str = "",
    commands: Commands | None = None,
) -> tuple[Path, ...]:
    """Write the site of what a store holds into a folder; return the files' paths. Nothing beside it is changed.

    `base` is the site's address, "" where it is not known.
    """
    found = recorded(matrix, cases, store, commands)
    results = results_of(found, history_of(store.path, found))
    beside = Beside(suites_beside(store.path))
    files = whole_site(results, found.models, packed_logs(store.path), base, beside)
    files |= {f"{LATEST}/{name}": data for name, data in suite_files(store.path).items()}
    return write_site(folder, files)


def whole_site(
    results: Results,
    models: Models,
    logs: bytes = b"",
    base: str = "",
    beside: Beside | None = None,
) -> dict[str, bytes]:
    """Return every file of the site by its place, the report among them, but for the pages of suites.

    `logs` is the archive of the logs, if any.
    """
    report = _report(results, models, logs, beside.suites if beside else None)
    return {
        **site_files(results, models, base, beside),
        **{f"{LATEST}/{name}": data for name, data in report.items()},
    }


def _report(
    results: Results, models: Models, logs: bytes, suites: Mapping[str, str] | None
) -> dict[str, bytes]:
    """Return the report as `pack` publishes it, with results.json unpacked as well."""
    archives = (*((LOGS,) if logs else ()), MODELS, RESULTS)
    beside = model_files(models)
    files = packed_texts(results, archives, beside, suites)
    files[RESULTS] = results_json(results).encode()
    files[MODELS + ARCHIVE] = pack(MODELS, {Path(name).name: data for name, data in beside.items()})
    return {**files, LOGS + ARCHIVE: logs} if logs else files


def packed_logs(reports: Path) -> bytes:
    """Return the archive of a folder's logs: the one that lies there, unless logs lie beside it; b"" for none."""
    archive, loose = archive_of(reports / LOGS), any((reports / LOGS).glob("*/*.txt.gz"))
    if archive.is_file() and not loose:
        return archive.read_bytes()
    found = logs_of(reports)
    return pack(LOGS, found) if found else b""


def write_site(folder: Path, files: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Write the files of a site by their places in a folder, and remove those of an earlier one that are gone.

    Raises HandledError, and changes nothing, where the folder holds a file of somebody else's in a place of the
    site's, or cannot be written.
    """
    before = _written_before(folder)
    for name in files:
        if name not in before and (folder / name).exists():
            raise HandledError(
                f"{folder / name}: is there and is no page of an earlier site; give --site another folder"
            )
    # An interrupted writing must not leave pages that the next one takes for somebody else's.
    write_files(folder, {MANIFEST: _manifest({*before, *files})})
    written = write_files(folder, files)
    _remove(folder, before - files.keys())
    return (*written, *write_files(folder, {MANIFEST: _manifest(files)}))


def _manifest(names: Iterable[str]) -> bytes:
    return (json.dumps({"schema": _SCHEMA, "files": sorted(names)}, indent=0) + "\n").encode()


def _written_before(folder: Path) -> set[str]:
    path = folder / MANIFEST
    try:
        data = parse_json(read_text(path))
        names = {str(name) for name in data["files"]} if data["schema"] == _SCHEMA else None
    except FileNotFoundError:
        return set()
    except NotADirectoryError:
        raise HandledError(f"{folder}: is no folder; give --site another one") from None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise HandledError(f"{path}: cannot be read ({error}); give --site another folder") from error
    if names is None or not all(map(_inside, names)):
        raise HandledError(f"{path}: is no list of a site's files; give --site another folder")
    return names


def _inside(name: str) -> bool:
    """Tell whether a place is one inside the folder, as this writes it."""
    place = PurePosixPath(name)
    return not place.is_absolute() and str(place) == name and ".." not in place.parts and name != "."


def _remove(folder: Path, names: Iterable[str]) -> None:
    """Remove files, and the folders that are empty without them."""
    gone = [folder / name for name in names]
    for path in gone:
        path.unlink(missing_ok=True)
    above = {
        parent for path in gone for parent in path.parents if parent != folder and folder in parent.parents
    }
    for parent in sorted(above, reverse=True):
        with contextlib.suppress(OSError):
            parent.rmdir()
