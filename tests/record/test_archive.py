"""An xz file is read within bounds, and damage is one sentence."""

from __future__ import annotations

import contextlib
import lzma
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given

from harness.errors import HandledError, InfraError
from harness.record import store
from harness.record.store import compress, decompress
from tests.fixtures import Patch
from tests.near import SAME, near

pytestmark = pytest.mark.unit

GOOD = lzma.compress(b"x" * 5000)
#: The damaged bytes, and why they cannot be unpacked.
DAMAGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is cut short"),
    "no xz": (b"what a web server says of a missing file", "Input format not supported"),
    "cut short": (GOOD[: len(GOOD) // 2], "it is cut short"),
    "cut short by a byte": (GOOD[:-1], "it is cut short"),
    "a byte differs": (GOOD[:60] + bytes([GOOD[60] ^ 1]) + GOOD[61:], "Corrupt input data"),
    "goes on": (GOOD + b"x", "something follows its end"),
    "another form": (lzma.compress(b"x" * 99, lzma.FORMAT_ALONE), "Input format not supported"),
    "a bomb": (lzma.compress(bytes(3 << 20)), "it unpacks to more than 2 MiB"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, kind: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(store, "LIMIT", 2 << 20)
    data, why = DAMAGED[kind]
    path = tmp_path / "results.json.xz"
    path.write_bytes(data)
    message = rf"results\.json\.xz: cannot be unpacked \(.*{re.escape(why)}.*\); get it again"
    with pytest.raises(InfraError, match=message) as caught:
        decompress(path)
    assert "\n" not in str(caught.value)


def test_no_more_than_the_limit_is_unpacked_of_a_bomb(tmp_path: Path, monkeypatch: Patch) -> None:
    """However small it is packed: a gigabyte of zeros is 150 KB."""
    asked: list[int] = []

    class Counting:
        eof, needs_input, unused_data = False, False, b""

        def decompress(self, _data: bytes, most: int) -> bytes:
            asked.append(most)
            return bytes(most)

    monkeypatch.setattr(store, "LIMIT", 3 << 20)
    monkeypatch.setattr(lzma, "LZMADecompressor", lambda *_: Counting())
    path = tmp_path / "x.xz"
    path.touch()
    with pytest.raises(InfraError, match="more than 3 MiB"):
        decompress(path)
    assert asked == [(3 << 20) + 1]


def test_what_asks_for_much_memory_to_be_unpacked_is_refused(tmp_path: Path) -> None:
    """A dictionary of 128 MiB is no harm in itself, and no program's usual one; `xz -9` asks for 65 MiB."""
    (tmp_path / "best.xz").write_bytes(lzma.compress(b"x", preset=9))
    assert decompress(tmp_path / "best.xz") == b"x"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 128 << 20}]
    data = lzma.LZMACompressor(filters=filters)
    try:
        (tmp_path / "x.xz").write_bytes(data.compress(b"x") + data.flush())
    except MemoryError:
        pytest.skip("this machine has no memory to make one")
    with pytest.raises(InfraError, match=r"[Mm]emory usage limit"):
        decompress(tmp_path / "x.xz")


def test_as_much_as_the_limit_is_packed_and_unpacked(tmp_path: Path, monkeypatch: Patch) -> None:
    """Incompressible data too, which become longer."""
    monkeypatch.setattr(store, "LIMIT", 1 << 20)
    data = random.Random(1).randbytes(1 << 20)  # noqa: S311
    (tmp_path / "x.xz").write_bytes(compress("x", data))
    assert (tmp_path / "x.xz").stat().st_size > 1 << 20
    assert decompress(tmp_path / "x.xz") == data
    with pytest.raises(InfraError, match=r"no\.xz: cannot be read \(No such file"):
        decompress(tmp_path / "no.xz")
    with pytest.raises(InfraError, match=r"x\.xz: cannot be unpacked \(it unpacks to more than 0 MiB\)"):
        decompress(tmp_path / "x.xz", (1 << 20) - 1)
    with pytest.raises(HandledError, match="records: 1 MiB, and a packed file may hold 1 MiB"):
        compress("records", data + b"x")


def test_a_python_without_lzma_says_so(tmp_path: Path) -> None:
    """Some are built without, and whatever else works is to work there."""
    (tmp_path / "x.xz").write_bytes(GOOD)
    for call in ('store.decompress(pathlib.Path("x.xz"))', 'store.compress("records", b"x")'):
        code = f"import pathlib, sys; sys.modules['lzma'] = None; from harness.record import store; {call}"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert "HandledError: " in done.stderr
        assert "without lzma" in done.stderr


@SAME
@given(near(GOOD))
def test_what_is_near_a_packed_file_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.xz").write_bytes(data)
    with contextlib.suppress(InfraError):
        assert decompress(tmp_path / "x.xz") == b"x" * 5000
