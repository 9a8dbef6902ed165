"""What is measured of engines used with another version, and the page of it."""

from __future__ import annotations

import json

import pytest

from harness.judge.diagnosis import load_signatures
from tools.reuse import page
from tools.reuse.header import GENERATIONS, Header, parse

pytestmark = pytest.mark.unit

FOUND = json.loads(page.MEASURED.read_text(encoding="utf-8"))
BUILT = [(builder["version"], each) for builder in FOUND["builders"] for each in builder["built"]]
SAID = {
    each[field]
    for reader in FOUND["readers"]
    for each in reader["read"]
    for field in ("said", "refused")
    if field in each
}


@pytest.mark.parametrize(("version", "built"), [(version, each) for version, each in BUILT if each["header"]])
def test_the_header_of_an_engine_names_version_and_generations(version: str, built: dict[str, str]) -> None:
    """Each generation has a bit of its own; what names none is not for Turing."""
    header = parse(bytes.fromhex(built["header"]))
    assert header is not None
    assert header.version == version
    if built["what"] in GENERATIONS:
        assert header.bits == 1 << GENERATIONS.index(built["what"])
    else:
        assert header.bits & 1 == 0


@pytest.mark.parametrize("data", [b"", b"ptrt" + bytes(60), b"vtrt" + bytes(20)])
def test_what_is_no_engine_has_no_header(data: bytes) -> None:
    assert parse(data) is None
    assert parse(b"vtrt" + bytes(20) + bytes([1, 7, 1, 116]) + bytes(4) + b"\x41\0\0\0") == Header(
        "1.7.1.116", 65
    )


@pytest.mark.parametrize("text", sorted((SAID | {each["said"] for _, each in BUILT}) - {""}))
def test_every_refusal_is_known(text: str) -> None:
    """The page of the report tells who pastes it what to do."""
    assert any(pattern.regex.search(text) for each in load_signatures() for pattern in each.patterns)


def test_pairs_that_end_alike_are_told_in_a_line_and_others_in_a_table() -> None:
    """On a GPU each pair has its own answer."""
    assert "pairs, those of one version among them: INVALID, does not load (no reason)." in page.reuse_page()
    own = next(each for each in FOUND["readers"][-1]["read"] if each["file"] == "1.7.1.116-default")
    foreign = {**own, "file": "1.6.1.120-default", "diagnostics": ["VERSION_MISMATCH"]}
    readers = [{"version": "1.7.1.116", "read": [{**own, "validity": "VALID", "loads": True}, foreign]}]
    assert list(page._pairs(readers))[2:] == [
        "| 1.7.1.116, default | VALID, loads |",
        "| 1.6.1.120, default | INVALID, does not load (VERSION_MISMATCH) |",
    ]
