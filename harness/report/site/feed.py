"""The Atom feed: what changed from run to run, and what was measured for the first time; RFC 4287."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from harness.report.past import NEWS, news
from harness.report.site import paths
from harness.text import clip, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.report.model import RanOn, Results, RunView
    from harness.report.site.material import Material

#: Entries of the feed, and cells that one of them names.
MOST, _NAMED = 100, 20
#: What no text in XML 1.0 may hold, beside what `visible` writes out.
_NO_XML = {0xFFFE: "⟨U+FFFE⟩", 0xFFFF: "⟨U+FFFF⟩"}
_NEVER = "1970-01-01T00:00:00Z"


class Entry(NamedTuple):
    """One entry; `key` tells it from all others for good, `path` is the page that it links to."""

    key: str
    when: str
    title: str
    text: str
    path: str


def feed(material: Material) -> str:
    """Return the feed, the newest entry first; its times are those of the runs."""
    found = sorted(entries(material), key=lambda entry: entry.key)
    found = sorted(found, key=lambda entry: entry.when, reverse=True)[:MOST]
    updated = max((entry.when for entry in found), default=_NEVER)
    self_link = f'<link rel="self" href={_attribute(material.base + paths.FEED)}/>\n' if material.base else ""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>{_id(material.base or 'trt-compat')}</id>\n<title>TensorRT compatibility: changes</title>\n"
        f"<updated>{updated}</updated>\n<author><name>TensorRT compatibility matrix</name></author>\n"
        f'{self_link}<link rel="alternate" href={_attribute(material.base or paths.ENTRY)}/>\n'
        f"{''.join(_entry(material, entry) for entry in found)}</feed>\n"
    )


def entries(material: Material) -> Iterator[Entry]:
    """Yield what changed from run to run and what was measured for the first time, in no order."""
    for one in news(material.results):
        when = timestamp(one.when)
        if when:
            first, _ = one.cells[0]
            path = paths.variant(first.case, first.variant) if len(one.cells) == 1 else paths.RUNS
            named = "; ".join(f"{cell.id}: {text}" for cell, text in one.cells[:_NAMED])
            left = f"; and {len(one.cells) - _NAMED} more" if len(one.cells) > _NAMED else ""
            what = f"{len(one.cells)} cells" if len(one.cells) > 1 else first.id
            yield Entry(f"{one.kind} {one.when}", when, f"{NEWS[one.kind]}: {what}", named + left, path)
    yield from _firsts(material.results)


def _firsts(results: Results) -> Iterator[Entry]:
    """Yield for each target, engine version and device the run that measured it first."""
    seen: set[tuple[str, str, str]] = set()
    labels = {target.id: target.label for target in results.targets}
    for run in results.runs:
        for on in run.on:
            key = (on.target, on.engine, on.device)
            when = timestamp(run.when)
            if key in seen or not when:
                continue
            seen.add(key)
            yield _first(run, on, when, labels)


def _first(run: RunView, on: RanOn, when: str, labels: dict[str, str]) -> Entry:
    name = labels.get(on.target, on.target)
    cells = f"{on.cells} cell{'' if on.cells == 1 else 's'}"
    text = f"{cells} by version {on.engine} on {on.device or 'a machine without a GPU'}, in the run {run.id}."
    path = paths.target(on.target) if on.target in labels else paths.RUNS
    key = f"first {on.target} {on.engine} {on.device}"
    return Entry(key, when, f"Measured for the first time: {name} on {on.device or 'no GPU'}", text, path)


def timestamp(when: str) -> str:
    """Return a UTC time as Atom wants it, to the second; "" for what is no time, as a stranger's record may hold."""
    try:
        return dt.datetime.fromisoformat(when[:19]).strftime("%Y-%m-%dT%H:%M:%SZ") if len(when) > 18 else ""  # noqa: PLR2004
    except ValueError:
        return ""


def _entry(material: Material, entry: Entry) -> str:
    return (
        f"<entry>\n<id>{_id(entry.key)}</id>\n<title>{_text(clip(entry.title, 200))}</title>\n"
        f"<updated>{entry.when}</updated>\n"
        f"<link href={_attribute(paths.address(material.base, entry.path) if material.base else entry.path)}/>\n"
        f"<summary>{_text(clip(entry.text, 4000))}</summary>\n</entry>\n"
    )


def _id(key: str) -> str:
    """Return an id that is the same for the same key, whatever the site's address is by then."""
    safe = key.encode("utf-8", "backslashreplace").decode()
    return f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'trt-compat:{safe}')}"


def _text(text: str) -> str:
    return escape(visible(text).translate(_NO_XML))


def _attribute(text: str) -> str:
    return quoteattr(visible(text).translate(_NO_XML))
