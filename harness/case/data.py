"""Own data of a variant: arrays in files beside its case, and how far its outputs may be off."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.bounded import read_bytes
from harness.case.typed import check_types
from harness.errors import HandledError

if TYPE_CHECKING:
    from harness.case.model import Case, Variant


@dataclass(frozen=True)
class Data:
    """Files of arrays (.npz) by their paths from the case's folder, "" for what is made up or computed.

    `inputs` are by network input, `expected` by network output, `calibration` batches by network input, along the first
    axis. `max_rel` and `cosine` are how far an output may be off, None for what its precision allows. Loading a case
    fills in its `folder`, and the hash of all of it.
    """

    inputs: str = ""
    expected: str = ""
    calibration: str = ""
    max_rel: float | None = None
    cosine: float | None = None
    folder: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        check_types(self)

    @property
    def has_files(self) -> bool:
        """Tell whether it is more than how far an output may be off."""
        return bool(self.inputs or self.expected or self.calibration)

    def path(self, what: str) -> Path | None:
        """Return where the "inputs", "expected" or "calibration" lie; None where there are none."""
        name = getattr(self, what)
        return Path(self.folder) / name if name else None


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
