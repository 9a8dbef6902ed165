"""The site: every link leads somewhere, no guess is in a title, strangers' text stays text."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.case import Class
from harness.matrix import load_matrix
from harness.record.archive import decompress
from harness.report.model import Results
from harness.report.results import assemble
from harness.report.site import paths, site_files
from harness.report.site.facts import lines
from harness.report.site.feed import entries
from harness.report.site.material import Beside, Material
from harness.report.site.routes import Route, routes
from harness.report.site.titles import title_of, title_of_case, verdict
from harness.report.site_writer import whole_site
from harness.words import Grade
from tests.report import factory
from tests.report.crawl import dead, pages, reached
from tests.report.poison import everywhere
from tests.report.test_pages import HIDDEN, HOSTILE
from tests.report.test_past import classes, seeded

if TYPE_CHECKING:
    from harness.report.site.facts import Fact

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
BASE = "https://site.example/trt/"
ATOM = "{http://www.w3.org/2005/Atom}"


def models() -> dict[tuple[str, str], bytes]:
    """Return the factory's models, one of them too large to lie on the site by itself."""
    case = factory.case()
    found = {(case.name, variant.name): variant.model_bytes() for variant in case}
    return {**found, (case.name, "fp32"): b"x" * (65 << 10)}


def site(results: Results | None = None, base: str = BASE) -> dict[str, bytes]:
    return site_files(results or factory.results(), models(), base)


def xml(text: str | bytes) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314  (made here)


def with_report(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the pages with what they link to of the report, which is not made here."""
    latest = (paths.REPORT, paths.DATA, paths.SCHEMA, "latest/models.tar.xz")
    return {**files, **dict.fromkeys(latest, b"")}


def facts(variant: str, results: Results | None = None) -> list[Fact]:
    return Material(results or factory.results()).facts["conv_silu", variant]


# ---- links


def test_every_link_leads_somewhere_and_every_file_is_led_to() -> None:
    """Also from a disk and below any address: all links are relative."""
    files = whole_site(factory.results(), models(), b"logs", BASE)
    assert dead(files) == []
    pages_alone = {name for name in files if not name.startswith("latest/")}
    assert pages_alone - reached(files) == {"robots.txt", "sitemap.xml"}
    assert b'id="errors"' in files["latest/index.html"], "the place of the paste box"
    for name, page in pages(files).items():
        assert not [link for link in page.links if link.startswith("/")], name
        assert all(link.startswith("https://") for link in page.outside), name
        assert len(page.ids) == len(set(page.ids)), name


def test_the_pages_of_suites_are_led_to_from_every_page_and_in_the_sitemap() -> None:
    place = "latest/suites/onnx-node.html"
    files = whole_site(
        factory.results(), models(), base=BASE, beside=Beside({"suites/onnx-node.html": "Every <operator>"})
    )
    assert all("suites/onnx-node.html" in " ".join(page.links) for page in pages(files).values())
    assert b">Every &lt;operator&gt;</a>" in files["errors/index.html"]
    assert b'<a href="suites/onnx-node.html">Every &lt;operator&gt;</a>' in files["latest/index.html"]
    assert dead({**files, place: b""}) == []
    assert f"<loc>{BASE}{place}</loc>".encode() in files["sitemap.xml"]


@pytest.mark.long
def test_the_published_run_makes_a_site_without_a_dead_link() -> None:
    """Real names, real causes; its pages take 2.5 kB a cell at most."""
    data = json.loads(decompress(ROOT / "reports" / "published" / "results.json.xz"))
    files = site_files(Results.from_json(data), {}, BASE)
    assert dead(with_report(files)) == []
    assert {name for name in files if name.endswith(".html")} <= reached(with_report(files))
    assert sum(map(len, files.values())) < 2500 * len(data["cells"])
    assert 60 <= sum(name.startswith("upgrades/") for name in files) <= 120


def test_a_page_has_no_script_and_says_so_to_the_browser() -> None:
    """Readable without scripts, because there are none; one style sheet, one main part, one first heading."""
    for name, page in pages(site()).items():
        tags = [tag for tag, _ in page.elements]
        assert not {"script", "iframe", "object", "base", "form"} & set(tags), name
        assert [tags.count(tag) for tag in ("h1", "main", "title")] == [1, 1, 1], name
        assert not [
            key for _, found in page.elements for key in found if key.startswith("on") or key == "style"
        ]
        policy = next(found for _, found in page.elements if found.get("http-equiv"))
        assert "script-src 'none'" in str(policy["content"])
        headings = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
        assert all(after <= before + 1 for before, after in pairwise(headings)), name


def test_every_page_has_a_title_and_a_description_of_its_own() -> None:
    """Two pages of one title are one to a search engine."""
    read = pages(site())
    assert len({page.title for page in read.values()}) == len(read)
    for page in read.values():
        told = next(
            f["content"] for tag, f in page.elements if tag == "meta" and f.get("name") == "description"
        )
        assert told
        assert len(told) <= 300
        assert len(page.title) <= 150


# ---- the address of the site


def test_canonical_links_and_the_sitemap_are_absolute_and_need_an_address() -> None:
    """Without one the site is the same but for them."""
    known, bare = site(), site(base="")
    page = known["cases/conv_silu/qdq/index.html"].decode()
    assert f'<link rel="canonical" href="{BASE}cases/conv_silu/qdq/">' in page
    places = [one.text for one in xml(known["sitemap.xml"]).iter() if one.tag.endswith("loc")]
    htmls = [name for name in known if name.endswith(".html")]
    assert places == [*(BASE + name.removesuffix("index.html") for name in htmls), BASE + "latest/"]
    assert f"Sitemap: {BASE}sitemap.xml" in known["robots.txt"].decode()
    assert set(known) - set(bare) == {"sitemap.xml"}
    assert not any(b"canonical" in data or b"site.example" in data for data in bare.values())
    assert dead(with_report(bare)) == []


def test_the_same_results_give_the_same_bytes() -> None:
    """Nothing of now, of this machine or of a set's order is in a page."""
    assert site() == site(replace(factory.results()))


def test_a_name_is_one_part_of_an_address_and_no_two_are_the_same() -> None:
    """On file systems that take capitals for small letters, too."""
    names = [
        "mish",
        "Mish",
        "m.ish",
        "m~2eish",
        "..",
        ".",
        "",
        "index.html",
        "badge.svg",
        "a/b",
        "a\\b",
        "\udc80",
        "n" * 999,
        "n" * 998,
    ]
    found = [paths.slug(name) for name in names]
    assert len({one.lower() for one in found}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_~-]{1,100}", one) for one in found)
    assert paths.slug("conv_silu") == "conv_silu"
    assert paths.relative("a/b/index.html", "style.css") == "../../style.css"
    assert paths.relative("index.html", "a/index.html") == "a/index.html"


# ---- what is known, and how sure that is


def test_a_title_says_what_fails_where_and_how_sure_that_is() -> None:
    """Measured is said of what was measured, and of nothing else."""
    (case,) = factory.results().cases
    told = {variant.name: title_of(variant, facts(variant.name)) for variant in case.variants}
    assert told["qdq"].endswith("fails to build on TensorRT 8.6 (reported by users)")
    assert "fails to build on TensorRT on Jetson 8.6 (reported by users)" in told["int8-entropy"]
    assert told["qdq-between"].endswith(
        "loses precision, INT8 0/1 on TensorRT for RTX 1.4, fixed in 1.5 (measured)"
    )
    assert title_of_case(case, [facts("qdq")]).startswith(
        "Convolution and SiLU in INT8: fails to build on TensorRT 8.6"
    )


def test_an_error_leads_to_those_that_it_names_and_says_where_reports_end() -> None:
    """Only a range that ends says so."""
    files = site()
    named = files["errors/no-implementation/index.html"].decode()
    links = re.findall(r'href="../no-implementation-(\w+)/index.html">([^<]*)</a>', named)
    assert [name for name, _ in links] == ["head", "silu", "qdq"]
    assert links[0][1] == "No implementation for the end of a segmentation head"
    ends = b"Where a range ends, the reports end"
    assert ends in files["errors/missing-scale/index.html"]
    assert ends not in files["errors/bindings-removed/index.html"]


def test_a_guess_is_in_no_title_and_stands_apart_on_its_page() -> None:
    """`qdq` on trt102 is guessed to work: no word of it but among the guesses."""
    assert [each.grade for each in facts("qdq") if each.target.id == "trt102"] == [Grade.GUESSED]
    assert "10.2" not in verdict(facts("qdq"))
    files = site()
    for name in ("cases/conv_silu/index.html", "cases/conv_silu/qdq/index.html", "targets/trt102/index.html"):
        page = pages({name: files[name]})[name]
        guessed = [where for where, text in page.texts if "g-guessed" in where and "footer" not in where]
        assert guessed, name
        # The counts of a target's first line name the grade too.
        assert all("section.guesses" in where or "p.lead" in where for where in guessed), name
    upgrade = pages(files)["upgrades/trt86/trt102/index.html"]
    told = [(where, text) for where, text in upgrade.texts if "guessed" in text and "footer" not in where]
    assert all("section.guesses" in where or "not measured" in text for where, text in told)


def test_the_title_of_what_only_we_guess_says_that_nobody_knows() -> None:
    """Not one of our own guesses becomes a heading that somebody finds."""
    plain = factory.results()
    (case,) = plain.cases
    qdq = next(variant for variant in case.variants if variant.name == "qdq")
    guess = next(claim for claim in qdq.expectations if claim.grade is Grade.GUESSED)
    bad = replace(guess, outcome=Class.BUILD_FAILED)
    alone = assemble(
        factory.matrix(),
        (replace(factory.case(), variants=(replace(factory.case().variants[0], expectations=(bad,)),)),),
        {},
    )
    known = facts("qdq", alone)
    assert any(each.cls is Class.BUILD_FAILED for each in known)
    assert (
        title_of(qdq, known)
        == "Q and DQ around the convolution alone: nobody has measured or reported it yet"
    )


def test_what_is_known_is_told_along_the_versions() -> None:
    """A version of which nothing is known ends a stretch; "fixed in" only follows the version before."""
    (line,) = [one for one in lines(facts("qdq-between")) if one.product == "TensorRT for RTX"]
    assert [(clause.versions, clause.first.said) for clause in line.clauses] == [
        ("1.4", "loses precision, INT8 0/1"),
        ("1.5 to 1.6", "builds, INT8 1/1"),
        ("1.7", "crashes"),
    ]
    gap = [each.unknown if each.target.id == "rtx15" else each for each in facts("qdq-between")]
    assert (
        verdict(gap)
        == "loses precision, INT8 0/1 on TensorRT for RTX 1.4, builds, INT8 1/1 on 1.6 (measured)"
    )


# ---- steps


def test_the_steps_are_those_that_people_take() -> None:
    """Forwards within a series, and the same version on another platform both ways."""
    found = routes(factory.results().targets)
    assert Route("rtx14", "rtx17") in found
    assert Route("rtx17", "rtx14") not in found
    assert {Route("trt86", "l4t86", across=True), Route("l4t86", "trt86", across=True)} <= set(found)
    assert not [route for route in found if {route.before, route.after} == {"rtx17", "ort131"}]
    real = load_matrix(ROOT / "matrix.yaml")
    assert 60 <= len(routes(assemble(real, (), {}).targets)) <= 120


def test_the_list_of_steps_tells_which_version_to_take() -> None:
    """Counts by grade beside each later version, and what else is reported of it where nothing is known of both."""
    page = " ".join(site()["upgrades/index.html"].decode().split())
    (line,) = re.findall(r'<tr><th scope="row"><a href="rtx15/rtx17/index.html">.*?</tr>', page)
    assert re.findall(r">([^<>]+)</td>", line) == ["2", "2 measured", "0", "1 measured", "0", "0"]
    none = "\N{EN DASH}"
    (gone,) = re.findall(r'<tr><th scope="row"><a href="trt86/trt102/index.html">.*?</tr>', page)
    assert re.findall(r">([^<>]+)</td>", gone) == ["0", none, none, "0", none, "3"]


def test_a_long_series_has_its_neighbours_and_the_way_to_the_newest() -> None:
    """The number of pages grows with the versions, not with their square."""
    one = factory.results().targets[0]
    many = tuple(replace(one, id=f"t{at}", version=f"10.{at}", short=f"10.{at}") for at in range(200))
    found = set(routes(many))
    assert all(Route(f"t{at}", f"t{at + 1}") in found for at in range(199))
    assert all(Route(f"t{at}", "t199") in found for at in range(199))
    assert Route("t0", "t64") in found
    assert len(found) < 200 * 10


# ---- the feed


def test_the_feed_is_atom_and_tells_each_change_once() -> None:
    """RFC 4287: id, title and updated of the feed and of each entry, an author, ids that are never two things."""
    cell = "conv_silu[qdq]-rtx15"
    results = seeded({cell: classes(Class.BUILD_FAILED, *[Class.BUILT] * 3)})
    root = xml(site(results)["feed.xml"])
    assert root.tag == f"{ATOM}feed"
    found = root.findall(f"{ATOM}entry")
    assert root.findtext(f"{ATOM}author/{ATOM}name")
    for one in (root, *found):
        for name in ("id", "title", "updated"):
            assert one.findtext(ATOM + name), name
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(one.findtext(f"{ATOM}updated")))
    ids = [one.findtext(f"{ATOM}id") for one in found]
    assert len(set(ids)) == len(ids) > 1
    assert all(str(one).startswith("urn:uuid:") for one in ids)
    (news,) = [one for one in found if "Stopped failing" in str(one.findtext(f"{ATOM}title"))]
    assert news.find(f"{ATOM}link").attrib["href"] == f"{BASE}cases/conv_silu/qdq/"  # type: ignore[union-attr]
    whens = [run.when[:19] + "Z" for run in results.runs]
    assert {one.findtext(f"{ATOM}updated") for one in found} <= set(whens)
    assert root.findtext(f"{ATOM}updated") == max(str(one.findtext(f"{ATOM}updated")) for one in found)


def test_an_entry_of_the_feed_keeps_its_id_when_more_runs_follow() -> None:
    """Else every reader shows all of it again each night."""
    cell = "conv_silu[qdq]-rtx15"
    night = (Class.BUILD_FAILED, *[Class.BUILT] * 3)
    first, later = (
        {entry.key: entry for entry in entries(Material(seeded({cell: classes(*night, *more)})))}
        for more in ((), [Class.BUILT] * 3)
    )
    assert set(first) <= set(later)
    assert all(first[key].when == later[key].when for key in first)


# ---- strangers


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_strangers_text_adds_no_element_and_no_attribute(kind: str) -> None:
    """Whatever a name or a log says, each page has the same elements, and the XML is well formed."""
    plain, files = site(everywhere("plain")), site(everywhere(HOSTILE[kind]))
    assert set(plain) == set(files)
    shapes = {name: [(tag, sorted(a)) for tag, a in page.elements] for name, page in pages(plain).items()}
    for name, page in pages(files).items():
        assert [(tag, sorted(a)) for tag, a in page.elements] == shapes[name], name
        assert not HIDDEN.search(files[name].decode()), name
        assert all(re.match("https://", address) for address in page.outside), name
    xml(files["feed.xml"])
    xml(files["sitemap.xml"])
    assert dead(with_report(files)) == []
