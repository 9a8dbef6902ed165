"""The site: static pages with addresses of their own, made of the results alone; what they are filled with is in here.

Pure: results -> the bytes of every file by its place. `harness.report.site_writer` puts them into a folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from harness.report.page.models import LONGEST_MODEL
from harness.report.site import paths
from harness.report.site.case_pages import case_pages
from harness.report.site.error_pages import error_pages
from harness.report.site.feed import feed
from harness.report.site.material import Beside, Material
from harness.report.site.render import render, style
from harness.report.site.run_pages import entry_page, run_pages
from harness.report.site.target_pages import target_pages
from harness.report.site.upgrade_pages import upgrade_pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.report.model import Results
    from harness.report.site.material import Page


def site_files(
    results: Results,
    models: Mapping[tuple[str, str], bytes] | None = None,
    base: str = "",
    beside: Beside | None = None,
) -> dict[str, bytes]:
    """Return every file of the site but for the whole report, by its place; the same bytes for the same results.

    `models` are those of the variants, by case and name, of which the small ones lie beside the pages; `base` is the
    site's address and ends in "/". Without one there are no canonical links and no sitemap, which are absolute.
    """
    beside = beside or Beside()
    small = {paths.model(*key): data for key, data in (models or {}).items() if len(data) <= LONGEST_MODEL}
    tables = {f"{paths.LATEST}/{place}": title for place, title in beside.suites.items()}
    material = Material(results, base, frozenset(small), tables)
    files = dict(small)
    places = []
    for page in pages(material):
        files[page.path] = render(page, material).encode()
        places.append(page.path)
    files[paths.STYLE] = style().encode()
    files[paths.FEED] = feed(material).encode()
    files["robots.txt"] = _robots(base).encode()
    if base:
        files[paths.SITEMAP] = _sitemap(base, [*places, paths.REPORT, *tables]).encode()
    return files


def pages(material: Material) -> Iterator[Page]:
    """Yield every page, the entry page first."""
    yield entry_page(material)
    yield from error_pages(material)
    yield from upgrade_pages(material)
    yield from case_pages(material)
    yield from target_pages(material)
    yield from run_pages(material)


def _robots(base: str) -> str:
    return "User-agent: *\nAllow: /\n" + (f"Sitemap: {base}{paths.SITEMAP}\n" if base else "")


def _sitemap(base: str, places: list[str]) -> str:
    every = "".join(f"<url><loc>{escape(paths.address(base, place))}</loc></url>\n" for place in places)
    head = '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return f"{head}{every}</urlset>\n"
