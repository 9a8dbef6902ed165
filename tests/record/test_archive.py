"""What is packed: the same bytes each time, read within bounds, and damage is one sentence."""

from __future__ import annotations

import contextlib
import importlib
import io
import lzma
import random
import re
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from harness.errors import HandledError, InfraError
from harness.record import archive
from harness.record.archive import decompress, members, pack
from tests.near import SAME, near

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

FILES = {"b.txt": b"two", "a/b.txt": b"", f"{'n' * 150}/{'m' * 150}.txt": b"long", "c.txt": bytes(1024)}


def unpack(path: Path) -> dict[str, bytes]:
    return {name: data for name, _, data in members(path, decompress(path))}


def tar(*files: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a tar of files, all of a kind."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as made:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.type = kind
            made.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def header(size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a member whose header says a size that is not so."""
    member = tarfile.TarInfo("records/a.jsonl")
    member.type = kind
    member.size = size
    return member.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def test_files_come_back_and_any_tar_reads_them(tmp_path: Path) -> None:
    """Long names and empty files too."""
    path = tmp_path / "logs.tar.xz"
    path.write_bytes(pack("logs", FILES))
    assert unpack(path) == {f"logs/{name}": data for name, data in FILES.items()}
    with tarfile.open(path) as made:
        assert made.getnames() == sorted(f"logs/{name}" for name in FILES)


def test_the_same_files_give_the_same_bytes() -> None:
    """In whatever order they come."""
    assert pack("logs", FILES) == pack("logs", dict(reversed(FILES.items())))
    with tarfile.open(fileobj=io.BytesIO(pack("logs", FILES))) as made:
        assert {(each.mtime, each.uid, each.gid, each.uname, each.mode) for each in made} == {
            (0, 0, 0, "", 0o644)
        }


GOOD = lzma.compress(tar(("records/a.jsonl", b"x" * 5000)))
#: What is said of them, by how their names below begin.
WHY = {
    "empty": "it is cut short",
    "no xz": "Input format not supported",
    "cut short": "it is cut short",
    "a byte differs": "Corrupt input data",
    "goes on": "something follows its end",
    "another form": "Input format not supported",
    "no tar": "no member begins at byte 0",
    "a name of no UTF-8": "no member begins at byte 0: 'utf-8' codec can't decode byte 0xff",
    "an empty tar": "no member begins at byte 0",
    "the tar has no end": "no member begins at byte 1024",
    "the tar is cut short": "'records/a.jsonl' is cut short",
    "a bomb": "it unpacks to more than 2 MiB",
    **dict.fromkeys(("a size below", "a size that", "a size beyond"), "'records/a.jsonl' is cut short"),
}
DAMAGED: dict[str, bytes] = {
    "empty": b"",
    "no xz": b"what a web server says of a missing file",
    "cut short": GOOD[: len(GOOD) // 2],
    "cut short by a byte": GOOD[:-1],
    "a byte differs": GOOD[:60] + bytes([GOOD[60] ^ 1]) + GOOD[61:],
    "goes on": GOOD + b"x",
    "another form": lzma.compress(b"x" * 99, lzma.FORMAT_ALONE),
    "no tar": lzma.compress(b"x" * 5000),
    "an empty tar": lzma.compress(b""),
    "the tar has no end": lzma.compress(tar(("records/a.jsonl", b"x" * 512))[:1024]),
    "the tar is cut short": lzma.compress(tar(("records/a.jsonl", b"x" * 5000))[:2000]),
    "a name of no UTF-8": lzma.compress(tar((f"records/{chr(0xDCFF)}", b"x"))),
    "a size below nothing": lzma.compress(header(-1024)),
    "a size that leads back": lzma.compress(header(-512, tarfile.GNUTYPE_LONGNAME)),
    "a size beyond the end": lzma.compress(header(10_000_000_000)),
    "a bomb": lzma.compress(tar(("records/a.jsonl", bytes(3 << 20)))),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_archive_is_one_sentence(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the file, and nothing is written for it anywhere."""
    monkeypatch.setattr(archive, "LIMIT", 2 << 20)
    path = tmp_path / "in" / "records.tar.xz"
    path.parent.mkdir()
    path.write_bytes(DAMAGED[kind])
    why = re.escape(next(said for begins, said in WHY.items() if kind.startswith(begins)))
    with pytest.raises(
        InfraError, match=rf"records\.tar\.xz: cannot be unpacked \(.*{why}.*\); get it again"
    ) as caught:
        unpack(path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.rglob("*")) == [path.parent, path]


def test_no_more_than_the_limit_is_unpacked_of_a_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small it is packed: a gigabyte of zeros is 150 KB."""
    asked: list[int] = []

    class Counting:
        eof, needs_input, unused_data = False, False, b""

        def decompress(self, _data: bytes, most: int) -> bytes:
            asked.append(most)
            return bytes(most)

    monkeypatch.setattr(archive, "LIMIT", 3 << 20)
    monkeypatch.setattr(lzma, "LZMADecompressor", lambda *_: Counting())
    path = tmp_path / "records.tar.xz"
    path.touch()
    with pytest.raises(InfraError, match="more than 3 MiB"):
        unpack(path)
    assert asked == [(3 << 20) + 1]


def test_what_asks_for_much_memory_to_be_unpacked_is_refused(tmp_path: Path) -> None:
    """A dictionary of 128 MiB is no harm in itself, and no program's usual one."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 128 << 20}]
    data = lzma.LZMACompressor(filters=filters)
    path = tmp_path / "records.tar.xz"
    try:
        path.write_bytes(data.compress(tar(("records/x", b"x"))) + data.flush())
    except MemoryError:
        pytest.skip("this machine has no memory to make one")
    with pytest.raises(InfraError, match=r"[Mm]emory usage limit"):
        unpack(path)


def test_what_another_program_packs_at_its_best_is_unpacked(tmp_path: Path) -> None:
    """`xz -9` asks for 65 MiB."""
    (tmp_path / "records.tar.xz").write_bytes(lzma.compress(tar(("records/x", b"x")), preset=9))
    assert unpack(tmp_path / "records.tar.xz") == {"records/x": b"x"}


def test_as_much_as_the_limit_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was packed; docs/results.md says how much that is."""
    assert archive.LIMIT == 256 * 1024 * 1024
    data = archive.compress("x", bytes(2 << 20))
    monkeypatch.setattr(archive, "LIMIT", 2 << 20)
    assert archive.compress("x", bytes(2 << 20)) == data
    (tmp_path / "x.xz").write_bytes(data)
    assert archive.decompress(tmp_path / "x.xz") == bytes(2 << 20)
    with pytest.raises(InfraError, match=r"no\.xz: cannot be read \(No such file"):
        archive.decompress(tmp_path / "no.xz")


def test_a_reader_may_set_a_lower_limit(tmp_path: Path) -> None:
    """What a stranger sent in is read with less than a run of the project's own."""
    (tmp_path / "x.xz").write_bytes(archive.compress("x", bytes(1 << 20)))
    assert archive.decompress(tmp_path / "x.xz", 1 << 20) == bytes(1 << 20)
    with pytest.raises(InfraError, match=r"x\.xz: cannot be unpacked \(it unpacks to more than 0 MiB\)"):
        archive.decompress(tmp_path / "x.xz", (1 << 20) - 1)


def test_what_cannot_be_made_shorter_is_unpacked_up_to_the_limit_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packed it is longer than it was."""
    monkeypatch.setattr(archive, "LIMIT", 1 << 20)
    data = random.Random(1).randbytes(1 << 20)  # noqa: S311
    (tmp_path / "x.xz").write_bytes(archive.compress("x", data))
    assert (tmp_path / "x.xz").stat().st_size > 1 << 20
    assert archive.decompress(tmp_path / "x.xz") == data


def test_the_tar_of_an_old_program_is_read(tmp_path: Path) -> None:
    """It marks a plain file with a NUL."""
    (tmp_path / "records.tar.xz").write_bytes(lzma.compress(tar(("records/x", b"x"), kind=tarfile.AREGTYPE)))
    assert unpack(tmp_path / "records.tar.xz") == {"records/x": b"x"}


def test_what_could_not_be_unpacked_again_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LIMIT", 2 << 20)
    with pytest.raises(HandledError, match="logs: 3 MiB, and what is packed may hold 2 MiB"):
        pack("logs", {"a": bytes(3 << 20)})


def test_a_python_without_lzma_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are built without."""
    monkeypatch.setattr(archive, "lzma", None)
    (tmp_path / "records.tar.xz").write_bytes(GOOD)
    with pytest.raises(HandledError, match=r"records\.tar\.xz: this Python was built without lzma"):
        unpack(tmp_path / "records.tar.xz")
    with pytest.raises(HandledError, match="logs: this Python was built without lzma"):
        pack("logs", FILES)


def test_the_module_is_loaded_by_a_python_without_lzma(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else works there would not, if it were not."""
    monkeypatch.setitem(sys.modules, "lzma", None)
    monkeypatch.delitem(sys.modules, archive.__name__)
    monkeypatch.setattr("harness.record.archive", archive)
    assert importlib.import_module(archive.__name__).lzma is None


@SAME
@given(near(tar(("records/a.jsonl", b"x" * 600), ("records/b", b""))), near(b""))
def test_what_is_near_an_archive_is_read_or_refused(tmp_path: Path, tarred: bytes, end: bytes) -> None:
    path = tmp_path / "records.tar.xz"
    for data in (lzma.compress(tarred), lzma.compress(tarred)[: -1 - len(end)] + end):
        path.write_bytes(data)
        with contextlib.suppress(InfraError):
            assert all(name for name, _, _ in members(path, decompress(path)))
