"""The files that people write have schemas, and whatever is wrong with a file costs one sentence and no memory."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from jsonschema import Draft202012Validator

from harness import document, matrix
from harness.case import measured
from harness.document import Form, checked, read_document
from harness.errors import HandledError
from harness.judge.signatures import SIGNATURES
from harness.words import Engine
from tests.near import SAME, near

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
FORMS = {
    "matrix": matrix.FORM,
    "diagnosis": Form(SIGNATURES.with_name("diagnosis.schema.json")),
    "measured": measured.FORM,
}


def read(folder: Path, text: str) -> Any:
    path = folder / "a.yaml"
    path.write_text(text)
    return read_document(path, start="`a: 1`").data


def walk(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, dict):
        return [node, *(inner for value in node.values() for inner in walk(value))]
    return [inner for value in node for inner in walk(value)] if isinstance(node, list) else []


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


def test_a_schema_is_valid_and_describes_every_field(form: Form) -> None:
    """Editors show the descriptions, and the sentences take their fix from `x-fix`."""
    Draft202012Validator.check_schema(form.schema)
    groups = [node["properties"] for node in walk(form.schema) if isinstance(node.get("properties"), dict)]
    for name, field in [item for group in groups for item in group.items()]:
        if "$ref" in field:
            field = form.schema["$defs"][field["$ref"].rpartition("/")[2]]  # noqa: PLW2901
        assert field.get("description"), name
    for node in walk(form.schema):
        if isinstance(node.get("pattern"), str):
            assert node.get("x-fix"), node


def test_every_rule_of_a_schema_has_a_sentence(form: Form) -> None:
    structure = [
        *("$schema", "$defs", "$ref", "title", "description", "properties", "items", "if", "then"),
        *("allOf", "not", "prefixItems"),
    ]
    elsewhere = {"additionalProperties", "propertyNames", "required"}
    own = {"x-fix", "x-start", "x-mend", "x-examples"}
    names = {key for node in walk(form.schema) for key in node}
    fields = {key for node in walk(form.schema) for key in node.get("properties", {})}
    examples = set(form.schema["x-examples"])
    rules = names - {*structure} - elsewhere - own - fields - examples - set(form.schema.get("$defs", ()))
    assert rules <= set(document._SENTENCES)


def test_the_engines_of_the_schemas_are_those_of_the_harness() -> None:
    engines = [str(engine) for engine in Engine]
    assert matrix.FORM.schema["$defs"]["target"]["properties"]["engine"]["enum"] == engines
    entry = measured.FORM.schema["additionalProperties"]
    assert entry["properties"]["engine"]["enum"] == engines
    for form in (matrix.FORM, measured.FORM):
        assert form.schema["x-examples"]["engine"] == " | ".join(engines)


@pytest.mark.parametrize("name", ["matrix.yaml", "cases/measured.yaml", "harness/judge/diagnosis.yaml"])
def test_both_parsers_read_the_shipped_files_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data and lines do not depend on whether PyYAML came with libyaml."""
    fast = read_document(ROOT / name, start="")
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    assert read_document(ROOT / name, start="") == fast


@pytest.mark.parametrize("deep", [1500, 100_000], ids=["for Python", "for libyaml"])
def test_what_is_nested_too_deeply_is_one_sentence(tmp_path: Path, deep: int) -> None:
    """libyaml recurses on the C stack, and ends the process where that is used up."""
    with pytest.raises(HandledError, match=r"a\.yaml: is nested too deeply to be read"):
        read(tmp_path, "[" * deep + "]" * deep)


def test_a_check_sees_what_all_before_it_found_good(tmp_path: Path) -> None:
    """The second check would fail on what the schema has to refuse."""
    path = tmp_path / "measured.yaml"
    path.write_text("schema: 1\nrtx17: 7\n")
    with pytest.raises(HandledError, match=r"measured\.yaml:2: rtx17: is a number; it must be a mapping"):
        checked(path, measured.FORM, lambda found: found.data["rtx17"]["cells"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"a: {'7' * 6000}\n", "a.yaml:1: a: is a number of 6000 characters; put text in quotes"),
        ('a: "x\\e[2Jy"\n', "a.yaml:1: a: holds a control character; delete it"),
        ('a: "\\uD800"\n', "a.yaml:1: a: holds a control character; delete it"),
        ('"\\e]0;x": 1\n', "a.yaml:1: has a field name with a control character; delete it"),
        (f"a: [{'1, ' * 6000}]\n", "a.yaml:1: a: has 6000 entries; it may have 5000"),
    ],
    ids=["number", "escape", "surrogate", "name", "list"],
)
def test_what_no_file_of_a_person_holds_is_one_short_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    form = tmp_path / "form.json"
    form.write_text('{"type": "object", "x-start": "a: 1", "x-mend": ""}')
    with pytest.raises(HandledError) as refused:
        checked(path, Form(form))
    assert said in str(refused.value)
    assert len(str(refused.value)) < 400


def test_a_value_without_end_is_not_quoted_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    path.write_text(f"schema: 1\ntargets: {'x' * 100_000}\n{'y' * 100_000}: 1\n")
    with pytest.raises(HandledError) as refused:
        checked(path, matrix.FORM)
    assert len(str(refused.value)) < 1000


def test_faults_without_number_are_not_all_worded(tmp_path: Path) -> None:
    """To find what was meant by each of many thousand names takes minutes."""
    path = tmp_path / "matrix.yaml"
    path.write_text("schema: 1\ntargets: {}\n" + "".join(f"target{n}: 1\n" for n in range(5_000)))
    with pytest.raises(HandledError, match=r"\(and 499 more\)"):
        checked(path, matrix.FORM)


def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(b"#" * (2 << 20) + b"#")
    for name, said in {
        "pipe": "it is no plain file",
        "loop": "Too many levels of symbolic links",
        "zero": "it is no plain file",
        "folder": "Is a directory",
        "large": "it has 2 MiB, and may have 2",
    }.items():
        with pytest.raises(HandledError, match=rf"/{name}: cannot be read: {said}"):
            read_document(tmp_path / name, start="")


MATRIX, MEASURED = ((ROOT / name).read_bytes() for name in ("matrix.yaml", "cases/measured.yaml"))


@SAME
@given(
    near(MATRIX[MATRIX.index(b"schema:") :].partition(b"\n  trt92:")[0], MEASURED[:600].rpartition(b"\n")[0])
)
@example(b"!!float ")
def test_what_is_near_a_good_file_is_read_or_refused_in_a_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(data)
    for reader in (matrix.load_matrix, measured.read):
        with contextlib.suppress(HandledError):
            reader(path)
