"""diagnosis.yaml as it is read: a mistake is one sentence, and a pattern means the same in Python and JavaScript."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.errors import HandledError
from harness.judge import classify
from harness.judge.diagnosis import diagnose
from harness.judge.signatures import FORM, SIGNATURES, Unportable, javascript, load_signatures
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
#: The same with its id on the last line.
LAST = ENTRY.replace("- id: a-b\n  patterns", "- patterns") + "  id: a-b\n"
UNCAPTURED = "which no pattern of the entry captures"


def load(folder: Path, text: str) -> str:
    """Return the sentence on a file, without its folder."""
    path = folder / "d.yaml"
    path.write_text(text)
    load_signatures.cache_clear()
    with pytest.raises(HandledError) as caught:
        load_signatures(path)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{folder}/")


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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("id: a-b", "id: A b"), "1: [0].id: 'A b' is not in the right form; write lower-case words"),
        (("title: t", "title: ' '"), "4: [0].title: ' ' is not in the right form; say it in words"),
        (("title: t", "title: 7"), '4: [0].title: is a number, not text; put it in quotes: "7"'),
        (("advice: a", "note: true"), "1: [0].advice: is missing; add `advice: ...`"),
        (
            ("  advice", "  advise: b\n  advice"),
            "6: [0].advise: is not a field that exists here; did you mean 'advice'?",
        ),
        (
            ("errors:", "errror:"),
            "3: [0].patterns[0].errror: is not a field that exists here; did you mean 'err",
        ),
        (
            ("'x(?P<n>y)'", "'x('"),
            "3: [0].patterns[0].errors: 'x(' is no regular expression: missing ), unterminated subpattern at",
        ),
        (("'x(?P<n>y)'", "7"), "3: [0].patterns[0].errors: is a number, not text; put it in quotes"),
        (("{n}", "{nodes}"), f"5: [0].cause: uses {{nodes}}, {UNCAPTURED}; did you mean 'node'?"),
        (("{n}", "{n} {nn}"), f"5: [0].cause: uses {{nn}}, {UNCAPTURED}; did you mean 'n'?"),
        (("{n}", "{m}"), "5: [0].cause: uses {m}, which no pattern of the entry captures; known: "),
        (
            ("advice: a", "advice: a\n  generic: maybe"),
            "7: [0].generic: is the text 'maybe'; it must be true or",
        ),
        (("advice: a", "advice: a\n  links: here"), "7: [0].links: is the text 'here'; it must be a list"),
        (
            ("advice: a", "advice: a\n  links: [here]"),
            "7: [0].links[0]: 'here' is not in the right form; give",
        ),
        (
            ("advice: a", "advice: a\n  phases: [biuld]"),
            "7: [0].phases[0]: 'biuld' is not one of parse, build",
        ),
        (
            ("advice: a", "advice: a\n  advice_variants: [x]"),
            "7: [0].advice_variants[0]: 'x' is not in the right",
        ),
        (
            ("advice: a", "advice: a\n  standard_op: true"),
            "7: [0].standard_op: needs a pattern that captures",
        ),
        (("    - errors: 'x(?P<n>y)'", "    []"), "3: [0].patterns: is empty; fill it in or delete it"),
        (
            ("y)'", "y)'\n      parser: z"),
            "3: [0].patterns[0]: needs one place, with `near`, `unless` and `model` beside it",
        ),
        (
            ("title: t", "title: t\n  title: u"),
            "5: [0].title: is given twice, first on line 4; delete or rename",
        ),
        (
            ("title: t", "title: !t t"),
            "4: [0].title: has the tag !t, which means nothing here; delete the tag",
        ),
        (("- id: a-b", "-\tid: a-b"), "1: holds a tab"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    assert ENTRY.replace(*change) != ENTRY
    assert load(tmp_path, ENTRY.replace(*change)).startswith(f"d.yaml:{said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "d.yaml: is empty; it needs `- id: NAME` for each signature"),
        ("[]", "d.yaml:1: is empty; fill it in or delete it"),
        ("a: [", "d.yaml:1: is not YAML: expected the node content"),
        ("# b\na: b", "d.yaml:2: is not a list; write `- id: NAME` for each signature at its top level"),
        ("- text", "d.yaml:1: [0]: is the text 'text'; it must be a mapping"),
        (ENTRY * 2, "d.yaml:7: [1].id: 'a-b' is the id of the signature on line 1 too; rename one"),
        (LAST * 2, "d.yaml:12: [1].id: 'a-b' is the id of the signature on line 6 too; rename one"),
    ],
)
def test_a_file_that_is_no_list_of_signatures(tmp_path: Path, text: str, said: str) -> None:
    assert load(tmp_path, text).startswith(said)


def test_the_phases_are_those_of_a_record() -> None:
    phases = FORM.schema["items"]["properties"]["phases"]["items"]["enum"]
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
    """And a mistake in the versions is told with its line."""
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
    said = load(tmp_path, ENTRY + report.replace(">=10.3", "10 and later"))
    assert said.startswith("d.yaml:8: [0].reported[0].versions: ")
    assert "not a version specifier" in said


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


def test_a_file_with_such_a_pattern_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "d.yaml"
    file.write_text("- id: a\n  patterns:\n    - errors: '(?i)x'\n  title: t\n  cause: c\n  advice: a\n")
    with pytest.raises(
        HandledError, match=r"d\.yaml:3: \[0\]\.patterns\[0\]\.errors: '\(\?i' is not in the subset"
    ):
        load_signatures(file)


def test_classes_of_characters_are_those_of_ascii() -> None:
    """In JavaScript they are so in any case."""
    for signature in load_signatures():
        assert all(pattern.regex.flags & re.ASCII for pattern in signature.patterns)


def test_what_is_shipped_holds_to_the_form_that_every_other_file_is_held_to(tmp_path: Path) -> None:
    """At run time it is taken as it is."""
    copy = tmp_path / SIGNATURES.name
    copy.write_bytes(SIGNATURES.read_bytes())
    assert load_signatures(copy) == load_signatures()
    spoilt = tmp_path / "spoilt.yaml"
    spoilt.write_text(copy.read_text(encoding="utf-8").replace("\n- id:", "\n- ident:", 1), encoding="utf-8")
    with pytest.raises(HandledError, match="id: is missing"):
        load_signatures(spoilt)
