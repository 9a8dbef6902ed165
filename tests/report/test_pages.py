"""The three files: true, bounded, escaped, the same bytes for the same results, whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from harness.errors import HandledError, InfraError
from harness.record.store import Store
from harness.report import build_report, verify_report, write_report, writer
from harness.report.counts import cluster, clusters, counts
from harness.report.exports.markdown import LIMIT_BYTES, summary
from harness.report.labels import BUCKETS, MARKS
from harness.report.page import packing
from harness.report.page.data import page_data, unpacked
from harness.report.page.html import render
from harness.report.page.packing import unsqueezed
from harness.text import clip, tail, visible
from harness.words import Class, Verdict
from tests.report import factory
from tests.report.poison import SAFE, everywhere

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

HOSTILE = {
    "markup": "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "closing": "</script x><!--<script>",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "template": "{{ 7 * 7 }} {% raw %} ${7*7}",
    "bidi": "abc\u202etxt.exe\u2066",
    "controls": "a\x00b\x07c\x1b[31mred\x1b[0m",
    "surrogate": "x\udcffy",
    "long": "n" * 10_000,
    "emoji": "\U0001f468\u200d\U0001f469 \u4f60\u597d",
    "markdown": "](https://evil.example) `|` # @everyone <b>",
}


#: What the page links to beside it.
BESIDE = ("", "results.json", "results.json.xz", "summary.md", "pages.html")
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Page(HTMLParser):
    """Collects what matters of a page: elements, attributes, scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in = tag

    def handle_endtag(self, _tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.scripts.append((self.elements[-1][1], data))
        if self._in == "style":
            self.styles.append(data)


def page_of(text: str) -> Any:
    """Return the evidence in a page, unpacked and with its references resolved: rows of a variant and its cells."""
    scripts = {attributes.get("id"): body for attributes, body in Page(text).scripts}
    found: dict[int, Any] = {}
    for packed in json.loads(scripts["behind"])["evidence"]:
        chunk = json.loads(unsqueezed(packed["packed"]))
        found |= zip(packed["rows"], resolved(chunk["rows"], chunk["table"]), strict=True)
    return [found[number] for number in sorted(found)]


def resolved(value: Any, table: list[Any]) -> Any:
    """Return a value with its references into a chunk's table followed."""
    if isinstance(value, list):
        return [resolved(entry, table) for entry in value]
    if isinstance(value, dict):
        if "$" in value:
            return resolved(table[value["$"]], table)
        return {key: resolved(entry, table) for key, entry in value.items()}
    return value


def test_page_refers_to_nothing_outside_but_links() -> None:
    """One file, readable from a disk with no network."""
    for tag, attributes in Page(render(factory.results())).elements:
        assert tag not in ("iframe", "object", "embed", "img", "base")
        assert "src" not in attributes
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        address = attributes.get("href") or ""
        if tag == "link":
            assert address.startswith("data:image/svg+xml,")
        else:
            assert address.startswith(("#", "https://")) or address in BESIDE


def test_policy_names_the_hashes_of_the_style_and_the_script() -> None:
    """The browser runs what was written here and nothing else."""
    page = Page(render(factory.results()))
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    (script,) = (body for attributes, body in page.scripts if "type" not in attributes)
    for body, directive in ((script, "script-src"), ("".join(page.styles), "style-src")):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_hostile_text_adds_no_element_and_no_attribute(kind: str) -> None:
    """Whatever a name or a log says, the page has the same elements with the same attributes."""
    for poisoned in (lambda text: factory.results(hostile=text), everywhere):
        shape = [(tag, sorted(a)) for tag, a in Page(render(poisoned("plain"))).elements]
        text = render(poisoned(HOSTILE[kind]))
        found = Page(text).elements
        assert [(tag, sorted(a)) for tag, a in found] == shape
        for address in (attributes["href"] for _, attributes in found if "href" in attributes):
            assert re.match(
                r"#|https://|(results.json(.xz)?|summary.md|pages.html)$|data:image/svg\+xml,%3Csvg",
                address or "",
            )
        text.encode()
        assert not HIDDEN.search(text)


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_hostile_text_is_still_there_to_read(kind: str) -> None:
    """Escaped is not deleted: the panel has the whole message."""
    data = page_of(render(factory.results(hostile=HOSTILE[kind])))
    wanted = visible(clip(HOSTILE[kind], 4000))
    assert any(cell.get("error") == wanted for row in data for cell in row["cells"])


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_hostile_text_leaves_the_other_files_well_formed(kind: str) -> None:
    """results.json parses, and the summary is bounded and has no live markup."""
    for results in (factory.results(hostile=HOSTILE[kind]), everywhere(HOSTILE[kind])):
        json.loads(writer.results_json(results).encode())
        text = summary(results)
        assert len(text.encode()) <= LIMIT_BYTES
        assert not re.search(r"(?<!\\)<\w|(?<!\\)\]\(|@\w", re.sub("`[^`\n]*`", "", text))
        assert not HIDDEN.search(text)


def test_no_text_field_is_left_out_of_the_tests_with_strangers_text() -> None:
    """A field that is added to the results is poisoned with the others, unless it is named as checked elsewhere."""
    text = "stranger"
    data = json.loads(writer.results_json(everywhere(text)))
    (case,) = data["cases"]
    named = {"CaseView": case, "VariantView": case["variants"][0], "TargetView": data["targets"][-1]}
    for kind, found in named.items():
        plain = {
            key for key, value in found.items() if isinstance(value, str) and value and text not in value
        }
        assert plain <= SAFE[kind] | {"role"}, kind
    timed = next(cell for cell in data["cells"] if cell["latency_ms"])
    assert timed["latency_ms"]["clock"] == timed["accuracy"][0]["output"] == timed["stamps"]["via"] == text
    assert timed["stamps"]["environment"] == {text: text}


def test_keys_that_strangers_chose_are_no_keys_of_the_data() -> None:
    """An environment variable called __proto__ cannot become a property of the page's objects."""
    results = factory.results(hostile="x")
    plain = unpacked("".join(page_data(results)))
    assert '["__proto__","x"]' in plain
    assert '"__proto__":' not in plain


def test_every_cell_is_in_the_table_with_its_state_in_words() -> None:
    """With scripts off, and for a screen reader, the table alone tells."""
    results = factory.results()
    titles = [a["title"] for tag, a in Page(render(results)).elements if tag == "td" and "title" in a]
    assert len(titles) == len(results.cells)
    by_id = dict(zip((cell.id for cell in results.cells), titles, strict=True))
    assert by_id["conv_silu.qdq-trt86"] == ("Not run for this report. Reported by users: fails to build")
    assert (by_id["conv_silu.qdq-rtx17"] or "").startswith("Regressed: build failed. ")
    assert by_id["conv_silu.qdq-rtx15"] == "As expected: built. INT8 1/1"
    assert "median 43 µs" in (by_id["conv_silu.fp32-ort131"] or "")


def test_claimed_cells_look_unlike_measured_ones() -> None:
    """A claim must not be taken for a measurement."""
    text = render(factory.results())
    assert 'class="badge square k-build_failed b-reported">B</b> <i>users</i>' in text
    assert 'class="badge square k-build_failed b-known_failure">B</b></a>' in text


def test_counts_add_up_to_the_cells() -> None:
    """No cell is lost between verdicts."""
    results = factory.results()
    assert sum(counts(results).values()) == len(results.cells) == 32


def test_page_shows_ranges_and_which_version_changed_it() -> None:
    """The two sentences that an upgrade is decided by."""
    text = render(factory.results())
    assert (
        "<b>RTX</b> fails to build on 1.4 (measured); fixed in 1.5 (measured): builds, INT8 1/1; broken in"
        in text
    )
    assert "RTX 1.4 to 1.5: 1 variant, <span" in text
    assert "result, better</span>: fails to build before, builds after</summary>" in text
    assert 'data-vs="rtx14">conv_silu.qdq</a> INT8 1/1</li>' in text


def test_clusters_hold_each_measured_failure_once() -> None:
    """One line for a cause, however many cells it hit."""
    results = factory.results()
    found = clusters(results)
    ids = [cell.id for cluster in found for cell in cluster.cells]
    assert len(ids) == len(set(ids)) == 6
    assert found[0].advice is not None
    assert found[0].advice.id == "no-implementation-qdq"
    assert len(found[0].cells) == 2


def test_a_cluster_of_several_nodes_speaks_of_none_of_them() -> None:
    """Its title and cause are those of the signature; of a single node they name it."""
    (found,) = (each for each in clusters(factory.results()) if each.advice and "qdq" in each.advice.id)
    first, second = (
        replace(cell, diagnosis=replace(cell.diagnosis, title=f"of {node}"))
        for cell, node in zip(found.cells, (factory.CONV, "/another/Conv"), strict=False)
        if cell.diagnosis is not None
    )
    (alone,), (both,) = cluster((first,)), cluster((first, second))
    assert alone.title == f"of {factory.CONV}"
    assert both.title == "No implementation for a layer with quantised weights"
    assert both.advice is not None
    assert factory.CONV not in f"{both.title} {both.advice.cause}"


def test_every_class_has_its_own_letters_and_shape() -> None:
    """States can be told apart with no colour at all."""
    looks = [(mark.letters, mark.shape) for mark in MARKS.values()]
    assert set(MARKS) == {*Class, Verdict.FAILS_WHEN_RUN}
    assert len({letters for letters, _ in looks}) == len(looks)


def test_legend_explains_every_state() -> None:
    """Nothing is shown that the page does not explain."""
    text = render(factory.results())
    assert all(mark.meaning in text for mark in MARKS.values())
    assert all(meaning in text for _, meaning in BUCKETS.values())


def test_summary_leads_with_the_regression_and_its_counts_add_up() -> None:
    """A reader of a CI job sees the worst first."""
    text = summary(factory.results())
    assert "**Regressed: 1.**" in text.splitlines()[2]
    numbers = [int(found) for found in re.findall(r"^\| [A-Z][^|*]* \| (\d+) \|$", text, re.MULTILINE)]
    assert sum(numbers) == 32
    assert "`conv_silu.qdq-rtx17`" in text.partition("## Regressed (1)")[2].partition("##")[0]


def test_summary_says_so_when_nothing_is_wrong() -> None:
    """Green is told in words too."""
    from harness.report.results import assemble

    fine = factory.outcome("qdq", "rtx15")
    text = summary(assemble(factory.matrix(), (factory.case(),), {fine.cell: fine}))
    assert "**No regression and no new failure.**" in text


def test_summary_is_cut_where_it_would_grow_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CI system that refuses a long summary would show none."""
    monkeypatch.setattr("harness.report.exports.markdown.LIMIT_BYTES", 900)
    text = summary(factory.results())
    assert len(text.encode()) <= 900
    assert text.endswith("*Cut here; the rest is in index.html and results.json.*\n")


def test_same_results_same_files(tmp_path: Path) -> None:
    """No clock, no random order, nothing of this machine."""
    for name in ("a", "b"):
        write_report(factory.results(), tmp_path / name)
    for file in ("index.html", "results.json", "summary.md"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_failing_write_leaves_the_old_report_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk must not publish half a page."""
    write_report(factory.results(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(InfraError, match="No space left on device"):
        write_report(factory.results(hostile="x"), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    """The user gets what is wrong and what to do, not a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(HandledError, match="give another folder"):
        write_report(factory.results(), tmp_path / "file")


def test_report_of_a_store_verifies_until_it_is_touched(tmp_path: Path) -> None:
    """`verify` finds a page that does not follow from the records, a missing file and a lost log."""
    matrix, cases = factory.matrix(), (factory.case(),)
    with Store(tmp_path) as store:
        for outcome in factory.outcomes().values():
            store.append(outcome, "the log")
    build_report(matrix, cases, store, tmp_path)
    assert verify_report(matrix, cases, store, tmp_path) == []
    page = tmp_path / "index.html"
    page.write_text(page.read_text().replace("Regressed", "Perfect"))
    (tmp_path / "summary.md").unlink()
    next((tmp_path / "logs").rglob("*.gz")).unlink()
    faults = "\n".join(verify_report(matrix, cases, store, tmp_path))
    assert "index.html: does not follow from the records" in faults
    assert "summary.md: missing" in faults
    assert "the log cannot be read" in faults


def test_another_build_of_zlib_makes_no_other_report(tmp_path: Path) -> None:
    """`verify` compares what is packed, not how well it was packed."""
    matrix, cases = factory.matrix(), (factory.case(),)
    with Store(tmp_path) as store:
        for outcome in factory.outcomes().values():
            store.append(outcome, "the log")
    build_report(matrix, cases, store, tmp_path)
    page = tmp_path / "index.html"
    (packed,) = re.findall(r'"evidence":\[\{"packed":"([^"]+)"', page.read_text())
    evidence = unsqueezed(packed)

    def put(content: bytes) -> None:
        again = base64.b85encode(zlib.compress(content, 1)).translate(packing._SAFE).decode()
        page.write_text(page.read_text().replace(packed, again))

    untouched = page.read_text()
    put(evidence)
    assert page.read_text() != untouched
    assert verify_report(matrix, cases, store, tmp_path) == []
    page.write_text(untouched)
    put(evidence.replace(b"no engine", b"an engine"))
    assert "does not follow" in "".join(verify_report(matrix, cases, store, tmp_path))


def test_visible_writes_out_what_cannot_be_seen() -> None:
    """A reader sees that something is there, and what."""
    assert visible("a\u202eb\x00c\udcff") == "a⟨U+202E⟩b⟨U+0000⟩c⟨U+DCFF⟩"
    assert visible("\x1b[1;31mred\x1b[0m\r\nplain\ttext") == "red\nplain\ttext"


def test_tail_keeps_the_end_from_a_line_start() -> None:
    """The end of a log is where it says why."""
    assert tail("one\ntwo\nthree", 8) == "…\nthree"
    assert tail("short", 8) == "short"
    assert tail("x" * 20, 8) == "…\n" + "x" * 8
