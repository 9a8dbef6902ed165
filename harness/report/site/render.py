"""A page of the site -> HTML: no script, one style sheet, links that hold wherever the site is put."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from harness.report.labels import MARKS, READING
from harness.report.page.columns import NO_GPU
from harness.report.past import day
from harness.report.project import addresses
from harness.report.site import paths
from harness.report.site.facts import apart, signatures
from harness.report.site.titles import LONGEST_DESCRIPTION, LONGEST_TITLE
from harness.report.templates import environment
from harness.text import clip, milliseconds, visible

if TYPE_CHECKING:
    from harness.report.site.material import Material, Page

TEMPLATES = Path(__file__).parent / "templates"
#: Of a page that has none, and asks nothing of anybody.
POLICY = "script-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"


def style() -> str:
    """Return the style sheet of all pages."""
    return (TEMPLATES / paths.STYLE).read_text(encoding="utf-8")


def render(page: Page, material: Material) -> str:
    """Return a page as HTML."""
    base = material.base
    return (
        _environment()
        .get_template(page.template)
        .render(
            page.data,
            page=page,
            title=clip(visible(page.title), LONGEST_TITLE),
            description=clip(" ".join(visible(page.description).split()), LONGEST_DESCRIPTION),
            canonical=paths.address(base, page.path) if base else "",
            base=base,
            policy=POLICY,
            to=partial(paths.relative, page.path),
            material=material,
            project=addresses(),
            targets=material.targets,
            variants=material.variants,
        )
    )


@cache
def _environment() -> jinja2.Environment:
    made = environment(TEMPLATES)
    made.globals.update(paths=paths, MARKS=MARKS, apart=apart, NO_GPU=NO_GPU)
    made.globals.update(known_errors=signatures, READING=READING)
    made.filters.update(day=day, cut=partial(clip, limit=600))
    made.filters.update(sentence=_sentence, milliseconds=milliseconds)
    return made


def _sentence(text: str) -> str:
    """Return a text with its first letter in capitals and a full stop, unless it ends in one."""
    told = text[:1].upper() + text[1:]
    return told if not told or told.endswith((".", "!", "?", "…")) else f"{told}."
