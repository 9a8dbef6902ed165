"""diagnosis.yaml as it is read and shipped, and a pattern means the same in Python and JavaScript."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.document import Form, checked, read_document
from harness.judge import classify, logs
from harness.judge.diagnosis import diagnose
from harness.judge.names import OWNER
from harness.judge.signatures import GROUP, SIGNATURES, javascript, load_signatures, load_texts
from harness.known.cell import in_general
from harness.record.outcome import Node
from harness.report.page import _FINDERS
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


#: How Python 3.11 and later call the parser of patterns, and those before.
PARSER = importlib.import_module("re._parser" if hasattr(re, "_parser") else "sre_parse")


def unportable(pattern: str) -> list[str]:
    """Return the forms in a pattern that JavaScript lacks or reads otherwise."""
    bare = re.sub(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.", "x", pattern)
    found = re.findall(r"\(\?(?!P<|[:=!]|<[=!]).?|[*+?}]\+|\{(?!\d+(?:,\d*)?\})", bare)
    found += re.findall(r"\\(?![wWdDbBntrfvAZsSx])[A-Za-z0-9]", pattern)
    return found or list(parts(PARSER.parse(pattern, re.ASCII)))


def parts(tree: Any) -> Iterator[str]:
    for code, value in tree:
        name = str(code)
        inside = [each for each in flat(value) if isinstance(each, PARSER.SubPattern)]
        if name in ("MAX_REPEAT", "MIN_REPEAT") and value[1] != 1:
            if any(captures(each) for each in inside):
                yield "a group in a repeated part"
            if any(each.getwidth()[0] == 0 for each in inside):
                yield "a repeated part that may be empty"
        if name == "ASSERT_NOT" and any(captures(each) for each in inside):
            yield "a group in what must not be there"
        kinds = {str(each[1]) for each in value if str(each[0]) == "CATEGORY"} if name == "IN" else set()
        if any("NOT" in kind for kind in kinds) and len(value) > 1 and len(kinds) < 2:
            yield "a negated class in a class"
        for each in inside:
            yield from parts(each)


def flat(value: Any) -> Iterator[Any]:
    for each in value if isinstance(value, tuple | list) else ():
        yield each
        yield from flat(each)


def captures(tree: Any) -> bool:
    return any(
        (str(code) == "SUBPATTERN" and value[0] is not None)
        or any(captures(each) for each in flat(value) if isinstance(each, PARSER.SubPattern))
        for code, value in tree
    )


@pytest.mark.filterwarnings("error")
def test_the_patterns_that_are_shipped_mean_the_same_in_javascript() -> None:
    every = [
        found
        for each in load_signatures()
        for pattern in each.patterns
        for found in (pattern.regex, pattern.near, pattern.unless)
        if found
    ]
    every += [*logs.PREFIXES, *logs.LACKING, OWNER, *_FINDERS.values()]
    assert {each.pattern: said for each in every if (said := unportable(each.pattern))} == {}


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?i)a", "(?s:a)", "(?>a)", "(?#a)", "(a)(?(1)b|c)", "(?P<x>a)(?P=x)", r"(a)\1"),
        *(r"\N{DASH}", "a++", "a{2}+"),
        *("(?:(?P<x>a)|b)*", "(?!(?P<x>a))", "(?:a?)*", r"[^\S]", "a{b"),
    ],
)
def test_what_has_no_counterpart_is_found(pattern: str) -> None:
    assert unportable(pattern)
    assert not unportable(r"a(?:\.(?P<x>\w+))?[\s\S]{2,}\S")


def test_classes_of_characters_are_those_of_ascii() -> None:
    """In JavaScript they are so in any case."""
    for signature in load_signatures():
        assert all(pattern.regex.flags & re.ASCII for pattern in signature.patterns)
