"""matrix.yaml is read exactly, and whatever is wrong with it is said in one sentence with its line."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from harness.errors import HandledError
from harness.matrix import Matrix, Slurm, load_matrix, versions_agree
from harness.words import Engine

pytestmark = pytest.mark.unit

SHIPPED = Path(__file__).parents[2] / "matrix.yaml"


def load(folder: Path, text: str | bytes) -> Matrix:
    path = folder / "matrix.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_matrix(path)


def complaint(folder: Path, text: str | bytes) -> str:
    with pytest.raises(HandledError) as caught:
        load(folder, text)
    said = str(caught.value)
    assert "\n" not in said
    return said.removeprefix(f"{folder}/")


def target_text(fields: str, name: str = "trt86") -> str:
    """Return a file with one target; its fields start on line 4."""
    lines = "".join(f"    {line}\n" for line in fields.splitlines())
    return f"schema: 1\ntargets:\n  {name}:\n{lines}"


GOOD = 'engine: tensorrt\nversion: "8.6.1"\nimage: nvcr.io/nvidia/tensorrt:23.06-py3'


@pytest.fixture(scope="module")
def shipped() -> Matrix:
    return load_matrix(SHIPPED)


def test_the_targets_keep_the_order_of_the_file(shipped: Matrix) -> None:
    """The order of matrix.yaml is that of the report's columns."""
    listed = SHIPPED.read_text(encoding="utf-8").partition("\ntargets:\n")[2]
    assert [target.name for target in shipped] == re.findall(r"^  (\S+):$", listed, re.MULTILINE)


def test_the_shipped_file_names_its_schema_for_editors() -> None:
    first = SHIPPED.read_text(encoding="utf-8").splitlines()[0]
    name = first.removeprefix("# yaml-language-server: $schema=")
    assert (SHIPPED.parent / name).samefile(SHIPPED.parent / "harness" / "matrix" / "matrix.schema.json")


def test_columns_of_one_group_stand_together_and_no_label_is_used_twice(shipped: Matrix) -> None:
    groups = [target.group for target in shipped]
    changes = [group for index, group in enumerate(groups) if index == 0 or groups[index - 1] != group]
    assert len(changes) == len(set(changes))
    labels = [target.label for target in shipped]
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize(
    ("name", "label", "group"),
    [
        ("trt102", "TensorRT 10.2", "TensorRT 10"),
        ("trt1016", "TensorRT 10.16", "TensorRT 10"),
        ("l4t86", "Jetson, TensorRT 8.6.2", "Jetson"),
        ("rtx17-sm89", "TensorRT for RTX 1.7, SM 8.9", "TensorRT for RTX"),
        ("rtx17-arm64", "TensorRT for RTX 1.7, arm64", "TensorRT for RTX"),
        ("ort131", "ONNX Runtime 1.31", "ONNX Runtime"),
        ("ort131-cuda", "ONNX Runtime 1.31, CUDA", "ONNX Runtime"),
    ],
)
def test_labels_are_made_of_engine_version_and_platform(
    shipped: Matrix, name: str, label: str, group: str
) -> None:
    target = shipped.target(name)
    assert (target.label, target.group) == (label, group)


def test_the_generations_of_rtx17_differ_from_it_in_nothing_else(shipped: Matrix) -> None:
    base = shipped.target("rtx17")
    for name, capability in (("rtx17-sm75", "7.5"), ("rtx17-sm89", "8.9"), ("rtx17-sm120", "12.0")):
        target = shipped.target(name)
        assert target.compute_capability == capability
        assert target.needs.compute_capability_fits(capability)
        assert not target.needs.compute_capability_fits("9.0")
        same = dataclasses.replace(
            target,
            name=base.name,
            label=base.label,
            needs=base.needs,
            line=base.line,
            compute_capability=None,
        )
        assert same == base


def test_only_tensorrt_itself_and_the_cuda_provider_need_a_gpu(shipped: Matrix) -> None:
    for target in shipped:
        assert target.needs.gpu is (target.engine is Engine.TENSORRT or target.provider == "cuda")
        assert target.module == target.engine.value


def test_a_provider_is_of_onnxruntime_alone(shipped: Matrix) -> None:
    providers = {target.name: target.provider for target in shipped if target.provider}
    assert providers == {"ort117": "cpu", "ort131": "cpu", "ort132": "cpu", "ort131-cuda": "cuda"}


def test_a_jetson_is_arm64_to_docker(shipped: Matrix) -> None:
    jetson, arm = shipped.target("l4t103"), shipped.target("rtx17-arm64")
    assert (jetson.docker_platform, jetson.needs.architecture) == ("linux/arm64", "aarch64")
    assert (arm.docker_platform, arm.needs.architecture) == ("linux/arm64", "aarch64")
    assert shipped.target("trt86").needs.architecture == "x86_64"
    assert jetson.needs.l4t_fits("36.4.3")
    assert not jetson.needs.l4t_fits("35.4.1")


def test_each_image_of_tensorrt_needs_the_driver_of_its_cuda_major(shipped: Matrix) -> None:
    """The floors of docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html."""
    floors = {
        target.name: target.needs.driver
        for target in shipped
        if target.engine == "tensorrt" and target.platform != "jetson"
    }
    cuda_13 = {"trt1013", "trt1016", "trt110", "trt111", "trt112", "trt113", "trt114"}
    assert floors == {name: ">=580" if name in cuda_13 else ">=525" for name in floors}


def test_driver_floors_and_capability_ceilings_decide(shipped: Matrix) -> None:
    needs = shipped.target("trt107").needs
    assert needs.driver_fits("525.60.13")
    assert not needs.driver_fits("470.256.02")
    assert needs.is_recommended("560.35.03")
    assert not needs.is_recommended("550.54.15")
    assert [needs.compute_capability_fits(one) for one in ("7.0", "7.5", "9.0", "12.0")] == [
        False,
        True,
        True,
        False,
    ]


def test_every_target_can_be_had_somehow_and_says_from_where(shipped: Matrix) -> None:
    for target in shipped:
        assert (target.image is None) is not (target.build is None)
        assert target.sources
        if target.build and target.build.kind == "packages":
            assert target.packages


@pytest.mark.parametrize(
    ("fields", "doubted"),
    [
        (GOOD, True),
        (f'{GOOD}\nsources: [{{url: "https://example.org"}}]', False),
        ('engine: tensorrt\nversion: "8.6.1"\nbuild: {kind: l4t, base: "a/b:c"}', True),
        ('engine: tensorrt\nversion: "8.6.1"\npackages: [tensorrt==8.6.1]', False),
    ],
)
def test_an_image_of_which_no_source_speaks_says_so(tmp_path: Path, fields: str, *, doubted: bool) -> None:
    """Packages are pinned to their version; an image's tag says nothing."""
    said = load(tmp_path, target_text(fields)).target("trt86").unsourced
    assert said == ("no source says which TensorRT this image holds; a run will" if doubted else "")


def test_a_small_target_takes_the_defaults(tmp_path: Path) -> None:
    text = (
        "schema: 1\ndefaults: {timeout_s: 7, memory_mib: 512, python: '3.12', base: 'python:3.12'}\n"
        "targets:\n  ort9:\n    engine: onnxruntime\n    version: 9.8.7\n    packages: [onnxruntime==9.8.7]\n"
    )
    target = load(tmp_path, text).target("ort9")
    assert (target.timeout_s, target.memory_mib, target.python) == (7.0, 512, "3.12")
    assert target.build is not None
    assert (target.build.kind, target.build.base) == ("packages", "python:3.12")
    assert (target.platform, target.digest, target.line) == ("linux/amd64", None, 4)


def test_what_a_target_asks_of_slurm_fills_up_from_the_defaults_field_by_field(tmp_path: Path) -> None:
    """`gres: null` asks for none where the defaults, or a need of a GPU, would ask for one."""
    text = target_text(f"{GOOD}\nslurm: {{gres: null, time: '2:00:00', mem: 8G}}") + (
        '  trt87:\n    extends: trt86\n    version: "8.7.0"\n    slurm: {constraint: "l4t_r36&hopper"}\n'
        '  trt88:\n    extends: trt86\n    version: "8.8.0"\n'
    )
    defaults = "defaults: {slurm: {partition: gpus, time: '30', gres: 'gpu:h200:1'}}\n"
    matrix = load(tmp_path, text.replace("targets:\n", f"{defaults}targets:\n"))
    own = {"partition": "gpus", "time": "2:00:00", "gres": None, "mem": "8G"}
    other = {"partition": "gpus", "time": "30", "gres": "gpu:h200:1", "constraint": "l4t_r36&hopper"}
    assert [dict(target.slurm.options) for target in matrix] == [own, other, own]
    assert load(tmp_path, target_text(GOOD)).target("trt86").slurm == Slurm()


def test_where_a_target_runs_is_no_part_of_what_it_is(tmp_path: Path) -> None:
    plain = load(tmp_path, target_text(GOOD)).sha256()
    assert load(tmp_path, target_text(f"{GOOD}\nslurm: {{partition: gpus}}")).sha256() == plain


def test_a_digest_pins_the_image_or_the_base_of_the_build(tmp_path: Path) -> None:
    digest = "sha256:" + "0a" * 32
    pulled = load(tmp_path, target_text(f"{GOOD}\ndigest: {digest}")).target("trt86")
    assert pulled.pull_reference == f"nvcr.io/nvidia/tensorrt:23.06-py3@{digest}"
    fields = f'engine: tensorrt\nversion: "8.6.1"\nbuild: {{kind: l4t, base: "a/b:c"}}\ndigest: {digest}'
    assert load(tmp_path, target_text(fields)).target("trt86").pull_reference == f"a/b:c@{digest}"


def test_extends_takes_over_fields_but_not_the_label(tmp_path: Path) -> None:
    text = target_text(f"{GOOD}\nlabel: Mine\ngroup: Own\ntimeout_s: 9") + (
        '  trt87:\n    extends: trt86\n    version: "8.7.0"\n'
    )
    child = load(tmp_path, text).target("trt87")
    assert (child.version, child.image, child.timeout_s) == (
        "8.7.0",
        "nvcr.io/nvidia/tensorrt:23.06-py3",
        9.0,
    )
    assert (child.label, child.group) == ("TensorRT 8.7", "TensorRT 8")


def test_the_example_at_the_top_of_the_shipped_file_works(tmp_path: Path) -> None:
    """What the comment offers for copying loads as it stands."""
    comment = [
        line[1:] for line in SHIPPED.read_text(encoding="utf-8").splitlines() if line.startswith("#   ")
    ]
    example = "\n".join(["schema: 1", "targets:", *comment])
    target = load(tmp_path, example + "\n").target("trt104")
    assert (target.version, len(target.sources)) == ("10.4.0.26", 1)
    assert len(comment) <= 10


def test_only_the_engine_itself_must_be_of_the_declared_version(tmp_path: Path) -> None:
    """Add-ons that share the engine's name have versions of their own."""
    pins = "onnxruntime-gpu==1.31.1, onnxruntime-extensions==0.14.0, cuda-python==13.0.1"
    fields = f'engine: onnxruntime\nversion: "1.31.1"\npackages: [{pins}]'
    assert len(load(tmp_path, target_text(fields)).target("trt86").packages) == 3


def test_a_host_is_handed_down(tmp_path: Path) -> None:
    matrix = load(
        tmp_path,
        target_text(f"{GOOD}\nhost: ssh://user@orin:2222/run/user/7/docker.sock")
        + "  other:\n    extends: trt86\n",
    )
    assert [target.host for target in matrix] == ["ssh://user@orin:2222/run/user/7/docker.sock"] * 2


def test_some_targets_keep_the_order_of_the_file_and_no_name_takes_all(shipped: Matrix) -> None:
    assert [target.name for target in shipped.only(["rtx17", "trt86", "rtx17"])] == ["trt86", "rtx17"]
    assert [target.name for target in shipped.only("rtx17")] == ["rtx17"]
    assert shipped.only(()) == shipped
    with pytest.raises(HandledError, match="did you mean 'trt86'"):
        shipped.only(["rtx17", "trt68"])


def test_an_unknown_target_is_told_the_nearest(shipped: Matrix) -> None:
    with pytest.raises(HandledError, match="has no target 'trt68'; did you mean 'trt86'"):
        shipped.target("trt68")
    with pytest.raises(HandledError, match="has no target 'rtx16,rtx17'; name each of them alone"):
        shipped.target("rtx16,rtx17")


BROKEN: list[tuple[str, str | bytes, str]] = [
    ("empty", "", "matrix.yaml: is empty; it needs `schema: 1` and `targets:`"),
    ("only a comment", "# nothing\n", "matrix.yaml: is empty; it needs `schema: 1` and `targets:`"),
    (
        "a list",
        "# targets\n- trt86\n",
        "matrix.yaml:2: is not a mapping; write `schema: 1` and `targets:` at its top level",
    ),
    (
        "a tab",
        "schema: 1\ntargets:\n\ttrt86:\n",
        "matrix.yaml:3: holds a tab, which YAML does not take as indentation; use spaces",
    ),
    (
        "bytes",
        b"schema: 1\n# caf\xe9\n",
        "matrix.yaml:2: byte 0xe9 is not UTF-8; save the file as UTF-8",
    ),
    (
        "a control character",
        "schema: 1\n# \x07\n",
        "matrix.yaml:2: holds the control character 0x07; delete it",
    ),
    ("not yaml", "schema: 1\ntargets: {a: [}\n", "matrix.yaml:2: is not YAML: expected the node content"),
    (
        "two documents",
        "schema: 1\n---\nschema: 1\n",
        "matrix.yaml:2: is not YAML: but found another document",
    ),
    ("nested", "[" * 1500, "matrix.yaml: is nested too deeply to be read; write it flatter"),
    ("no schema", "targets: {}\n", "matrix.yaml:1: schema: is missing; add `schema: 1` (and 1 more)"),
    (
        "another schema",
        "# v2\n" + target_text(GOOD).replace("schema: 1", "schema: 2"),
        "matrix.yaml:2: schema: is '2', which this version of the harness cannot read; write `schema: 1`",
    ),
    ("no targets", "schema: 1\ntargets:\n", "matrix.yaml:2: targets: has no value; it must be a mapping"),
    ("no target", "schema: 1\ntargets: {}\n", "matrix.yaml:2: targets: is empty; fill it in or delete it"),
    (
        "an unknown field at the top",
        target_text(GOOD) + "default: {}\n",
        "matrix.yaml:7: default: is not a field that exists here; did you mean 'defaults'?",
    ),
    (
        "a mistyped field",
        target_text(GOOD.replace("version", "verison")),
        "matrix.yaml:5: targets.trt86.verison: is not a field that exists here; did you mean 'version'?",
    ),
    (
        "no version",
        target_text(GOOD.replace('version: "8.6.1"\n', "")),
        'matrix.yaml:3: targets.trt86.version: is missing; add `version: "10.2.0.19"`',
    ),
    (
        "an unknown field",
        target_text(f"{GOOD}\nneed: {{}}"),
        "matrix.yaml:7: targets.trt86.need: is not a field that exists here; did you mean 'needs'?",
    ),
    (
        "a field of older files",
        target_text(f"{GOOD}\ngrade: reported"),
        "matrix.yaml:7: targets.trt86.grade: is not a field that exists here; ",
    ),
    (
        "an unknown need",
        target_text(f"{GOOD}\nneeds: {{cuda: x}}"),
        (
            "matrix.yaml:7: targets.trt86.needs.cuda: is not a field that exists here; "
            "known: gpu, driver, recommended, compute_capability, l4t"
        ),
    ),
    (
        "no engine",
        target_text(GOOD.replace("engine: tensorrt\n", "")),
        (
            "matrix.yaml:3: targets.trt86.engine: is missing; "
            "add `engine: tensorrt | tensorrt_rtx | onnxruntime`"
        ),
    ),
    (
        "an unknown engine",
        target_text(GOOD.replace("engine: tensorrt", "engine: tensorrtx")),
        (
            "matrix.yaml:4: targets.trt86.engine: 'tensorrtx' is not one of "
            "tensorrt, tensorrt_rtx, onnxruntime; "
            "did you mean 'tensorrt'?"
        ),
    ),
    (
        "a platform of its own",
        target_text(f"{GOOD}\nplatform: windows"),
        "matrix.yaml:7: targets.trt86.platform: 'windows' is not one of linux/amd64, linux/arm64, jetson",
    ),
    (
        "a number for a version",
        target_text(GOOD.replace('"8.6.1"', "10.0")),
        'matrix.yaml:5: targets.trt86.version: is a number, not text; put it in quotes: "10.0"',
    ),
    (
        "a number that loses its zero",
        target_text(f"{GOOD}\npython: 3.10"),
        'matrix.yaml:7: targets.trt86.python: is a number, not text; put it in quotes: "3.10"',
    ),
    (
        "a date for a version",
        target_text(GOOD.replace('"8.6.1"', "2024-05-01")),
        'matrix.yaml:5: targets.trt86.version: is a date, not text; put it in quotes: "2024-05-01"',
    ),
    (
        "a date that does not exist",
        target_text(GOOD.replace('"8.6.1"', "2024-13-45")),
        (
            "matrix.yaml:5: targets.trt86.version: reads as a date that does not exist; "
            'put it in quotes: "2024-13-45"'
        ),
    ),
    (
        "a version without a value",
        target_text(GOOD.replace('"8.6.1"', "")),
        "matrix.yaml:5: targets.trt86.version: has no value; it must be text",
    ),
    (
        "a short version",
        target_text(GOOD.replace("8.6.1", "8.6")),
        (
            "matrix.yaml:5: targets.trt86.version: '8.6' is not in the right form; "
            'give three or four numbers, such as "10.2.0.19"'
        ),
    ),
    (
        "a short digest",
        target_text(f"{GOOD}\ndigest: sha256:1234"),
        "matrix.yaml:7: targets.trt86.digest: 'sha256:1234' is not in the right form; write sha256: and 64",
    ),
    (
        "a digest in the image",
        target_text(f"{GOOD}@sha256:{'0' * 64}"),
        (
            "is not in the right form; give image:tag, such as nvcr.io/nvidia/tensorrt:24.07-py3 "
            "(the digest has a field of its own)"
        ),
    ),
    (
        "an image without a tag",
        target_text(GOOD.replace(":23.06-py3", "")),
        "matrix.yaml:6: targets.trt86.image: 'nvcr.io/nvidia/tensorrt' is not in the right form; give image",
    ),
    (
        "a provider of TensorRT",
        target_text(f"{GOOD}\nprovider: cuda"),
        "matrix.yaml:7: targets.trt86.provider: is only for onnxruntime; tensorrt has none, so delete it",
    ),
    (
        "a provider that does not exist",
        target_text('engine: onnxruntime\nversion: "1.2.3"\npackages: [onnxruntime==1.2.3]\nprovider: cudo'),
        "matrix.yaml:7: targets.trt86.provider: 'cudo' is not one of cpu, cuda; did you mean 'cuda'",
    ),
    (
        "a host with a password",
        target_text(f"{GOOD}\nhost: ssh://user:word@orin"),
        "write it like ssh://user@orin or ssh://orin:2222, without a password",
    ),
    (
        "CUDA without a GPU",
        target_text(
            'engine: onnxruntime\nversion: "1.2.3"\npackages: [onnxruntime==1.2.3]\nprovider: cuda\n'
            "needs: {gpu: false}"
        ),
        "matrix.yaml:8: targets.trt86.needs.gpu: is false, but provider cuda runs on a GPU alone; delete one",
    ),
    (
        "a digest of nothing",
        target_text(
            'engine: onnxruntime\nversion: "1.2.3"\npackages: [onnxruntime==1.2.3]\n'
            f'digest: "sha256:{"0" * 64}"'
        ),
        "matrix.yaml:7: targets.trt86.digest: pins nothing here; it goes with `image` or with the base",
    ),
    (
        "a duplicate target",
        target_text(GOOD) + "  trt86:\n    extends: trt86\n",
        "matrix.yaml:7: targets.trt86: is given twice, first on line 3; delete or rename one",
    ),
    (
        "a duplicate field",
        target_text(f"{GOOD}\nengine: onnxruntime"),
        "matrix.yaml:7: targets.trt86.engine: is given twice, first on line 4; delete or rename one",
    ),
    (
        "a bad name",
        target_text(GOOD, name="TRT 8.6"),
        "matrix.yaml:3: targets.TRT 8.6: cannot be a name; use lower-case letters and digits",
    ),
    (
        "a name that -k reads as a word",
        target_text(GOOD, name="not"),
        "matrix.yaml:3: targets.not: cannot be a name;",
    ),
    (
        "a loose pin",
        target_text(f"{GOOD}\npackages: [numpy<2]"),
        (
            "matrix.yaml:7: targets.trt86.packages[0]: 'numpy<2' is not in the right form; "
            "pin one version, such as numpy==1.26.4"
        ),
    ),
    (
        "a pin that is no version",
        target_text(f"{GOOD}\npackages:\n  - numpy==1.26.4\n  - onnx==1.x"),
        "matrix.yaml:9: targets.trt86.packages[1]: 'onnx==1.x' is not a version that pip knows",
    ),
    (
        "a pin of another version",
        target_text(f"{GOOD}\npackages: [numpy==1.26.4, tensorrt-cu12==10.2.0]"),
        (
            "matrix.yaml:7: targets.trt86.packages[1]: pins tensorrt-cu12==10.2.0, but version is '8.6.1'; "
            "make them agree"
        ),
    ),
    (
        "a list as text",
        target_text(f"{GOOD}\npackages: numpy==1.26.4"),
        "matrix.yaml:7: targets.trt86.packages: is the text 'numpy==1.26.4'; it must be a list",
    ),
    (
        "the same pin twice",
        target_text(f"{GOOD}\npackages: [numpy==1.26.4, numpy==1.26.4]"),
        "matrix.yaml:7: targets.trt86.packages: lists the same entry twice; delete one",
    ),
    (
        "a driver that is no specifier",
        target_text(f'{GOOD}\nneeds:\n  gpu: true\n  driver: "545+"'),
        "targets.trt86.needs.driver: '545+' is not a version specifier; write it like \">=525\"",
    ),
    (
        "a recommended driver that is no specifier",
        target_text(f'{GOOD}\nneeds:\n  gpu: true\n  recommended: "545+"'),
        "matrix.yaml:9: targets.trt86.needs.recommended: '545+' is not a version specifier; write it like \">=545\"",
    ),
    (
        "a capability that is no specifier",
        target_text(f'{GOOD}\nneeds: {{compute_capability: "7.5"}}'),
        "matrix.yaml:7: targets.trt86.needs.compute_capability: '7.5' is not a version specifier",
    ),
    (
        "L4T off a Jetson",
        target_text(f'{GOOD}\nneeds: {{l4t: ">=36"}}'),
        "matrix.yaml:7: targets.trt86.needs.l4t: is only for platform jetson",
    ),
    (
        "yes for a truth",
        target_text(f'{GOOD}\nneeds: {{gpu: "yes"}}'),
        "matrix.yaml:7: targets.trt86.needs.gpu: is the text 'yes'; it must be true or false",
    ),
    (
        "a negative time-out",
        target_text(f"{GOOD}\ntimeout_s: -1"),
        "matrix.yaml:7: targets.trt86.timeout_s: is -1; it must be more than 0",
    ),
    (
        "an endless time-out",
        target_text(f"{GOOD}\ntimeout_s: .inf"),
        "matrix.yaml:7: targets.trt86.timeout_s: is .inf; give a finite number",
    ),
    (
        "a time-out that is no number",
        target_text(f"{GOOD}\ntimeout_s: .nan"),
        "matrix.yaml:7: targets.trt86.timeout_s: is .nan; give a finite number",
    ),
    (
        "a time-out with a unit",
        target_text(f"{GOOD}\ntimeout_s: 10m"),
        "matrix.yaml:7: targets.trt86.timeout_s: is the text '10m'; it must be a number",
    ),
    (
        "too little memory",
        target_text(f"{GOOD}\nmemory_mib: 8"),
        "matrix.yaml:7: targets.trt86.memory_mib: is 8; it must be at least 256",
    ),
    (
        "an option of sbatch that the harness sets",
        target_text(f"{GOOD}\nslurm: {{mem: 8G, array: 0-3}}"),
        "matrix.yaml:7: targets.trt86.slurm.array: cannot be a name; write a long option of sbatch without its dashes",
    ),
    (
        "a time that YAML takes for a number",
        target_text(f"{GOOD}\nslurm: {{time: 2:00:00}}"),
        'matrix.yaml:7: targets.trt86.slurm.time: is a number, not text; put it in quotes: "2:00:00"',
    ),
    (
        "a capability for TensorRT",
        target_text(f'{GOOD}\ncompute_capability: "8.9"'),
        (
            "matrix.yaml:7: targets.trt86.compute_capability: is only for tensorrt_rtx; "
            "tensorrt builds for the GPU it finds, so delete it"
        ),
    ),
    (
        "a capability spelt as an architecture",
        target_text(f"{GOOD}\ncompute_capability: sm_89"),
        (
            "matrix.yaml:7: targets.trt86.compute_capability: 'sm_89' is not in the right form; "
            'write it as NVIDIA does, such as "8.9"'
        ),
    ),
    (
        "nothing to run",
        target_text('engine: tensorrt\nversion: "8.6.1"'),
        "matrix.yaml:3: targets.trt86.image: is missing, and so are `build` and `packages`; give one of them",
    ),
    (
        "two images",
        target_text(f"{GOOD}\nbuild: {{kind: packages}}\npackages: [numpy==1.26.4]"),
        "matrix.yaml:6: targets.trt86.image: stands beside `build`; keep the one that makes",
    ),
    (
        "a build without pins",
        target_text('engine: tensorrt\nversion: "8.6.1"\nbuild: {kind: packages}'),
        "matrix.yaml:3: targets.trt86.packages: is missing; a build of kind packages needs the pins",
    ),
    (
        "a build on nothing",
        target_text('engine: tensorrt\nversion: "8.6.1"\nbuild: {kind: tarball}'),
        "matrix.yaml:6: targets.trt86.build.base: is missing; a build of kind tarball needs the image",
    ),
    (
        "an unknown kind of build",
        target_text('engine: tensorrt\nversion: "8.6.1"\nbuild: {kind: tarbal, base: "a:b"}'),
        (
            "matrix.yaml:6: targets.trt86.build.kind: 'tarbal' is not one of ngc, tarball, l4t, packages; "
            "did you mean 'tarball'?"
        ),
    ),
    (
        "a build argument in small letters",
        target_text('engine: tensorrt\nversion: "8.6.1"\nbuild: {kind: l4t, base: "a:b", args: {url: x}}'),
        "matrix.yaml:6: targets.trt86.build.args.url: cannot be a name; name build arguments in capitals",
    ),
    (
        "a plain link",
        target_text(f"{GOOD}\nsources:\n  - url: http://example.org"),
        (
            "matrix.yaml:8: targets.trt86.sources[0].url: 'http://example.org' is not in the right form; "
            "give an https:// address"
        ),
    ),
    (
        "extends nothing",
        target_text("extends: trt68"),
        "matrix.yaml:4: targets.trt86.extends: there is no target 'trt68' above; there are none",
    ),
    (
        "extends a name that is mistyped",
        target_text(GOOD) + "  trt87:\n    extends: trt68\n",
        "matrix.yaml:8: targets.trt87.extends: there is no target 'trt68' above; did you mean 'trt86'?",
    ),
    (
        "extends what comes later",
        target_text("extends: trt87") + f"  trt87: {{{GOOD.replace(chr(10), ', ')}}}\n",
        "matrix.yaml:4: targets.trt86.extends: 'trt87' stands further down; move it above trt86",
    ),
    (
        "an inherited contradiction",
        target_text(GOOD) + '  trt87:\n    extends: trt86\n    build: {kind: ngc, base: "a:b"}\n',
        "matrix.yaml:7: targets.trt87.image: stands beside `build`",
    ),
    (
        "a merge key",
        target_text(f"<<: {{python: '3.8'}}\n{GOOD}"),
        "matrix.yaml:4: targets.trt86.<<: is a merge key; write `extends: NAME` in the target instead",
    ),
    (
        "an alias of itself",
        "schema: 1\ntargets: &all\n  trt86: *all\n",
        "matrix.yaml:2: targets.trt86: is an alias of something that contains it; write it out",
    ),
    (
        "a tag",
        target_text(f"{GOOD}\nlabel: !mine TensorRT"),
        "matrix.yaml:7: targets.trt86.label: has the tag !mine, which means nothing here; delete the tag",
    ),
    (
        "a key that is a list",
        "schema: 1\ntargets:\n  ? [a, b]\n  : x\n",
        "matrix.yaml:3: targets: has a field name that is not text",
    ),
    (
        "many faults, of which the first in the file is told",
        target_text(f"{GOOD}\ntimeout_s: -1\nmemory_mib: 1\npython: 3.1"),
        "matrix.yaml:7: targets.trt86.timeout_s: is -1; it must be more than 0 (and 2 more)",
    ),
]


@pytest.mark.parametrize(("text", "said"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_file_gets_one_sentence(tmp_path: Path, text: str | bytes, said: str) -> None:
    """The sentence names line and field, and says what to do."""
    sentence = complaint(tmp_path, text)
    assert said in sentence
    # Whole sentences in the table are exact: nothing follows them.
    if said.endswith(("more)", "?")):
        assert sentence.endswith(said)


def test_a_missing_file_and_a_folder_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(HandledError, match="no such file; run from the project's top folder"):
        load_matrix(tmp_path / "matrix.yaml")
    with pytest.raises(HandledError, match="cannot be read: Is a directory"):
        load_matrix(tmp_path)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    assert load(tmp_path, b"\xef\xbb\xbf" + target_text(GOOD).encode()).target("trt86").version == "8.6.1"


def test_an_alias_that_ends_is_no_fault(tmp_path: Path) -> None:
    text = target_text(f"{GOOD}\nneeds: &floor {{driver: '>=530'}}") + (
        f"  trt87:\n    needs: *floor\n    {GOOD.replace(chr(10), chr(10) + '    ')}\n"
    )
    assert load(tmp_path, text).target("trt87").needs.driver == ">=530"


@pytest.mark.parametrize(
    ("declared", "reported", "agree"),
    [
        ("8.6.1", "8.6.1", True),
        ("8.6.1", "8.6.1.6", True),
        ("8.6.1", "8.6.1.post1", True),
        ("8.6.1", "8.6.10", False),
        ("8.6.1", "8.6.2", False),
        ("10.2.0.19", "10.2.0", True),
        ("10.2.0.19", "10.2.0.post1", True),
        ("10.2.0.19", "10.2.0.20", False),
        ("10.2.0.19", "10.2", False),
        ("10.2.0.19", "10", False),
        ("10.1.0.27", "10.16.1.11", False),
        ("10.2", "10.2", True),
        ("10.0.1.6", "10.0.0", False),
        ("9.2.0.5", "9.2.0.post12.dev5", True),
        ("10.0.0.6", "10.0.0b6", False),
        ("10.0.0b6", "10.0.0b6", True),
        ("1.17.3", "1.17.3+cu118", True),
        ("1.31.1", "1.31.10", False),
        ("8.6.1", "", False),
        ("8.6.1", "unknown", False),
        ("unknown", "unknown", True),
    ],
)
def test_versions_agree(declared: str, reported: str, agree: bool) -> None:
    assert versions_agree(declared, reported) is agree
    assert versions_agree(reported, declared) is agree


def test_a_target_knows_its_version_in_what_the_wheels_report(shipped: Matrix) -> None:
    """What the bindings' own `__version__` says, read from the published wheels."""
    reported = {"trt86": "8.6.1", "trt100": "10.0.1", "trt102": "10.2.0", "trt1016": "10.16.1.11"}
    for name, version in reported.items():
        assert shipped.target(name).runs_version(version)
    assert not shipped.target("trt102").runs_version("10.3.0")


def test_the_hash_is_of_what_decides_and_not_of_what_is_said_about_it() -> None:
    """A mended note is the same matrix, another pin is not."""
    matrix = load_matrix(SHIPPED)
    first, *rest = matrix.targets
    noted = dataclasses.replace(first, notes="mended", label="Other", sources=(), line=99, host="ssh://orin")
    assert dataclasses.replace(matrix, targets=(noted, *rest)).sha256() == matrix.sha256()
    advised = dataclasses.replace(first, needs=dataclasses.replace(first.needs, recommended=">=999"))
    assert dataclasses.replace(matrix, targets=(advised, *rest)).sha256() == matrix.sha256()
    for changed in (
        dataclasses.replace(first, version="8.6.2"),
        dataclasses.replace(first, digest="sha256:" + "0" * 64),
        dataclasses.replace(first, needs=dataclasses.replace(first.needs, driver=">=999")),
    ):
        assert dataclasses.replace(matrix, targets=(changed, *rest)).sha256() != matrix.sha256()
