"""docker/docker-bake.json: every image that is built on a published one, for `docker buildx bake`.

`make docs` writes it anew from matrix.yaml.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from harness.run.provision.images import build_arguments, planned_image

if TYPE_CHECKING:
    from harness.matrix import Matrix

_TOP = Path(__file__).resolve().parents[1]
BAKE_FILE = _TOP / "docker" / "docker-bake.json"


def bake_file(matrix: Matrix) -> str:
    """Return the file's text.

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
