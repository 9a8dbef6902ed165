"""Makes variants ready in bounded child processes: what goes wrong there costs the cells of that variant alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.case import Case, Variant, check_variant, load_cases
from harness.case.model import Built, Unbuildable
from harness.errors import HandledError
from harness.record.outcome import State
from harness.run.child import ChildFailed, stream
from harness.run.numbers import NotFeedable
from harness.run.prepared import Prepared, prepare_variant

#: What one model may take to build, and what one variant may take for its inputs and its reference.
SECONDS = 120.0
MEMORY_MIB = 4096

_Key = tuple[str, str]


class Refused(Exception):
    """A variant cannot be made ready; its cells are recorded in `state` with `reason`."""

    def __init__(self, state: State, reason: str) -> None:
        super().__init__(state, reason)
        self.state = state
        self.reason = reason


def with_models(cases: Iterable[Case], folder: Path, *, seconds: float = SECONDS) -> tuple[Case, ...]:
    """Return the cases of a folder with every model built, and what each variant names looked up in its graph.

    A variant whose model cannot be built, or that names what is not there, is `Unbuildable`. Case modules are user
    code: a `build` that raises, hangs, crashes or takes all memory does so in a child.
    """
    known = tuple(cases)
    todo = [(case.name, variant.name) for case in known for variant in case]
    made: dict[_Key, Built | Unbuildable] = {}
    while rest := [key for key in todo if key not in made]:
        try:
            for key, model in stream(
                _models, folder.absolute(), rest, seconds=seconds, memory_mib=MEMORY_MIB
            ):
                made[key] = model  # noqa: PERF403  (what came before a failure is kept)
        except ChildFailed as error:
            case, name = next(key for key in rest if key not in made)
            sentence = f"the model of variant {case}[{name}] cannot be built: its process {error}"
            made[case, name] = Unbuildable(sentence)
    return tuple(
        replace(
            case,
            variants=tuple(replace(variant, build=made[case.name, variant.name]) for variant in case),
        )
        for case in known
    )


def _models(folder: Path, keys: Sequence[_Key]) -> Iterator[tuple[_Key, Built | Unbuildable]]:
    variants = {(case.name, variant.name): variant for case in load_cases(folder) for variant in case}
    for key in keys:
        try:
            variant = variants[key]
            built = Built(variant.model_bytes())
            check_variant(variant, built())
            yield key, built
        except HandledError as error:
            yield key, Unbuildable(str(error))


class PreparedVariants:
    """Each variant prepared, once and in a child process; safe to share between threads."""

    def __init__(self, *, seconds: float = SECONDS, memory_mib: int = MEMORY_MIB) -> None:
        self._seconds = seconds
        self._memory_mib = memory_mib
        # By identity, with the variant kept alive: hashing one walks hundreds of claims.
        self._made: dict[int, tuple[Variant, Prepared | Refused]] = {}
        self._locks: dict[int, threading.Lock] = {}

    def of(self, variant: Variant, needed: Callable[[], bool] = lambda: True) -> Prepared:
        """Return a variant prepared; raises Refused, also when `needed` says that nobody waits any more."""
        with self._locks.setdefault(id(variant), threading.Lock()):
            if id(variant) not in self._made:
                self._made[id(variant)] = variant, self._make(variant, needed)
            found = self._made[id(variant)][1]
            if isinstance(found, Refused):
                if not needed():
                    del self._made[id(variant)]
                raise found
            return found

    def _make(self, variant: Variant, needed: Callable[[], bool]) -> Prepared | Refused:
        try:
            ready = replace(variant, build=Built(variant.model_bytes()))
            (found,) = stream(
                _prepared, ready, seconds=self._seconds, memory_mib=self._memory_mib, needed=needed
            )
        except HandledError as error:
            return Refused("infra_error", str(error))
        except ChildFailed as error:
            return Refused(
                "infra_error", f"variant {variant.name!r} cannot be made ready: its process {error}"
            )
        made: Prepared | Refused = found
        return made


def _prepared(variant: Variant) -> Iterator[Prepared | Refused]:
    try:
        yield prepare_variant(variant)
    except NotFeedable as refusal:
        yield Refused("not_applicable", str(refusal))
    except HandledError as error:
        yield Refused("infra_error", str(error))
