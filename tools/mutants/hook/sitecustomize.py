"""What a Python program that a test starts does first: take the mutant's code for the module, or trace for the test.

Reads three variables of the environment, and nothing of the project: it may be another Python that starts here.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.machinery
import importlib.util
import marshal
import os
import sys
from typing import Any


class _Loader(importlib.machinery.SourceFileLoader):
    code: Any = None

    def get_code(self, fullname: str) -> Any:  # noqa: ANN401, ARG002  (as the loader's base class has it)
        return self.code


class Mutated:
    """Finds one module where it always is, and gives it other code."""

    def __init__(self, name: str, code: Any) -> None:  # noqa: ANN401
        self.name = name
        self.code = code

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:  # noqa: ANN401
        """Return where the module is, with a loader that has the other code; None for every other module."""
        if fullname != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin:
            spec.loader = loader = _Loader(fullname, spec.origin)
            loader.code = self.code
        return spec


def _mutate(path: str) -> None:
    with open(path, "rb") as file:  # noqa: PTH123  (pathlib is slow to load, and every program would)
        magic, name, code = file.read(4), file.readline().decode().strip(), file.read()
    if magic == importlib.util.MAGIC_NUMBER:
        sys.meta_path.insert(0, Mutated(name, marshal.loads(code)))  # noqa: S302


def _trace(config: str, context: str) -> None:
    import coverage  # noqa: PLC0415

    tracer = coverage.Coverage(config_file=config, data_suffix=True, context=context)
    tracer.start()
    atexit.register(tracer.save)
    atexit.register(tracer.stop)


if os.environ.get("MUTANTS_CODE"):
    _mutate(os.environ["MUTANTS_CODE"])
if os.environ.get("MUTANTS_TRACE"):
    with contextlib.suppress(ImportError):  # another Python, which has no coverage
        _trace(os.environ["MUTANTS_TRACE"], os.environ.get("MUTANTS_TEST", ""))
