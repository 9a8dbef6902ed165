"""The page: one file of results.json and the app that draws it, without any network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import minify_html
from markupsafe import Markup
from packaging.version import Version

from harness.compare.step import COUNTED, HEADLINES
from harness.judge import complaints, diagnosis, findings, logs, names
from harness.judge.signatures import Signature, javascript, load_signatures
from harness.known.claim import GENERATIONS
from harness.matrix.operators import node_tests
from harness.report.labels import KINDS, MARKS, ROLES, STATES
from harness.report.lexicon import lexicon
from harness.text import capital, visible

STATIC = Path(__file__).parent / "static"
#: In the order in which they rely on one another.
_SCRIPTS = ("data", "state", "ask", "search", "step", "matrix", "panel", "explain", "paste", "tabs", "main")
#: Bytes of the largest model that the page itself holds.
LARGEST_MODEL = 10240
#: The fields of a cell that its place tells, then those that only its panel or a tab needs: the page unpacks them late.
LATE = frozenset(
    (
        *("id", "case", "variant", "target"),
        *("accuracy", "attention_kernel", "by_hand", "demanded", "engine_bytes", "errors", "failed_phase"),
        *(
            "layers",
            "log",
            "missing_api",
            "notes",
            "other",
            "past",
            "phases",
            "reason",
            "stamps",
            "when",
            "why",
        ),
    )
)
#: The fields of a claim that the page shows.
_TOLD = ("basis", "note", "of", "says", "scope", "source", "title", "where")
_PACKED = re.compile(r"(?<=data-gzip>)[^<]+(?=</script>)")

#: The labels of the addresses in the package's metadata.
_ADDRESSES = {"issues": "issues", "home": "repository"}

#: How the name of a fused layer tells which nodes of the model are in it.
READING = (
    ("a + b", "one layer that does the work of the nodes a and b, in this order"),
    (
        "w + w_quantize + conv",
        "the same, quantised explicitly: a weight, its QuantizeLinear, then their node",
    ),
    ("PWN(a, b)", "pointwise nodes merged into one; PWN(PWN(Sigmoid), Mul) is SiLU"),
    ("{ForeignNode[a...b]}", "all between the nodes a and b, given to the graph compiler as one piece"),
    ("a || b", "nodes side by side that read the same tensor, merged into one"),
    ("node_of_x", "a node that has no name in the model; x is its first output"),
    ("(Unnamed Layer* 269) [Shuffle]", "the engine's layer 269, made by the parser; no node has this name"),
    ("__myl_MulAdd_myl0_3", "a name that the graph compiler made of operations; no node has it"),
    ("Reformatting CopyNode for Input Tensor 0 to a", "a copy that changes the format of an input of a"),
)
#: The patterns of the judge that explain.js searches with, by the names that it has for them.
_FINDERS = {
    "parsing": complaints.PARSING,
    "reason": complaints.REASON,
    "no_implementation": complaints.NO_IMPLEMENTATION,
    "noise": complaints.NOISE,
    "no_importer": diagnosis.NO_IMPORTER,
    "own_entry": logs.OWN_ENTRY,
    "refused": logs.REFUSED,
    "listed": logs.LISTED,
    "refusal": logs.REFUSAL,
    "alone": logs.ALONE,
    "announces": logs.ANNOUNCES,
    "asks": logs.ASKS,
    "follows": logs.FOLLOWS,
    "calibrates": logs.CALIBRATES,
    "failed_phase": logs.FAILED_PHASE,
    "quoted": logs.QUOTED,
    "version": findings.VERSION,
    "severe": findings.SEVERE,
    "context": findings.CONTEXT,
    "node_alone": findings.NODE_ALONE,
}
#: The limits of the judge that explain.js keeps.
_LIMITS = {
    "messages": logs.MOST_MESSAGES,
    "forms": logs.MOST_FORMS,
    "alike": logs.MOST_ALIKE,
    "line": logs.LONGEST_LINE,
    "dropped": logs.DROPPED,
    "prefixes": logs.MOST_PREFIXES,
    "joined": logs.MOST_JOINED,
    "near": complaints.NEAR,
    "close": diagnosis.CLOSE,
    "places": diagnosis.MOST_PLACES,
    "unknown": findings.MOST_UNKNOWN,
    "others": findings.MOST_OTHERS,
    "same": findings.MOST_SAME,
}
#: The tabs below the matrix, each a macro of tabs.html.j2.
TABS = ("errors", "changes", "operators", "targets", "legend", "data")
#: Ends of node tests that speak of the operator; a refusal may be of the test's form, axes that are no constants.
_ENDS = {"wrong": "wrong numbers", "crashed": "ends the process"}
#: The fields of a signature that the script reads as they are.
_AS_IT_IS = (
    *("id", "title", "cause", "advice", "harmless", "versions"),
    *("standard_op", "phases", "operator", "kind"),
)


def render(
    data: Mapping[str, Any],
    suites: Mapping[str, str],
    further: Sequence[Sequence[str]] = (),
    models: Mapping[str, bytes] | None = None,
) -> str:
    """Return the page of a results.json; `suites` are titles of pages by their place.

    `further` are the rows of a check's further tries; `models` are files by name, the small ones of which it holds.
    The same data give the same page, but for another build of zlib.
    """
    style, script = _style(), _script()
    small = {name: data for name, data in (models or {}).items() if len(data) <= LARGEST_MODEL}
    coded = {name: base64.b64encode(data).decode() for name, data in sorted(small.items())}
    first, late = early_and_late(data)
    template = environment(STATIC).get_template("index.html.j2")
    return template.render(
        data=data,
        style=Markup(style),  # noqa: S704  (a file of this package, under the hash that the policy names)
        script=Markup(script),  # noqa: S704
        policy=policy(style, script),
        results=_packed(first),
        words=_packed({**_words(further, small), "lexicon": lexicon(data)}),
        late=_packed(late),
        models=_packed(coded),
        tabs=_packed(_tabs(data, suites)),
    )


def early_and_late(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the data with cells that are alike once, and the fields of each cell that are unpacked late."""
    kinds: dict[str, tuple[int, dict[str, Any]]] = {}
    places, late = [], []
    for cell in map(_shown_of, data["cells"]):
        late.append({name: cell[name] for name in cell if name in LATE})
        early = {name: cell[name] for name in cell if name not in LATE}
        places.append(kinds.setdefault(json.dumps(early), (len(kinds), early))[0])
    cases = [{**case, "variants": list(map(_told, case["variants"]))} for case in data["cases"]]
    return {**data, "cells": [early for _, early in kinds.values()], "places": places, "cases": cases}, late


def unpacked(page: str) -> str:
    """Return a page with its data in plain: another build of zlib packs the same into other bytes."""
    return _PACKED.sub(lambda found: gzip.decompress(base64.b64decode(found.group())).decode(), page)


def _shown_of(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a cell that the page shows: not the names of files, which a copy of the page lacks."""
    by_gpu = [{name: each[name] for name in each if name != "log"} for each in cell["by_gpu"]]
    lines = [line for line in cell.get("by_hand", ()) if not line.startswith("# these lines were not tried")]
    found = {name: cell[name] for name in cell if name not in ("log", "layers")}
    return {**found, "by_gpu": by_gpu, **({"by_hand": lines} if "by_hand" in cell else {})}


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "claims": [{name: claim[name] for name in _TOLD} for claim in row["claims"]]}


def _packed(data: object) -> Markup:
    packed = gzip.compress(json.dumps(data).encode(), 8, mtime=0)
    return Markup(base64.b64encode(packed).decode())  # noqa: S704  (base64)


def _words(further: Sequence[Sequence[str]], models: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the data of the app beside results.json: names of classes and kinds, and the paste box's data."""
    return {
        "marks": {str(cls): asdict(mark) for cls, mark in MARKS.items()},
        "kinds": [{"id": key, "name": name, "meaning": meaning} for key, (name, meaning) in KINDS.items()],
        "headlines": HEADLINES,
        "counted": COUNTED,
        "generations": {each.capability: each.architecture for each in GENERATIONS},
        "roles": {str(role): name for role, name in ROLES.items()},
        "removed": [[each.name, each.first, each.gone, each.signature, each.now] for each in names.ended()],
        "states": STATES,
        "ends": [{**each.ends, "signature": each.id} for each in load_signatures() if each.ends],
        "further": further,
        "models": {name: len(data) for name, data in models.items()},
        **addresses(),
        "errors": explaining(),
    }


def addresses() -> dict[str, str]:
    """Return the addresses of reports ("issues") and the project ("home") in the package's metadata, "" if missing."""
    try:
        named = metadata("trt-compat").get_all("Project-URL") or []
    except PackageNotFoundError:
        named = []
    every = (str(each).partition(", ") for each in named)
    found = {label.lower(): url for label, _, url in every if url.startswith("https://")}
    return {name: found.get(label, "") for name, label in _ADDRESSES.items()}


@cache
def _style() -> str:
    return _minified("style", asset("style.css"))


@cache
def _script() -> str:
    """Return the scripts as one program."""
    first, *bodies = [asset(f"{name}.js") for name in ("unpack", *_SCRIPTS)]
    whole = "".join([first, "const [data, words] = await allData();\n", *bodies])
    return f'"use strict";{_minified("script", f"(async () => {{{whole}}})();")}'


def asset(name: str) -> str:
    """Return the text of a file that the page is made of."""
    return (STATIC / name).read_text(encoding="utf-8")


def _minified(element: str, text: str) -> str:
    whole = minify_html.minify(f"<{element}>{text}</{element}>", minify_js=True, minify_css=True)
    return whole.removeprefix(f"<{element}>").removesuffix(f"</{element}>")


def explaining() -> dict[str, Any]:
    """Return all that harness/report/static/explain.js has to know."""
    return {
        "signatures": [_signature(each) for each in sorted(load_signatures(), key=findings.told_at)],
        "finders": {name: javascript(found.pattern) for name, found in _FINDERS.items()},
        "limits": _LIMITS,
        "begin": logs.BEGIN,
        "prefixes": [javascript(regex.pattern) for regex in logs.PREFIXES],
        "lacking": [javascript(regex.pattern) for regex in logs.LACKING],
        "severities": logs.SEVERITIES,
        "codes": logs.CODES,
        "names": {name: [row.signature, row.since, row.now] for name, row in names.by_name().items()},
        "owners": javascript(names.OWNER.pattern),
        "generic": sorted(names.GENERIC),
        "operators": {name: names.read_since(name) for name in names.operators()},
    }


def _tabs(data: Mapping[str, Any], suites: Mapping[str, str]) -> dict[str, str]:
    """Return what stands below the matrix, by tab."""
    found = {
        "data": data,
        "suites": suites,
        **addresses(),
        "shown": _by_signature(data),
        **_changed(data),
        **_operators(data),
    }
    made = templates().get_template("tabs.html.j2").make_module(found)
    return {tab: str(getattr(made, f"tab_{tab}")()) for tab in TABS}


def _by_signature(data: Mapping[str, Any]) -> dict[str, list[Mapping[str, str]]]:
    """Return the cells of each signature."""
    titles = {(case["name"], row["name"]): row["title"] for case in data["cases"] for row in case["variants"]}
    shown: dict[str, list[Mapping[str, str]]] = {}
    for cell in data["cells"]:
        told = {"id": cell["id"], "title": titles[cell["case"], cell["variant"]]}
        shown.setdefault(cell["signature"], []).append(told)
    return shown


def _changed(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes between versions, each with its cells, and the cells that changed between runs."""
    moved: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for each in data["changes"]:
        better = {None: "", True: ", better", False: ", worse"}[each["better"]]
        row = f"{each['case']}.{each['variant']}"
        key = f"{each['series']} {each['versions']}", f"{each['kind']}{better}", each["text"]
        moved.setdefault(key, []).append({"id": f"{row}-{each['after']}", "title": row})
    ordered = sorted(moved.items(), key=lambda each: (not each[0][1].startswith("result"), -len(each[1])))
    return {"moved": ordered, "past": [cell for cell in data["cells"] if cell.get("past")]}


def _operators(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return of each operator its rows, which of some versions read it, and how ONNX's own tests of it ended."""
    graphs = [row["graph"]["nodes"] for case in data["cases"] for row in case["variants"]]
    present = Counter(chain.from_iterable({node["op"] for node in nodes} for nodes in graphs))
    first = {name: Version(names.since(name) or "999") for name in names.operators()}
    versions = sorted({names.since(name) for name in first} - {""}, key=Version)
    ends = [badly_ended(at) for at in (0, 1)]
    known = list(map(Version, versions))
    read = [
        (
            name,
            present[name],
            [since <= each for each in known],
            [each.get(name, ()) for each in ends],
        )
        for name, since in first.items()
    ]
    return {"versions": versions, "read": read}


def badly_ended(at: int) -> dict[str, list[str]]:
    """Return how many of how many node tests of each operator ended badly on one version."""
    ran = [test for test in node_tests() if test.ends[at] != "-"]
    every, bad = (
        Counter(test.operator for test in ran),
        Counter((test.operator, test.ends[at]) for test in ran),
    )
    found: dict[str, list[str]] = {}
    for (name, end), count in bad.items():
        if end in _ENDS:
            found.setdefault(name, []).append(f"{_ENDS[end]} {count} of {every[name]}")
    return found


def _signature(signature: Signature) -> dict[str, Any]:
    return {
        **{name: getattr(signature, name) for name in _AS_IT_IS},
        "patterns": [
            [
                pattern.where,
                *(
                    javascript(each.pattern) if each else ""
                    for each in (pattern.regex, pattern.near, pattern.unless)
                ),
            ]
            for pattern in signature.patterns
            # A pasted log comes without its model.
            if pattern.where != "graph" and pattern.model is None
        ],
    }


def environment(folder: Path) -> jinja2.Environment:
    """Return the environment of the templates in a folder; a name that is not there raises jinja2.UndefinedError."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def policy(style: str, script: str) -> str:
    """Return the content security policy of a page that runs this style and script, without any network."""
    return (
        f"default-src 'none'; style-src 'sha256-{_sha256(style)}'; script-src 'sha256-{_sha256(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _shown(value: Any) -> Any:  # noqa: ANN401  (whatever a template prints)
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def templates() -> jinja2.Environment:
    """Return the templates of the page."""
    made = environment(STATIC)
    made.globals.update(MARKS=MARKS, STATES=STATES, KINDS=KINDS, READING=READING)
    made.filters.update(anchor=_anchor, capital=capital, brief_address=_brief_address)
    return made


def _anchor(cell: str) -> str:
    """Return the link to a cell by its id, as the report's script reads it."""
    return "#" + quote(cell.encode("utf-8", "replace"), safe="-_.!~*'()")


def _brief_address(url: str) -> str:
    """Return the part that tells an address from others: the thread, or the host and the last part."""
    thread = re.fullmatch(r"https://github\.com/([^/]+/[^/]+)/(?:issues|pull)/(\d+)", url)
    plain = url.removeprefix("https://")
    return f"{thread[1]}#{thread[2]}" if thread else f"{plain.partition('/')[0]}, {plain.rpartition('/')[2]}"
