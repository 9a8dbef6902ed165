"""Which pages of suites lie beside a report: its page links to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.bounded import parse_json, read_bytes
from harness.errors import HandledError
from harness.record.suites import SUITES

if TYPE_CHECKING:
    from pathlib import Path


def suites_beside(reports: Path) -> dict[str, str]:
    """Return the titles of the suites that have a page in a reports folder, by the page's place in it.

    Raises HandledError where the JSON beside a page cannot be read.
    """
    found = {}
    for page in sorted((reports / SUITES).glob("*.html")):
        path = page.with_suffix(".json")
        try:
            found[f"{SUITES}/{page.name}"] = str(parse_json(read_bytes(path))["title"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise HandledError(f"{path}: cannot be read ({error}); run `trt-compat report`") from error
    return found
