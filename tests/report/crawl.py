"""A site on disk or in memory, walked as a crawler does: which page links to which file and place."""

from __future__ import annotations

import posixpath
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping


class Read(HTMLParser):
    """A page: its elements, its links to this site, its ids, and its text with the classes it stands in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.links: list[str] = []
        self.outside: list[str] = []
        self.ids: list[str] = []
        self.title = ""
        self._open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.elements.append((tag, found))
        address = found.get("href") or found.get("src")
        if address and found.get("rel") != "canonical":
            (self.outside if urlsplit(address).scheme else self.links).append(address)
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if tag not in ("meta", "link", "img", "br"):
            self._open.append(f"{tag}.{found.get('class') or ''}")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().partition(".")[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.texts.append((" ".join(self._open), data))
        if self._open[-1:] == ["title."]:
            self.title += data


def pages(files: Mapping[str, bytes]) -> dict[str, Read]:
    """Return the static pages of a site; the whole report is another's business."""
    return {
        name: Read(data.decode())
        for name, data in files.items()
        if name.endswith(".html") and not name.startswith("latest/")
    }


def targets(page: str, link: str) -> tuple[str, str]:
    """Return the file that a link of a page leads to, and the place in it."""
    parts = urlsplit(link)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(parts.path)))
    return (path if parts.path else page), parts.fragment


def dead(files: Mapping[str, bytes]) -> list[str]:
    """Return every link that leads nowhere."""
    read = pages(files)
    found = []
    for page, one in read.items():
        for link in one.links:
            path, place = targets(page, link)
            if path not in files or (place and path in read and place not in read[path].ids):
                found.append(f"{page}: {link}")
    return found


def reached(files: Mapping[str, bytes], start: str = "index.html") -> set[str]:
    """Return every file that links lead to from the entry page."""
    read = pages(files)
    seen, left = {start}, [start]
    while left:
        page = left.pop()
        for link in read[page].links if page in read else ():
            path, _ = targets(page, link)
            if path not in seen:
                seen.add(path)
                left.append(path)
    return seen
