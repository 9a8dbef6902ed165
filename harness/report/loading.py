"""Reads a results.json that somebody wrote."""

from __future__ import annotations

from pathlib import Path

from harness.bounded import parse_json
from harness.errors import HandledError
from harness.report.model import Results
from harness.report.packed import content, results_file


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
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise HandledError(
            f"{path}: not a results.json that this harness can read ({error}); "
            "write it with `trt-compat report`"
        ) from error
