"""A page in memory, read as a crawler does."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

from harness.report.page import unpacked


class Read(HTMLParser):
    """A page: its elements, and the texts of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in = tag

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in in self.texts:
            self.texts[self._in].append(data)


def data_of(page: str) -> dict[str, Any]:
    """Return what a report's page holds of results.json, its cells whole."""
    parts = re.findall(r'id="(?:results|late)" data-gzip>(.*?)</script>', unpacked(page), re.DOTALL)
    first, late = map(json.loads, parts)
    first["cells"] = [
        first["cells"][place] | more for place, more in zip(first.pop("places"), late, strict=True)
    ]
    return dict(first)
