"""matrix.yaml is read exactly, and whatever is wrong with it is said in one sentence with its line."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from packaging.version import Version

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
ORT = 'engine: onnxruntime\nversion: "1.2.3"\npackages: [onnxruntime==1.2.3]'


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
    for target in shipped:
        cuda = "cuda" if "cuda" in target.name else "cpu"
        assert target.provider == (cuda if target.engine is Engine.ONNXRUNTIME else "")


def test_a_jetson_is_arm64_to_docker(shipped: Matrix) -> None:
    jetson, arm = shipped.target("l4t103"), shipped.target("rtx17-arm64")
    assert (jetson.docker_platform, jetson.needs.architecture) == ("linux/arm64", "aarch64")
    assert (arm.docker_platform, arm.needs.architecture) == ("linux/arm64", "aarch64")
    assert shipped.target("trt86").needs.architecture == "x86_64"
    assert jetson.needs.l4t_fits("36.4.3")
    assert not jetson.needs.l4t_fits("35.4.1")


def test_each_image_of_tensorrt_needs_the_driver_of_its_cuda_major(shipped: Matrix) -> None:
    """The floors of docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html."""
    for target in shipped:
        if target.engine is Engine.TENSORRT and target.platform != "jetson":
            # NVIDIA's monthly images took CUDA 13 with 10.13; packages for CUDA 12 go on, and are named so.
            cuda_13 = Version(target.version) >= Version("10.13") and not any(
                "-cu12" in package for package in target.packages
            )
            assert target.needs.driver == (">=580" if cuda_13 else ">=525"), target.name


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
    """Packages are pinned to their version; an image's tag does not tell."""
    said = load(tmp_path, target_text(fields)).target("trt86").unsourced
    assert bool(said) is doubted


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
    """`gres: null` leaves it out though the defaults, or a need of a GPU, would ask for it."""
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
    """The comment's example loads as it stands."""
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


#: A line behind those of a good target, and the sentence on it.
ADDED = [
    ("need: {}", "need: is not a field that exists here; did you mean 'needs'?"),
    ("platform: windows", "platform: 'windows' is not one of linux/amd64, linux/arm64, jetson"),
    ("python: 3.10", 'python: is a number, not text; put it in quotes: "3.10"'),
    ("digest: sha256:1234", "digest: 'sha256:1234' is not in the right form; write sha256: and 64"),
    ("provider: cuda", "provider: is only for onnxruntime; tensorrt has none, so delete it"),
    ("packages: [numpy<2]", "packages[0]: 'numpy<2' is not in the right form; pin one version, such as"),
    ("packages: [numpy==1.26.4, tensorrt-cu12==10.2.0]", "packages[1]: pins tensorrt-cu12==10.2.0, but"),
    ("packages: [numpy==1.26.4, numpy==1.26.4]", "packages: lists the same entry twice; delete one"),
    ('needs: {compute_capability: "7.5"}', "needs.compute_capability: '7.5' is not a version specifier"),
    ('needs: {l4t: ">=36"}', "needs.l4t: is only for platform jetson"),
    ('needs: {gpu: "yes"}', "needs.gpu: is the text 'yes'; it must be true or false"),
    ("timeout_s: -1", "timeout_s: is -1; it must be more than 0"),
    ("timeout_s: .inf", "timeout_s: is .inf; give a finite number"),
    ("timeout_s: 10m", "timeout_s: is the text '10m'; it must be a number"),
    ("memory_mib: 8", "memory_mib: is 8; it must be at least 256"),
    ("slurm: {mem: 8G, array: 0-3}", "slurm.array: cannot be a name; write a long option of sbatch without"),
    ("slurm: {time: 2:00:00}", 'slurm.time: is a number, not text; put it in quotes: "2:00:00"'),
    ('compute_capability: "8.9"', "compute_capability: is only for tensorrt_rtx; tensorrt builds for the"),
]
#: All fields of a target, and the sentence on them with its line.
FIELDS = [
    (
        GOOD.replace("version", "verison"),
        5,
        "verison: is not a field that exists here; did you mean 'version'?",
    ),
    (GOOD.replace('version: "8.6.1"\n', ""), 3, 'version: is missing; add `version: "10.2.0.19"`'),
    (GOOD.replace("engine: tensorrt\n", ""), 3, "engine: is missing; add `engine: tensorrt | tensorrt_rtx"),
    (
        GOOD.replace("engine: tensorrt", "engine: tensorrtx"),
        4,
        "engine: 'tensorrtx' is not one of tensorrt, tensorrt_rtx, onnxruntime; did you mean 'tensorrt'?",
    ),
    (GOOD.replace('"8.6.1"', "10.0"), 5, 'version: is a number, not text; put it in quotes: "10.0"'),
    (GOOD.replace('"8.6.1"', "2024-05-01"), 5, "version: '2024-05-01' is not in the right form"),
    (GOOD.replace('"8.6.1"', "2024-13-45"), 5, "version: '2024-13-45' is not in the right form"),
    (GOOD.replace('"8.6.1"', ""), 5, "version: is empty; it must be text"),
    (GOOD.replace("8.6.1", "8.6"), 5, "version: '8.6' is not in the right form; give three or four"),
    (f"{GOOD}@sha256:{'0' * 64}", 6, "image: 'nvcr.io/nvidia/tensorrt:23.06-py3@sha"),
    (f"{ORT}\nprovider: cudo", 7, "provider: 'cudo' is not one of cpu, cuda; did you mean 'cuda'"),
    (f"{GOOD}\nhost: ssh://user:word@orin", 7, "host: 'ssh://user:word@orin' is not in the right form;"),
    (
        f"{ORT}\nprovider: cuda\nneeds: {{gpu: false}}",
        8,
        "needs.gpu: is false, but provider cuda runs on a GPU alone; delete one",
    ),
    (
        f'{ORT}\ndigest: "sha256:{"0" * 64}"',
        7,
        "digest: pins nothing here; it goes with `image` or with the base",
    ),
    (f"{GOOD}\npackages:\n  - numpy==1.26.4\n  - onnx==1.x", 9, "packages[1]: 'onnx==1.x' is not a version"),
    (f'{GOOD}\nneeds:\n  gpu: true\n  driver: "545+"', 9, "needs.driver: '545+' is not a"),
    ('engine: tensorrt\nversion: "8.6.1"', 3, "image: is missing, and so are `build` and `packages`; give"),
    (f"{GOOD}\nbuild: {{kind: packages}}\npackages: [numpy==1.26.4]", 6, "image: stands beside `build`;"),
    ('engine: tensorrt\nversion: "8.6.1"\nbuild: {kind: packages}', 3, "packages: is missing; a build of"),
    ('engine: tensorrt\nversion: "8.6.1"\nbuild: {kind: tarball}', 6, "build.base: is missing; a build of"),
    (
        'engine: tensorrt\nversion: "8.6.1"\nbuild: {kind: tarbal, base: "a:b"}',
        6,
        "build.kind: 'tarbal' is not one of ngc, tarball, l4t, packages; did you mean 'tarball'?",
    ),
    (
        'engine: tensorrt\nversion: "8.6.1"\nbuild: {kind: l4t, base: "a:b", args: {url: x}}',
        6,
        "build.args.url: cannot be a name; name build arguments in capitals",
    ),
    (f"{GOOD}\nsources:\n  - url: http://example.org", 8, "sources[0].url: 'http://example.org' is not in"),
    ("extends: trt68", 4, "extends: there is no target 'trt68' above; there are none"),
    (f"<<: {{python: '3.8'}}\n{GOOD}", 4, "<<: is not a field that exists here"),
    (
        f"{GOOD}\ntimeout_s: -1\nmemory_mib: 1\npython: 3.1",
        7,
        "timeout_s: is -1; it must be more than 0 (and 2 more)",
    ),
]
#: A whole file, and the sentence on it.
FILES: list[tuple[str | bytes, str]] = [
    ("", "matrix.yaml: is empty; it needs `schema: 1` and `targets:`"),
    ("schema: 1\ntargets:\n\ttrt86:\n", "matrix.yaml:3: is not YAML: found character"),
    (b"schema: 1\n# caf\xe9\n", "matrix.yaml:2: byte 0xe9 is not UTF-8; save the file as UTF-8"),
    ("schema: 1\n# \x07\n", "matrix.yaml:2: holds the control character 0x07; delete it"),
    ("schema: 1\n---\nschema: 1\n", "matrix.yaml:2: is not YAML: but found another document"),
    ("targets: {}\n", "matrix.yaml:1: schema: is missing; add `schema: 1` (and 1 more)"),
    (
        "# v2\n" + target_text(GOOD).replace("schema: 1", "schema: 2"),
        "matrix.yaml:2: schema: is '2', which this version of the harness cannot read; write `schema: 1`",
    ),
    ("schema: 1\ntargets:\n", "matrix.yaml:2: targets: is empty; it must be a mapping"),
    ("schema: 1\ntargets: {}\n", "matrix.yaml:2: targets: is empty; fill it in or delete it"),
    (target_text(GOOD, name="TRT 8.6"), "matrix.yaml:3: targets.TRT 8.6: cannot be a name; use lower-case"),
    (target_text(GOOD, name="not"), "matrix.yaml:3: targets.not: cannot be a name;"),
    (
        target_text(GOOD) + "  trt87:\n    extends: trt68\n",
        "matrix.yaml:8: targets.trt87.extends: there is no target 'trt68' above; did you mean 'trt86'?",
    ),
    (
        target_text("extends: trt87") + f"  trt87: {{{GOOD.replace(chr(10), ', ')}}}\n",
        "matrix.yaml:4: targets.trt86.extends: 'trt87' stands further down; move it above trt86",
    ),
    (
        target_text(GOOD) + '  trt87:\n    extends: trt86\n    build: {kind: ngc, base: "a:b"}\n',
        "matrix.yaml:7: targets.trt87.image: stands beside `build`",
    ),
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((target_text(f"{GOOD}\n{line}"), f"matrix.yaml:7: targets.trt86.{said}") for line, said in ADDED),
        *((target_text(fields), f"matrix.yaml:{at}: targets.trt86.{said}") for fields, at, said in FIELDS),
        *FILES,
    ],
    ids=[str(row[-1]) for row in (*ADDED, *FIELDS, *FILES)],
)
def test_a_broken_file_gets_one_sentence(tmp_path: Path, text: str | bytes, said: str) -> None:
    """The sentence names line, field and cure."""
    sentence = complaint(tmp_path, text)
    assert said in sentence
    # Whole sentences in the table are exact: no key follows them.
    if said.endswith(("more)", "?")):
        assert sentence.endswith(said)


def test_a_missing_file_and_a_folder_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(HandledError, match="no such file; run from the project's top folder"):
        load_matrix(tmp_path / "matrix.yaml")
    with pytest.raises(HandledError, match="cannot be read: Is a directory"):
        load_matrix(tmp_path)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    assert load(tmp_path, b"\xef\xbb\xbf" + target_text(GOOD).encode()).target("trt86").version == "8.6.1"


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
    """The bindings' own `__version__`, read from the published wheels."""
    reported = {"trt86": "8.6.1", "trt100": "10.0.1", "trt102": "10.2.0", "trt1016": "10.16.1.11"}
    for name, version in reported.items():
        assert shipped.target(name).runs_version(version)
    assert not shipped.target("trt102").runs_version("10.3.0")


def test_the_hash_is_of_what_decides_and_not_of_what_is_said_about_it() -> None:
    """A mended note is the same matrix, another pin is not."""
    matrix = load_matrix(SHIPPED)
    first, *rest = matrix.targets
    noted = dataclasses.replace(first, notes="mended", label="Other", sources=(), line=99, host="ssh://orin")
    noted = dataclasses.replace(noted, slurm=Slurm((("partition", "gpus"),)))
    assert dataclasses.replace(matrix, targets=(noted, *rest)).sha256() == matrix.sha256()
    advised = dataclasses.replace(first, needs=dataclasses.replace(first.needs, recommended=">=999"))
    assert dataclasses.replace(matrix, targets=(advised, *rest)).sha256() == matrix.sha256()
    for changed in (
        dataclasses.replace(first, version="8.6.2"),
        dataclasses.replace(first, digest="sha256:" + "0" * 64),
        dataclasses.replace(first, needs=dataclasses.replace(first.needs, driver=">=999")),
    ):
        assert dataclasses.replace(matrix, targets=(changed, *rest)).sha256() != matrix.sha256()
