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
#: Only of the cases that have a section: a new case is one new file.
each_case = pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in SECTIONS], ids=lambda case: case.name
)


def test_each_section_is_of_a_case() -> None:
    """The five that the project started from are there, and none is of a case that is gone."""
    seeds = {"mish", "conv_silu", "instance_norm", "depthwise_qdq", "q_plugin_dq"}
    assert seeds <= set(SECTIONS) <= {case.name for case in CASES}


@each_case
def test_every_source_of_a_case_is_in_its_section(case: Case) -> None:
    """Who adds a claim from a new source says there what that source says."""
    sources = [claim.source for variant in case for claim in variant.expectations]
    addresses = {link.url for link in (*sources, *case.links) if link is not None}
    linked = set(re.findall(r"\]\((https://[^)]+)\)", SECTIONS[case.name]))
    assert addresses - linked == set()


@each_case
def test_every_variant_that_a_section_names_is_there(case: Case) -> None:
    """A name with a star stands for several."""
    names = [variant.name for variant in case]
    like = re.compile(
        r"`((?:int8|qdq|q|act|tail|fp16|fp32|calibrator|layernorm|swish|residual|int64)(?:-[a-z0-9*-]+)?)`"
    )
    named = set(like.findall(SECTIONS[case.name]))
    assert named
    # `int8` is Ultralytics' option too.
    assert [name for name in named - {"int8"} if not any(fnmatch(one, name) for one in names)] == []
