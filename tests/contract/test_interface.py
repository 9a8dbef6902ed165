"""The table of TensorRT's interface says of a version what its real bindings have."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.matrix.interface import interfaces, numbers
from tests import needs
from tools.interface import python

pytestmark = pytest.mark.contract


@pytest.mark.parametrize("package", [python.PACKAGES[0], python.PACKAGES[-6], python.PACKAGES[-1]])
def test_the_table_has_the_names_of_the_bindings(package: str, stub: Path) -> None:
    needs.network()
    here = python.bindings(package, stub)
    known, version = interfaces()["python"], numbers(python.version_of(package))
    has = {name.full for name in known.names.values() if not name.lacking(version)}
    # What a base has now was the class's own.
    inherited = {full for full in has - {*here} if known.names[full].owner in here}
    assert {*here} <= has
    assert has - {*here} - inherited == set()
    assert len(inherited) < len(here) / 20
