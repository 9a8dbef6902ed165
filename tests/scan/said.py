"""Code that is scanned: its uses, as words that a test can compare."""

from __future__ import annotations

import textwrap
from pathlib import Path

from harness.scan.files import one_file, reader_of
from harness.scan.judged import ScanFinding, judged
from harness.scan.uses import Found


def found(folder: Path, name: str, code: str) -> Found:
    path = folder / name
    path.write_text(textwrap.dedent(code), encoding="utf-8")
    reader = reader_of(name)
    assert reader, name
    return one_file(str(path), reader)


def findings(
    folder: Path, name: str, code: str, lowest: str = "", highest: str = "11.1"
) -> list[ScanFinding]:
    return judged(found(folder, name, code), lowest, highest)


def said(folder: Path, name: str, code: str, lowest: str = "", highest: str = "11.1") -> list[str]:
    """Return each finding as "LINE NAME", with a ? where it is guarded."""
    some = findings(folder, name, code, lowest, highest)
    return [f"{each.line} {each.name or each.text}{'?' if each.guarded else ''}" for each in some]
