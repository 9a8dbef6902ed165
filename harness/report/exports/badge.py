"""`badge.svg`: the state of the matrix, or of one case, in one line, for a README."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from markupsafe import escape

from harness.report.counts import counts
from harness.report.labels import drawn_as
from harness.text import visible
from harness.words import GOOD

if TYPE_CHECKING:
    from harness.report.model import Results

_LABEL = "TensorRT matrix"
#: Buckets of cells that an engine was asked about.
_MEASURED = (
    *("regressed", "new", "disputed", "fixed", "not_reproduced"),
    *("known_failure", "fails_when_run", "expected", "new_ok"),
)
#: White text on each of these has a contrast of 4.5 or more.
_COLOURS = {"red": "#b3261e", "amber": "#8a5a00", "green": "#1a7f37", "grey": "#555555"}
#: Pixels a character of 11 px Verdana takes; `textLength` fits the text to it whatever font is there.
_CHARACTER, _MARGIN = 6.6, 6

_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {message}">
<title>{label}: {message}</title>
<rect width="{width}" height="20" rx="3" fill="#333333"/>
<path fill="{colour}" d="M{left} 0h{right_less}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z"/>
<g fill="#ffffff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="6" y="14" textLength="{label_length}">{label}</text>
<text x="{message_x}" y="14" textLength="{message_length}">{message}</text>
</g>
</svg>
"""


def badge(results: Results) -> str:
    """Return the badge: how many cells regressed, else how many newly fail, else among how many nothing regressed."""
    return _drawn(_LABEL, *_message(counts(results)))


def badge_of_case(results: Results, case: str) -> str:
    """Return the badge of one case: the same of its cells alone, and how many of those measured fail."""
    cells = tuple(cell for cell in results.cells if cell.case == case)
    message, colour = _message(counts(replace(results, cells=cells)))
    measured = [cell for cell in cells if cell.measured]
    failing = sum(drawn_as(cell) not in GOOD for cell in measured)
    told = f"{message}, {failing} of {len(measured)} fail" if measured else message
    return _drawn(case, told, colour)


def _drawn(label: str, message: str, colour: str) -> str:
    label, message = visible(label), visible(message)
    label_length, message_length = _width(label), _width(message)
    left, right = label_length + 2 * _MARGIN, message_length + 2 * _MARGIN
    return _SVG.format(
        label=escape(label),
        message=escape(message),
        colour=_COLOURS[colour],
        width=left + right,
        left=left,
        right_less=right - 3,
        label_length=label_length,
        message_length=message_length,
        message_x=left + _MARGIN,
    )


def _message(tally: dict[str, int]) -> tuple[str, str]:
    measured = sum(tally[key] for key in _MEASURED)
    if tally["regressed"]:
        return f"{tally['regressed']} regressed", "red"
    if tally["new"]:
        return f"{tally['new']} new failures" if tally["new"] > 1 else "1 new failure", "amber"
    if not measured:
        return "nothing measured", "grey"
    return f"no regression in {measured}", "green"


def _width(text: str) -> int:
    return round(len(text) * _CHARACTER)
