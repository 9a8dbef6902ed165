"""The page: one HTML file of results.json, gzipped, and the static app that draws it; it asks nothing of a network."""

from __future__ import annotations

import base64
import gzip
import json
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from harness.judge.names import replaced
from harness.report.explaining import explaining
from harness.report.further import further_rows
from harness.report.labels import KINDS, MARKS, READING, ROLES
from harness.report.pages import STATIC, templates
from harness.report.templates import policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: In the order in which they rely on one another.
_SCRIPTS = ("data", "state", "search", "step", "matrix", "panel", "explain", "paste", "tabs", "main")
#: No literal of the scripts is longer than a line.
_NO_CODE = re.compile(r"^ *(?:(?://.*|/\*\*(?:(?!\*/).)*\*/) *\n)?", re.MULTILINE)
_PACKED = re.compile(r"(?<=data-gzip>)[^<]+(?=</script>)")

#: The labels that packages name an address of their project by.
_ADDRESSES = {
    "issues": ("issues", "bug tracker", "issue tracker", "tracker"),
    "home": ("repository", "source", "source code", "github", "homepage"),
}


def render(data: Mapping[str, Any], text: str, suites: Mapping[str, str]) -> str:
    """Return the page of a results.json, parsed and as its text; `suites` are titles of pages by their place.

    The same text gives the same page, but for what another build of zlib makes of it.
    """
    style, script = _asset("style.css"), _script()
    return (
        templates()
        .get_template("index.html.j2")
        .render(
            data=data,
            seeds=_seeds(data),
            style=Markup(style),  # noqa: S704  (a file of this package, under the hash that the policy names)
            script=Markup(script),  # noqa: S704
            policy=policy(style, script),
            results=Markup(_packed(text)),  # noqa: S704  (base64)
            words=Markup(_packed(_words(suites, further_rows(data.get("further", ()))))),  # noqa: S704
        )
    )


def unpacked(page: str) -> str:
    """Return a page with its data in plain: another build of zlib packs the same into other bytes."""
    return _PACKED.sub(lambda found: gzip.decompress(base64.b64decode(found.group())).decode(), page)


def _packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _words(suites: Mapping[str, str], further: Sequence[Sequence[str]]) -> str:
    """Return what the app knows beside results.json, as JSON: names of classes and kinds, and the paste box's data."""
    marks = {
        str(cls): {"letters": mark.letters, "shape": mark.shape, "name": mark.name, "meaning": mark.meaning}
        for cls, mark in MARKS.items()
    }
    kinds = [{"id": key, "name": name, "meaning": meaning} for key, (name, meaning) in KINDS.items()]
    roles = {str(role): name for role, name in ROLES.items()}
    return json.dumps(
        {
            "marks": marks,
            "kinds": kinds,
            "roles": roles,
            "reading": READING,
            "replaced": {key: [[c.old, c.new, c.url] for c in calls] for key, calls in replaced().items()},
            "further": further,
            "suites": suites,
            **addresses(),
            "errors": explaining(),
        }
    )


def addresses() -> dict[str, str]:
    """Return where reports are taken ("issues") and where the project is ("home"), as the package says, "" for none."""
    try:
        named = metadata("trt-compat").get_all("Project-URL") or []
    except PackageNotFoundError:
        named = []
    every = [str(entry).partition(", ") for entry in named]
    found = {label.lower(): url for label, _, url in every if url.startswith("https://")}
    return {
        name: next((found[label] for label in labels if label in found), "")
        for name, labels in _ADDRESSES.items()
    }


def _seeds(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the problems that the project began with, each with its rows and what is known of them."""
    cells: dict[tuple[str, str], list[Any]] = {}
    for cell in data["cells"]:
        if cell["basis"]:
            cells.setdefault((cell["case"], cell["variant"]), []).append(cell)
    cases = sorted(
        (case for case in data["cases"] if case["seed"] is not None), key=lambda case: case["seed"]
    )
    return [
        {**case, "rows": [(row, cells.get((case["name"], row["name"]), [])) for row in case["variants"]]}
        for case in cases or data["cases"]
    ]


@cache
def _asset(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """Return the scripts as one, without indents and without lines that are remarks alone."""
    first, *bodies = [_NO_CODE.sub("", _asset(f"{name}.js")) for name in ("unpack", *_SCRIPTS)]
    whole = "".join([first, "const [data, words] = await allData();\n", *bodies])
    return f'"use strict";\n(async () => {{\n{whole}}})();\n'
