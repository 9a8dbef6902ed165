"""Reads a results.json that somebody wrote, as it is or packed by xz, as one is published."""

from __future__ import annotations

from pathlib import Path

from harness.bounded import parse_json, read_bytes
from harness.errors import HandledError
from harness.record.archive import decompress
from harness.record.from_json import OutdatedError
from harness.report.model import Results

RESULTS = "results.json"
_PACKED = ".xz"


def results_file(folder: Path) -> Path:
    """Return the place of a folder's results.json, in the form that it has."""
    plain, packed = folder / RESULTS, folder / (RESULTS + _PACKED)
    return packed if packed.is_file() and not plain.exists() else plain


def content(path: Path) -> bytes:
    """Return what a file holds, unpacked where its name says that it is packed."""
    return decompress(path) if path.suffix == _PACKED else read_bytes(path)


def load_results(path: Path | str) -> Results:
    """Return what a results.json, packed or not, or the folder that it is in holds.

    Raises HandledError where it cannot be read.
    """
    path = Path(path)
    path = results_file(path) if path.is_dir() else path
    try:
        return Results.from_json(parse_json(content(path)))
    except OSError as error:
        raise HandledError(
            f"{path}: cannot be read ({error.strerror}); `trt-compat run` makes one"
        ) from error
    except OutdatedError as error:
        raise HandledError(f"{path}: is of {error}; run again") from error
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise HandledError(
            f"{path}: not a results.json that this harness can read ({error}); "
            "write it with `trt-compat report`"
        ) from error
