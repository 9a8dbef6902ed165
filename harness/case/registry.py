"""Finds the case modules, imports them and checks their declarations."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from harness.bounded import read_bytes
from harness.case.measured import FILE, read, with_measured
from harness.case.model import Case, Variant, line_in
from harness.case.twins import FILE as TYPES
from harness.case.twins import with_twins
from harness.errors import HandledError


def load_cases(folder: Path) -> tuple[Case, ...]:
    """Return the cases of a folder, sorted by name: one module a case, each with a module constant `CASE`.

    `measured.yaml` in the same folder adds to the variants' expectations. Raises HandledError, naming
    the file, for a module that does not import, declares no case or declares one of a name that is taken, and for a
    folder that is missing or holds no case modules.
    """
    if not folder.is_dir():
        raise HandledError(
            f"{folder}: no such folder of cases; run from the project's top folder or give --cases"
        )
    return _load(folder)


def _load(folder: Path) -> tuple[Case, ...]:
    return with_measured(load_declared(folder), read(folder / FILE))


def load_declared(folder: Path, names: Collection[str] = ()) -> tuple[Case, ...]:
    """Return the cases of a folder as their modules declare them, sorted by name; raises as `load_cases` does.

    With `names`, no more modules are read than it takes to find those: first the ones that are called so.
    """
    cases: dict[str, Case] = {}
    wanted = set(names)
    for path in sorted(folder.glob("*.py"), key=lambda path: (path.stem not in wanted, path)):
        if path.name.startswith("_"):
            continue
        if wanted and wanted <= cases.keys():
            break
        case = getattr(_import(path), "CASE", None)
        if not isinstance(case, Case):
            raise HandledError(f"{path}: declares no case; end it with CASE = Case(...)")
        if case.name in cases:
            raise HandledError(f"{path}: a case called {case.name!r} exists already; rename one")
        cases[case.name] = with_twins(placed(case, path), folder / TYPES)
    if not cases:
        raise HandledError(f"{folder}: holds no case modules")
    return tuple(cases[name] for name in sorted(cases))


def _import(path: Path) -> ModuleType:
    name = f"_compat_cases.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise HandledError(f"{path}: not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a case module is user code: anything may come out of it
        del sys.modules[name]
        said: object = error
        line = line_in(str(path.absolute()), error)
        if isinstance(error, SyntaxError):
            said, line = error.msg, error.lineno if error.filename == str(path.absolute()) else line
        where = f"{path}:{line}" if line else path
        raise HandledError(f"{where}: cannot be imported: {type(error).__name__}: {said}") from error
    return module


def placed(case: Case, file: Path) -> Case:
    """Return a case whose variants know the folder of their data; raises HandledError for a missing file."""
    return replace(case, variants=tuple(_placed(variant, file) for variant in case))


def _placed(variant: Variant, file: Path) -> Variant:
    data = variant.data
    if data is None:
        return variant
    if data.calibration and variant.recipe.calibrator is None:
        raise HandledError(
            f"{file}: variant {variant.name!r}: has data for calibration and a recipe without a calibrator; add one"
        )
    folder = file.parent.resolve()
    found = hashlib.sha256(repr((data.max_rel, data.cosine)).encode())
    for what in ("inputs", "expected", "calibration"):
        path = replace(data, folder=str(folder)).path(what)
        try:
            found.update(f"{what}:{hashlib.sha256(read_bytes(path)).hexdigest() if path else ''}\n".encode())
        except OSError as error:
            raise HandledError(
                f"{file}: variant {variant.name!r}: its {what} in {path} cannot be read ({error.strerror})"
            ) from error
    return replace(variant, data=replace(data, folder=str(folder), sha256=found.hexdigest()))
