"""Weights that stay beside their model: too large for what protobuf holds, and read from their files by the engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Weights:
    """Files in a folder, by their names there, as the model's external data names them; `size` is that of all."""

    folder: Path
    files: tuple[str, ...]
    size: int

    def __str__(self) -> str:
        """Return their size in words."""
        return f"{self.size / 2**30:.1f} GiB"
