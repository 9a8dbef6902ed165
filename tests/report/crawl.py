"""Static pages in memory, read as a crawler does: which page links to which file and place."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urlsplit

from harness.report.page import unpacked


class Read(HTMLParser):
    """A page: its elements, the texts of title, scripts and styles, its ids, and its links inward and outward."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.links: list[str] = []
        self.outside: list[str] = []
        self.ids: list[str] = []
        self.texts: dict[str, list[str]] = {"title": [], "script": [], "style": []}
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.elements.append((tag, found))
        address = found.get("href") or found.get("src")
        if address:
            (self.outside if urlsplit(address).scheme else self.links).append(address)
        if found.get("id"):
            self.ids.append(str(found["id"]))
        self._in = tag

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in in self.texts:
            self.texts[self._in].append(data)

    @property
    def title(self) -> str:
        """Return the text of its title."""
        return "".join(self.texts["title"])


def data_of(page: str) -> dict[str, Any]:
    """Return what a report's page holds of results.json, its cells whole."""
    parts = re.findall(r'id="(?:results|late)" data-gzip>(.*?)</script>', unpacked(page), re.DOTALL)
    first, late = map(json.loads, parts)
    first["cells"] = [
        first["cells"][place] | more for place, more in zip(first.pop("places"), late, strict=True)
    ]
    return dict(first)


def read_pages(files: Mapping[str, str]) -> dict[str, Read]:
    """Return the pages among some files."""
    return {name: Read(text) for name, text in files.items() if name.endswith(".html")}


def targets(page: str, link: str) -> tuple[str, str]:
    """Return the file that a link of a page leads to, and the place in it."""
    parts = urlsplit(link)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(parts.path)))
    return (path if parts.path else page), unquote(parts.fragment)


def dead(files: Mapping[str, str]) -> list[str]:
    """Return every link that leads nowhere."""
    read = read_pages(files)
    found = []
    for page, one in read.items():
        for link in one.links:
            path, place = targets(page, link)
            if path not in files or (place and path in read and place not in read[path].ids):
                found.append(f"{page}: {link}")
    return found
