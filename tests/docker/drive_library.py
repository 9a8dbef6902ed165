"""Loads the registry and the compiled plugin given by their folder; prints what the plugin does with each attribute.

drive_library.py FOLDER [LIBRARY]
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

FORMATS = ("int8_linear", "int8_vectorised", "fp32", "int8_fp32", "nonsense", "")


def drive(registry: ctypes.CDLL) -> dict[str, object]:
    """Return, by "version formats", what the registry saw of a plugin made with them."""
    registry.drive.restype = ctypes.c_char_p
    seen = {}
    for version in ("1", "2"):
        for word in FORMATS:
            text = word.encode()
            seen[f"{version} {word}"] = json.loads(registry.drive(version.encode(), text, len(text) + 1))
        # A caller that does not count the closing zero.
        unclosed = registry.drive(version.encode(), b"fp32 and more", 4)
        seen[f"{version} unclosed"] = json.loads(unclosed)
    return seen


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    library = ctypes.CDLL(str(folder / "libnvinfer.so"), ctypes.RTLD_GLOBAL)
    ctypes.CDLL(sys.argv[2] if len(sys.argv) > 2 else str(folder / "libcompat_identity.so"))
    print(json.dumps(drive(library)))
