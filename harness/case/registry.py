"""Finds the case modules, imports them and checks their declarations."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import signal
import sys
import threading
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from harness.bounded import read_bytes
from harness.case.measured import FILE, read, with_measured
from harness.case.model import Case, Variant
from harness.errors import HandledError

#: Seconds that the import of a case module may take.
SECONDS = 60.0


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
        cases[case.name] = placed(case, path)
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
        with _limited(SECONDS):
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except _TookTooLong:
        del sys.modules[name]
        raise HandledError(f"{path}: was not imported after {SECONDS:g} s; mend what it waits for") from None
    except BaseException as error:  # a case module is user code: anything may come out of it
        del sys.modules[name]
        said = error.msg if isinstance(error, SyntaxError) else error
        raise HandledError(
            f"{path}{_line_in(path, error)}: cannot be imported: {type(error).__name__}: {said}"
        ) from error
    return module


class _TookTooLong(BaseException):
    """The time is up; no Exception, for the code that is ended may catch those."""


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise _TookTooLong in the code within after so many seconds, and again each second until it heeds that.

    What a native library does not return from is not ended, nor what runs in another thread than the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    done = False

    def ring(*_: object) -> None:
        # It may ring while it is being turned off.
        if not done:
            raise _TookTooLong

    before = signal.signal(signal.SIGALRM, ring)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        done = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)


def _line_in(path: Path, error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.lineno and error.filename == str(path.absolute()):
        return f":{error.lineno}"
    line = ""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path.absolute()):
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line


def placed(case: Case, file: Path) -> Case:
    """Return a case whose variants know where their data lie; raises HandledError for a file that is not there."""
    if not any(variant.data for variant in case):
        return case
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
