"""Packs the agent into one zip in memory and starts it from the stream: no file is written, no mount is needed."""

import io
import struct
import zipfile
from pathlib import Path
from typing import Mapping, Optional

#: The program for `python -c`: read the zip from standard input into anonymous memory and import from there. The
#: current folder is never imported from: jobs write there.
BOOTSTRAP = """
import os, sys
def read(n):
    data = b""
    while len(data) < n:
        more = os.read(0, n - len(data))
        if not more: sys.exit(0)
        data += more
    return data
fd = os.memfd_create("agent")
view = memoryview(read(int.from_bytes(read(4), "big")))
while view: view = view[os.write(fd, view):]
sys.path[:] = ["/proc/self/fd/%d" % fd] + [path for path in sys.path if path]
from harness.agent.serve import main
main()
"""

#: The arguments that follow the interpreter. -B: a read-only root has no place for bytecode.
ARGUMENTS = ("-B", "-u", "-c", BOOTSTRAP)


def pack(extra: Optional[Mapping[str, bytes]] = None) -> bytes:
    """Return the length-prefixed zip of the agent, the same bytes each time; `extra` adds or replaces files in it."""
    top = Path(__file__).resolve().parent.parent
    files = {"harness/__init__.py": b""}
    for path in sorted((top / "agent").rglob("*.py")):
        files["harness/%s" % path.relative_to(top).as_posix()] = path.read_bytes()
    files.update(extra or {})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name])
    data = buffer.getvalue()
    return struct.pack(">I", len(data)) + data
