"""What the panel of a cell tells beside the claims that stand in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.case import Class, Expectation, Link
from harness.report.page.conclusions import concluded
from tests.report.handmade import cell, variant

pytestmark = pytest.mark.unit

LINK = Link("https://github.com/NVIDIA/TensorRT/issues/3870", "TensorRT issue 3870")


def test_what_stands_in_no_column_is_a_line_and_no_headline() -> None:
    """Of something alike, and of a source that names no version: told with the row, and the cell is still not run."""
    alike = Expectation.reported(Class.BUILD_FAILED, ">=8.6", LINK, scope="sibling")
    unnamed = Expectation.reported(Class.OK, None, LINK, level="builds")
    row = replace(variant(), expectations=(alike, unnamed))
    told = concluded(cell(Class.NOT_RUN), row, "")
    assert told["claims"] == [0, 1]
    assert told["state"] == "Not run"
