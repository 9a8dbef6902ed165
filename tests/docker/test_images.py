"""The Dockerfiles keep their rules, the bake file is matrix.yaml's, and the images carry plugin or reason."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.matrix import Build, load_matrix
from harness.run.provision.images import build_arguments, planned_image
from harness.run.provision.prepare import prepare
from tests import needs
from tests.run.provision.factory import gpu_target, target
from tools.docs import BAKE_FILE, bake_file, stale

TOP = Path(__file__).parents[2]
DOCKERFILES = sorted((TOP / "docker").glob("*.Dockerfile"))
MATRIX = load_matrix(TOP / "matrix.yaml")
BUILT = [one for one in MATRIX if one.build is not None and one.build.kind != "packages"]
each_dockerfile = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
COMPILING = ("ngc", "tarball", "l4t")


def instructions(path: Path) -> list[tuple[str, str]]:
    """Return a Dockerfile's instructions and their arguments, without comments and continuations."""
    lines = [
        line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")
    ]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    split = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [(word, rest.strip()) for word, _, rest in split]


def last_stage(path: Path) -> list[tuple[str, str]]:
    every = instructions(path)
    start = max(index for index, (word, _) in enumerate(every) if word == "FROM")
    return every[start:]


@pytest.mark.unit
@each_dockerfile
def test_a_dockerfile_keeps_the_rules(path: Path) -> None:
    """A base that can be pinned from outside, no moving tag, labels, and an unprivileged user at the end."""
    every = instructions(path)
    assert every[0][0] == "ARG"
    assert re.fullmatch(r"BASE=\S+:\S+", every[0][1])
    assert {rest for word, rest in every if word == "FROM"} <= {"${BASE}", "${BUILDER} AS builder"}
    assert ":latest" not in path.read_text(encoding="utf-8")
    stage = last_stage(path)
    assert stage[0] == ("FROM", "${BASE}")
    assert stage[-1] == ("USER", "65534:65534")
    labels = next(rest for word, rest in stage if word == "LABEL")
    assert labels.split() == [
        "trt-compat=image",
        "org.opencontainers.image.base.name=${BASE}",
        "org.opencontainers.image.version=${ENGINE_VERSION}",
    ]
    declared = {rest.partition("=")[0] for word, rest in stage if word == "ARG"}
    assert {"BASE", "ENGINE_VERSION"} <= declared


@pytest.mark.unit
@each_dockerfile
def test_hadolint_has_nothing_to_say(path: Path) -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    program = str(hadolint) if hadolint.exists() else needs.program("hadolint")
    done = subprocess.run([program, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.unit
@pytest.mark.parametrize("kind", COMPILING)
def test_an_image_on_a_published_base_compiles_the_plugin_in_its_builder(kind: str) -> None:
    every = instructions(TOP / "docker" / f"{kind}.Dockerfile")
    assert every[1] == ("ARG", "BUILDER=${BASE}")
    assert ("COPY", "plugin /opt/compat/source") in every
    assert ("RUN", "sh /opt/compat/source/build.sh /opt/compat/plugins") in every
    assert ("COPY", "--from=builder /opt/compat/plugins /opt/compat/plugins") in every


@pytest.mark.unit
def test_every_image_of_tensorrt_gets_the_plugin() -> None:
    """None is run as it is pulled; where no public source names an image the packages alone are there."""
    tensorrt = [one for one in MATRIX if one.module == "tensorrt"]
    assert [one.name for one in tensorrt if one.build is None] == []
    assert [one for one in tensorrt if one.build is not None and one.build.kind in COMPILING] == BUILT
    assert len(BUILT) > len(COMPILING)


@pytest.mark.unit
@pytest.mark.parametrize("one", BUILT, ids=lambda one: one.name)
def test_every_build_argument_is_one_that_its_dockerfile_takes(one: Any) -> None:
    """An argument that no ARG declares is ignored by Docker with a warning at most."""
    every = instructions(TOP / "docker" / f"{one.build.kind}.Dockerfile")
    declared = {rest.partition("=")[0] for word, rest in every if word == "ARG"}
    arguments = build_arguments(one)
    assert set(arguments) <= declared
    assert (arguments["BASE"], arguments["ENGINE_VERSION"]) == (one.pull_reference, one.version)
    # Without a default they have to be given.
    bare = {rest for word, rest in every if word == "ARG" and "=" not in rest}
    assert bare <= set(arguments)


@pytest.mark.unit
def test_the_bake_file_is_what_matrix_yaml_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRT_COMPAT_BASE_IMAGE", "is/of:no-account")
    assert not stale(BAKE_FILE, bake_file(MATRIX))


@pytest.mark.unit
def test_a_digest_reaches_the_build_as_part_of_the_base() -> None:
    digest = f"sha256:{'0' * 64}"
    pinned = gpu_target(image=None, build=Build("ngc", "a/b:c"), digest=digest)
    assert build_arguments(pinned)["BASE"] == f"a/b:c@{digest}"
    assert planned_image(pinned) != planned_image(gpu_target(image=None, build=Build("ngc", "a/b:c")))


@pytest.mark.unit
def test_the_tag_follows_the_plugins_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from harness.run.provision import images

    built = gpu_target(image=None, build=Build("ngc", "a/b:c"))
    before = planned_image(built), planned_image(target())
    (tmp_path / "formats.h").write_text("// another", encoding="utf-8")
    monkeypatch.setattr(images, "_PLUGIN", tmp_path)
    assert planned_image(built) != before[0]
    assert planned_image(target()) == before[1]


@pytest.mark.docker
@pytest.mark.integration
@pytest.mark.parametrize("kind", ["ngc", "l4t"])
def test_an_image_on_a_base_without_compiler_says_so_and_is_made(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels as the Dockerfile sets them, the base's digest, and the reason where the agent looks for it."""
    monkeypatch.setenv("TRT_COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    base = needs.base_image()
    arguments = (("BUILDER", base),)
    chosen = target(build=Build(kind, base, arguments), packages=())
    tag = planned_image(chosen)
    inspect = ["docker", "inspect", "--format", "{{json .Config.Labels}} {{.Id}}"]
    run = ["docker", "run", "--rm", "--network", "none"]
    try:
        made = prepare(chosen, "docker")
        labels = output(*inspect, tag)
        assert f'"org.opencontainers.image.base.name":"{base}"' in labels
        assert '"org.opencontainers.image.version":"24.1"' in labels
        assert output("docker", "inspect", "--format", "{{.Config.User}}", tag) == "65534:65534"
        # An image of no registry has its id for a digest.
        assert made.image_digest == output(*inspect, base).split()[-1]
        said = output(*run, "--entrypoint", "cat", tag, "/opt/compat/plugins/absent")
        assert said == "the image it was to be compiled in has no g++"
    finally:
        subprocess.run(["docker", "rmi", "-f", tag], capture_output=True, check=False)


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
