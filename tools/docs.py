"""Writes the files of the repository that are made from its code: `make docs`.

docker/docker-bake.json follows from matrix.yaml, the table of workarounds in docs/check.md from the rewrites. The table
of capabilities and the pages of the adapter's calls are found out on the real bindings of every version; where this
machine lacks a program or a download for that they are left as they are.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from pathlib import Path

from harness.matrix import Matrix, load_matrix
from harness.models.rewrites import REWRITES
from harness.run.provision.images import build_arguments, planned_image
from tests.contract import written

TOP = Path(__file__).resolve().parents[1]
BAKE_FILE = "docker/docker-bake.json"
CHECK_PAGE = "docs/check.md"
#: What is found out on the real bindings.
PROBED = "capabilities.tsv and traces in tests/contract/data"


def bake_file(matrix: Matrix) -> str:
    """Return the text for `docker buildx bake`: every image that is built on a published one.

    The tags are those that the harness looks for, so a baked image is used as it is. Images of packages are not in it:
    what they hold is resolved on the host by the harness, and no Dockerfile can do that.
    """
    targets = {
        target.name: {
            "context": "docker",
            "dockerfile": f"{target.build.kind}.Dockerfile",
            "platforms": [target.docker_platform],
            "args": build_arguments(target),
            "tags": [planned_image(target)],
        }
        for target in matrix
        if target.build is not None and target.build.kind != "packages"
    }
    groups = {"default": {"targets": list(targets)}}
    for kind in ("ngc", "tarball", "l4t"):
        members = [name for name, fields in targets.items() if fields["dockerfile"] == f"{kind}.Dockerfile"]
        groups[kind] = {"targets": members}
    return json.dumps({"group": groups, "target": targets}, indent=2) + "\n"


def check_page() -> str:
    """Return docs/check.md with the table of workarounds that the rewrites give."""
    head = "| name | change | cost |\n| --- | --- | --- |\n"
    before, _, rest = (TOP / CHECK_PAGE).read_text(encoding="utf-8").partition(head)
    rows = (f"| `{each.name}` | {each.title} | {each.cost} |\n" for each in REWRITES)
    return "".join([before, head, *rows, "\n", rest.partition("\n\n")[2]])


def stale(name: str, text: str) -> str:
    """Return the sentence on a file that differs from `text`, which the code says it holds; "" where it is the same."""
    path = TOP / name
    same = path.is_file() and path.read_text(encoding="utf-8") == text
    return "" if same else f"{name} is out of date: run `make docs` and commit what it writes"


def main() -> None:
    """Write all files."""
    _write(BAKE_FILE, bake_file(load_matrix(TOP / "matrix.yaml")))
    _write(CHECK_PAGE, check_page())
    lacking = _lacking()
    if lacking:
        print(f"{PROBED} are left as they are: making them {lacking}")
        return
    try:
        found = written.probed()
    except subprocess.CalledProcessError as error:
        print(f"{PROBED} are left as they are: making them needs the package index; {error}")
        return
    for name, made in found.items():
        _write(name, made)


def _write(name: str, text: str) -> None:
    if not stale(name, text):
        print(f"{name} is up to date")
        return
    (TOP / name).parent.mkdir(exist_ok=True)
    (TOP / name).write_text(text, encoding="utf-8")
    print(f"wrote {name}")


def _lacking() -> str:
    """Return what this machine lacks to ask the real bindings; "" where nothing."""
    if platform.machine() != "x86_64":
        return "need an x86-64 machine"
    return "" if shutil.which("gcc") else "need gcc"


if __name__ == "__main__":
    main()
