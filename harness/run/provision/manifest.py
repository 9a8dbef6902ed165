"""The list of an environment's files with their sizes, made with it: what it lacks later was damaged since.

Not their hashes, which take seconds a gigabyte at the start of every run, nor their times, which a copied cache lacks.
"""

from __future__ import annotations

import csv
import json
import os
import re
import stat
from typing import TYPE_CHECKING

from harness.bounded import SMALL, parse_json, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = "manifest.json"


def write(root: Path) -> None:
    """Write the list of what is in a folder, whole or not at all."""
    files = {str(path.relative_to(root)): size for path, size in _files(root)}
    temporary = root / f".{FILE}.{os.getpid()}"
    temporary.write_text(json.dumps(files, indent=0, sort_keys=True), encoding="utf-8")
    temporary.replace(root / FILE)


def damage(root: Path) -> str:
    """Return what is wrong with a folder, "" for nothing; one without a list was made before there were any."""
    try:
        listed = parse_json(read_text(root / FILE, SMALL))
        for name, size in listed.items():
            found = os.lstat(f"{root}/{name}")
            if found.st_size != size:
                return f"{name} has {found.st_size} bytes and not {size}"
            if stat.S_ISLNK(found.st_mode) and not (root / name).exists():
                return f"{name} leads nowhere"
    except FileNotFoundError as error:
        return "" if error.filename == str(root / FILE) else f"{_inside(root, error)} is gone"
    except OSError as error:
        return f"{_inside(root, error)}: {error.strerror}"
    except (ValueError, AttributeError, TypeError):
        return f"{FILE} is no list of files"
    return ""


def unlike_records(site_packages: Path) -> list[str]:
    """Return the packages of which a file is not as long as the package says, or is missing.

    An installer that links files out of its own cache installs the damage again.
    """
    found = []
    for record in sorted(site_packages.glob("*.dist-info/RECORD")):
        rows = csv.reader(read_text(record, SMALL).splitlines())
        sizes = {row[0]: int(row[2]) for row in rows if len(row) > 2 and row[2].isdecimal()}  # noqa: PLR2004
        inside = {site_packages / name: size for name, size in sizes.items() if not name.startswith("..")}
        if any(not path.is_file() or path.stat().st_size != size for path, size in inside.items()):
            found.append(re.sub(r"-[^-]*$", "", record.parent.name.removesuffix(".dist-info")))
    return found


def _files(root: Path) -> Iterator[tuple[Path, int]]:
    """Yield each file and link in a folder with its size, but for what Python compiles when it likes."""
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name != "__pycache__"]
        place = root / os.path.relpath(folder, root)
        for name in (*names, *(name for name in inner if (place / name).is_symlink())):
            if not name.endswith(".pyc"):
                yield place / name, (place / name).lstat().st_size


def _inside(root: Path, error: OSError) -> str:
    return str(error.filename).removeprefix(f"{root}{os.sep}")
