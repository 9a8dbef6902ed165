"""The page as it is seen without some colours or any: nothing is told by colour alone, all text can be read."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.report.labels import MARKS
from harness.words import Class
from tests.report.browsing import Opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

CONTRAST = Path(__file__).with_name("contrast.js")
#: On linear RGB, at severity 1.0: Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of
#: color vision deficiency", IEEE Transactions on Visualization and Computer Graphics 15 (6), 2009; greyscale is
#: the luminance of Rec. 709.
SIGHTS: dict[str, list[list[float]]] = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
    "greyscale": [[0.2126, 0.7152, 0.0722]] * 3,
}

#: Every class measured, measured before, reported, guessed and out of date, with every mark, in the page's own style.
EVERY_STATE = """() => {
  const row = document.querySelector('#grid tr.variant');
  const made = [];
  const ground = getComputedStyle(document.body).backgroundColor;
  for (const badge of document.querySelectorAll('.legend > div:first-child .badge')) {
    const name = badge.className.match(/k-(\\w+)/)[1];
    for (const [bucket, corner, under] of [['expected', '', ''], ['accepted', '', 'before'], ['reported', '', 'users'], ['guessed', '', 'guess'], ['stale', '', 'old'],
      ['regressed', '!', ''], ['new', '+', ''], ['fixed', '★', ''], ['disputed', '≶', '']]) {
      const classes = badge.className.replace('badge ', '').trim() + ' b-' + bucket;
      const cell = document.createElement('td');
      cell.className = classes;
      cell.innerHTML = `<a><b class="badge ${classes}">${badge.textContent}</b><sup>${corner}</sup><i>${under}</i></a>`;
      row.append(cell);
      made.push([name + ' ' + bucket, cell]);
    }
  }
  return made.map(([state, cell]) => {
    const badge = cell.querySelector('.badge');
    const before = getComputedStyle(badge, '::before');
    return { state, letters: badge.textContent, mark: cell.querySelector('sup').textContent, under: cell.querySelector('i').textContent,
      shape: [before.borderRadius, before.transform, before.inset].join(), line: before.borderTopStyle,
      hatched: getComputedStyle(cell.querySelector('a')).backgroundImage !== 'none',
      filled: !['rgba(0, 0, 0, 0)', ground].includes(before.backgroundColor), fill: before.backgroundColor, ink: getComputedStyle(badge).color };
  });
}"""  # noqa: E501


def states(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(EVERY_STATE)
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_two_states_differ_in_colour_alone(browser: Browser, folder: Path, scheme: Any) -> None:
    """Letters and shape tell classes apart; a word, fill, line or hatching, or a mark, what kind of news it is."""
    made = Opened(browser, folder / "index.html", color_scheme=scheme)
    found = states(made.page)
    assert len(found) == 9 * len(MARKS)
    same = [
        (one["state"], other["state"])
        for one, other in combinations(found, 2)
        if all(one[key] == other[key] for key in ("letters", "shape", "mark", "under"))
    ]
    assert same == []
    kinds: dict[str, set[tuple[str, bool, bool]]] = {}
    for entry in found:
        cls, kind = entry["state"].split()
        mark = next(mark for key, mark in MARKS.items() if key == cls)
        if mark.shape != "none" and cls != Class.INFRA_ERROR:
            kinds.setdefault(kind, set()).add((entry["line"], entry["filled"], entry["hatched"]))
    assert kinds["expected"] == kinds["accepted"] == {("solid", True, False)}
    assert kinds["reported"] == {("solid", False, False)}
    assert kinds["guessed"] == {("dotted", False, False)}
    assert {hatched for _, _, hatched in kinds["stale"]} == {True}
    made.context.close()


def rgb(colour: str) -> list[float]:
    return [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")]


def lab(colour: Sequence[float], sight: list[list[float]]) -> tuple[float, float, float]:
    """Return CIELAB (D65) of an sRGB colour as this sight has it."""
    plain = [
        (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4) for v in (part / 255 for part in colour)
    ]
    r, g, b = (min(1.0, max(0.0, sum(k * v for k, v in zip(row, plain, strict=True)))) for row in sight)
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("sight", ["protanopia", "deuteranopia", "tritanopia"])
def test_good_and_bad_fills_differ_for_every_kind_of_colour_vision(
    browser: Browser, folder: Path, scheme: Any, sight: str
) -> None:
    """Colour is no more than a help, but it should be one: works, lost precision and fails are far apart."""
    made = Opened(browser, folder / "index.html", color_scheme=scheme)
    fills = {
        entry["state"].split()[0]: rgb(entry["fill"])[:3]
        for entry in states(made.page)
        if " expected" in entry["state"]
    }
    made.context.close()
    for one, other in combinations(("ok", "precision_lost", "build_failed"), 2):
        apart = sum(
            (a - b) ** 2
            for a, b in zip(lab(fills[one], SIGHTS[sight]), lab(fills[other], SIGHTS[sight]), strict=True)
        )
        assert apart**0.5 > 15, (one, other)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("sight", ["all colours", *SIGHTS])
def test_all_text_has_contrast(browser: Browser, folder: Path, scheme: Any, sight: str) -> None:
    """WCAG 2.2 AA, 4.5:1 whatever the size, as it is seen: first screen, matrix, legend, panel with graph, help."""
    address = "#a=rtx14&b=rtx15&cell=conv_silu%5Bqdq%5D-rtx15&vs=rtx16"
    made = Opened(
        browser, folder / "index.html", address, color_scheme=scheme, viewport={"width": 1440, "height": 900}
    )
    page = made.page
    page.locator("#panel figure").nth(1).wait_for()
    states(page)
    page.evaluate("document.getElementById('help').show()")
    found = page.evaluate(f"({CONTRAST.read_text()})({SIGHTS.get(sight, 'null')})")
    assert found["low"] == []
    assert found["looked"] > 400
    made.context.close()
