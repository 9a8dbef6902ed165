"""docs/reports.md, which holds each report against its case, knows every source and no variant that is not there."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from harness.case import Case, load_cases

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
CASES = load_cases(ROOT / "cases")
SECTIONS = dict(
    re.findall(
        r"^## (\w+)\n(.*?)(?=^## |\Z)",
        (ROOT / "docs/reports.md").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def test_each_case_has_a_section_and_each_section_a_case() -> None:
    """Who adds a case says there what its reports say; of one that nobody reported, that nobody did."""
    assert set(SECTIONS) == {case.name for case in CASES}


@each_case
def test_every_source_of_a_case_is_in_its_section(case: Case) -> None:
    """Who adds a claim from a new source says there what that source says."""
    sources = [claim.source for variant in case for claim in variant.expectations]
    addresses = {link.url for link in (*sources, *case.links) if link is not None}
    linked = set(re.findall(r"\]\((https://[^)]+)\)", SECTIONS[case.name]))
    assert addresses - linked == set()


@each_case
def test_every_variant_that_a_section_names_is_there(case: Case) -> None:
    """A name with a star stands for several; one with a hyphen is nothing else's."""
    names = [variant.name for variant in case]
    named = set(re.findall(r"`([a-z0-9*]+(?:-[a-z0-9*]+)+)`", SECTIONS[case.name]))
    assert named | set(names) & set(re.findall(r"`(\w+)`", SECTIONS[case.name]))
    assert [name for name in named if not any(fnmatch(one, name) for one in names)] == []
