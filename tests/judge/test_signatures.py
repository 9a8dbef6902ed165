"""diagnosis.yaml as it is read and shipped, and a pattern means the same in Python and JavaScript."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.document import Form, checked, read_document
from harness.judge import classify
from harness.judge.diagnosis import diagnose
from harness.judge.signatures import GROUP, SIGNATURES, Unportable, javascript, load_signatures, load_texts
from harness.known.cell import in_general
from harness.record.outcome import Node
from tests.judge.said import BUILD_FAILED, outcome

pytestmark = pytest.mark.unit

#: Its fields stand on the lines 1 (id) to 6 (advice).
ENTRY = r"""- id: a-b
  patterns:
    - errors: 'x(?P<n>y)'
  title: t
  cause: c {n}
  advice: a
"""


def test_an_entry_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(
        ENTRY + "  phases: [build]\n  generic: true\n  operator: Conv\n  links: ['https://a.b']\n"
    )
    (signature,) = load_signatures(path)
    assert (signature.id, signature.title, signature.cause, signature.advice) == ("a-b", "t", "c {n}", "a")
    assert (signature.phases, signature.generic, signature.operator) == (("build",), True, "Conv")
    assert [(pattern.where, pattern.regex.pattern) for pattern in signature.patterns] == [
        ("errors", "x(?P<n>y)")
    ]
    assert (signature.links, signature.advice_variants, signature.note) == (("https://a.b",), (), False)


def test_generic_ones_are_tried_after_all_others_and_each_text_is_one_line(tmp_path: Path) -> None:
    """Wherever they stand, and however the lines are broken."""
    path = tmp_path / "d.yaml"
    generic = ENTRY.replace("a-b", "g") + "  generic: true\n"
    said = ENTRY.replace("a-b", "s").replace("advice: a", "advice: |\n    Two\n      lines.\n")
    path.write_text(generic + said)
    signatures = load_signatures(path)
    assert [(each.id, each.generic) for each in signatures] == [("s", False), ("g", True)]
    assert signatures[0].advice == "Two lines."


@pytest.mark.parametrize("name", ["diagnosis", "names", "texts"])
def test_what_is_shipped_holds_to_its_form(name: str) -> None:
    """At run time it is taken as it is."""
    file = SIGNATURES.with_name(f"{name}.yaml")
    assert checked(file, Form(file.with_name(f"{name}.schema.json"))).data


def test_each_signature_has_its_own_id_and_one_place_in_a_pattern() -> None:
    entries = read_document(SIGNATURES, start="").data
    ids = [entry["id"] for entry in entries]
    assert len(ids) == len(set(ids))
    for entry in entries:
        assert all(len(pattern.keys() - {"near", "unless", "model"}) == 1 for pattern in entry["patterns"]), (
            entry["id"]
        )


def test_a_text_uses_the_groups_that_its_patterns_capture() -> None:
    """The record gives the place of a complaint, and some places give groups of themselves."""
    given = {"reasons": {"node", "reason"}, "names": {"name", "since", "now"}}
    for each in load_signatures():
        captured = {"op", "node", "first", "lower"} if not each.standard_op else {"node", "first", "lower"}
        for pattern in each.patterns:
            beside = [name for one in (pattern.near, pattern.model) if one for name in one.groupindex]
            captured |= {*pattern.regex.groupindex, *beside, *given.get(pattern.where, ())}
        used = set(GROUP.findall(each.title + each.cause + each.advice + each.harmless))
        assert used | ({"op"} if each.standard_op else set()) <= captured, each.id


def test_each_printed_text_is_that_of_a_signature() -> None:
    assert {text.id for text in load_texts()} <= {signature.id for signature in load_signatures()}


def test_the_phases_are_those_of_a_record() -> None:
    form = Form(SIGNATURES.with_name("diagnosis.schema.json"))
    phases = form.schema["items"]["properties"]["phases"]["items"]["enum"]
    assert phases == list(classify._PHASES)


@pytest.mark.parametrize(("nodes", "cause"), [((Node("/c", "Conv"),), "Conv /c y"), ((), "? ? y")])
def test_a_text_may_name_the_place_that_is_looked_up(
    tmp_path: Path, nodes: tuple[Node, ...], cause: str
) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(ENTRY.replace("c {n}", "'{op} {node} {n}'"))
    found = diagnose(outcome(("errors", "xy"), nodes=nodes), BUILD_FAILED, load_signatures(path))
    assert found is not None
    assert found.cause == cause


def test_a_signature_in_general_names_what_an_outcome_would_fill_in() -> None:
    signatures = {signature.id: signature for signature in load_signatures()}
    found = in_general(signatures["no-implementation"])
    assert found.title == "No implementation for <node>"
    assert found.place == ""
    assert found.proofs == signatures["no-implementation"].advice_variants
    told = " ".join(one.title + one.cause + one.advice for one in map(in_general, signatures.values()))
    assert not re.search(r"{\w+}", told)


def test_what_is_reported_of_versions_is_read_with_its_source(tmp_path: Path) -> None:
    report = (
        "  reported:\n    - {versions: '>=10.3', url: 'https://a.b', title: T, note: n, platform: jetson}\n"
    )
    path = tmp_path / "e.yaml"
    path.write_text(ENTRY + report)
    (claim,) = load_signatures(path)[0].reported
    assert (claim.versions, claim.platform, claim.signature, claim.provenance) == (
        ">=10.3",
        "jetson",
        "a-b",
        "reported by users",
    )


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (r"(?P<x>a)b", r"(?<x>a)b"),
        (r"\Aa\Z", r"(?<![\s\S])a(?![\s\S])"),
        (r"a.b$", r"a[^\n]b(?=\n?(?![\s\S]))"),
        (r"\s\S", r"[ \t\n\r\f\v][^ \t\n\r\f\v]"),
        (r"[^\s(]", r"[^ \t\n\r\f\v\(]"),
        (r"[\s\S]*", r"[\s\S]*"),
        (r"[a\[[b\--]", r"[a\[\[b\--]"),
        (r"a]b}\-\"", r'a\]b\}-"'),
        (r"(?:a|b)+?c{2,}", r"(?:a|b)+?c{2,}"),
        (r"(?<!\w)(?!x)\x41", r"(?<!\w)(?!x)\x41"),
    ],
)
def test_what_differs_is_rewritten(pattern: str, said: str) -> None:
    assert javascript(pattern) == said


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?i)a", "'(?i' is not in the subset"),
        ("(?s:a)", "'(?s' is not in the subset"),
        ("(?>a)", "'(?>' is not in the subset"),
        ("(?#a)", "'(?#' is not in the subset"),
        ("(a)(?(1)b|c)", "'(?(' is not in the subset"),
        ("(?P<x>a)(?P=x)", "'(?P' is not in the subset"),
        (r"(a)\1", r"'\\1' is not in the subset"),
        (r"\N{DASH}", r"'\\N' is not in the subset"),
        ("a++", "'++' never gives back what it took; write '+'"),
        ("a{2}+", "'{2}+' never gives back what it took"),
        ("(?:(?P<x>a)|b)*", "a group is captured in a part that is repeated"),
        ("(?!(?P<x>a))", "a group is captured in what must not be there"),
        ("(?:a?)*", "'(?:a?)' is repeated and may be empty"),
        (r"[^\S]", r"'\\S' in a class is not in the subset"),
        ("a{b", "'{' stands alone"),
        ("a\\", r"a backslash with nothing behind it ends the pattern; write '\\' for one"),
        # Python warns of these, and a warning is no sentence with a line.
        ("[[a]", "'[[' may mean a set of sets one day"),
        ("[^[a]", "'[^[' may mean a set of sets one day"),
        ("[ab--c]", "'--' may mean a set of sets one day"),
        ("[a&&b]", "'&&' may mean a set of sets one day"),
    ],
)
def test_what_has_no_counterpart_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(Unportable, match=re.escape(said)):
        javascript(pattern)


def test_a_group_that_may_be_left_out_may_capture() -> None:
    assert javascript(r"a(?:\.(?P<x>\w+))?") == r"a(?:\.(?<x>\w+))?"


def test_classes_of_characters_are_those_of_ascii() -> None:
    """In JavaScript they are so in any case."""
    for signature in load_signatures():
        assert all(pattern.regex.flags & re.ASCII for pattern in signature.patterns)
