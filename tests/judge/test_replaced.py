"""The table of calls that are gone: each is told where it helps, and is really gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.judge.diagnosis import load_signatures
from harness.judge.replaced import REPLACED, Replaced

pytestmark = pytest.mark.unit

CAPABILITIES = Path(__file__).parents[2] / "docs" / "capabilities.md"
CALLS = [call for calls in REPLACED.values() for call in calls]


def columns(name: str) -> dict[str, str]:
    """Return which versions have a name, as the page says that is written from their bindings."""
    lines = [line for line in CAPABILITIES.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    heads = [cell.strip() for cell in lines[-1].split("|")]
    for line in lines:
        cells = [cell.strip() for cell in line.split("|")]
        if cells[1] == "name":
            heads = cells
        if cells[1] == f"`{name}`":
            return dict(zip(heads[2:], cells[2:], strict=True))
    return {}


def test_every_table_is_that_of_a_signature() -> None:
    assert REPLACED.keys() <= {signature.id for signature in load_signatures()}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.old)
def test_every_line_has_its_place_in_nvidias_guide(call: Replaced) -> None:
    assert call.url.startswith("https://docs.nvidia.com/deeplearning/tensorrt/11.")
    assert call.old
    assert call.new


def test_what_the_bindings_show_is_gone_in_11_and_was_there_in_10() -> None:
    """Of the names that the adapter asks for; NVIDIA's guide alone speaks of the others."""
    shown = {call.old: columns(call.old) for call in CALLS}
    told = {name: found for name, found in shown.items() if found}
    assert len(told) >= 5
    for name, found in told.items():
        assert [found[version] for version in ("11.0", "11.2", "11.4")] == ["-"] * 3, name
        assert found["10.16"] == "yes", name
