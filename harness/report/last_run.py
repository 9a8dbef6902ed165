"""What a report says of the last run: how many of its cells were taken from earlier ones.

It is filled in afterwards, so that a run in which nothing was measured anew need not write the report again.
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING

from harness.errors import HandledError
from harness.record.runs import read_last
from harness.report.packed import RESULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from harness.record.runs import LastRun

_IN_RESULTS = re.compile(r'\A(\{\n"schema": .*\n)(?:"last_run": .*\n)?')
_ON_PAGE = re.compile(r'(?:<p id="last-run">[^<]*</p>\n)?</footer>')
_IN_SUMMARY = re.compile(r"\A(# .*\n\n)(?:\*Last run: .*\*\n\n)?")


def with_last_run(texts: Mapping[str, str], last: LastRun | None) -> dict[str, str]:
    """Return the texts of a report by their places, those that tell of the last run with what they are to say of it."""
    return {name: _FILLED[name](text, last) if name in _FILLED else text for name, text in texts.items()}


def renewed(folder: Path) -> dict[str, str]:
    """Return the files of a report that tell of the last run, by place, as they are to be now.

    Raises HandledError where one cannot be read.
    """
    texts = {}
    for name in _FILLED:
        try:
            texts[name] = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise HandledError(
                f"{folder / name}: cannot be read ({error}); run `trt-compat report`"
            ) from error
    return with_last_run(texts, read_last(folder))


def _in_results(text: str, last: LastRun | None) -> str:
    told = {key: value for key, value in dataclasses.asdict(last).items() if key != "made_of"} if last else {}
    line = f'"last_run": {json.dumps(told)},\n' if last else ""
    return _IN_RESULTS.sub(lambda found: found[1] + line, text, count=1)


def _on_page(text: str, last: LastRun | None) -> str:
    line = f'<p id="last-run">Last run: {last}.</p>\n' if last and last.reused else ""
    start = text.rfind("</footer>")
    start = text.rfind("\n", 0, text.rfind("\n", 0, start)) if start >= 0 else 0
    return text[:start] + _ON_PAGE.sub(lambda _: f"{line}</footer>", text[start:], count=1)


def _in_summary(text: str, last: LastRun | None) -> str:
    line = f"*Last run: {last}.*\n\n" if last and last.reused else ""
    return _IN_SUMMARY.sub(lambda found: found[1] + line, text, count=1)


_FILLED: dict[str, Callable[[str, LastRun | None], str]] = {
    RESULTS: _in_results,
    "index.html": _on_page,
    "summary.md": _in_summary,
}
