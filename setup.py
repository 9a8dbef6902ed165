"""Copies what stands at the repository's top into the package that is built; all else is in pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

TOP = Path(__file__).resolve().parent
#: Found again by harness/shipped.py.
SHIPPED = ("matrix.yaml", "cases", "docker")


class BuildWithShipped(build_py):  # type: ignore[misc, unused-ignore]
    """The package with matrix.yaml, cases/ and docker/ in its folder `_shipped`."""

    def run(self) -> None:
        """Build the package, and copy; an editable installation finds them where they are."""
        super().run()
        if self.editable_mode:
            return
        folder = Path(self.build_lib, "harness", "_shipped")
        shutil.rmtree(folder, ignore_errors=True)
        for source in shipped_files():
            target = folder / source.relative_to(TOP)
            target.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(str(source), str(target))

    def get_outputs(self, include_bytecode: int = 1) -> list[str]:
        """Return what the build makes, the copies among it."""
        folder = Path(self.build_lib, "harness", "_shipped")
        copies = (
            [] if self.editable_mode else [str(folder / path.relative_to(TOP)) for path in shipped_files()]
        )
        return [*super().get_outputs(include_bytecode), *copies]


def shipped_files() -> list[Path]:
    """Return the files to copy."""
    found = [path for name in SHIPPED for path in (TOP / name, *sorted((TOP / name).rglob("*")))]
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


setup(cmdclass={"build_py": BuildWithShipped})
