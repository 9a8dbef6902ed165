"""The data by which the page explains a pasted log: signatures, names and finders of harness/judge, for JavaScript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.judge import diagnosis, engine_errors, findings, logs, names, place
from harness.judge.diagnosis import load_signatures
from harness.judge.portable import javascript

if TYPE_CHECKING:
    import re

    from harness.judge.diagnosis import Signature

#: Finders of place, noise and the rest, by their names in the script.
_FINDERS: dict[str, re.Pattern[str]] = {
    "parsing": place.PARSING,
    "importer": place.IMPORTER,
    "importing": place.IMPORTING,
    "numbered": place.NUMBERED,
    "recipe": place.RECIPE,
    "stamp": place.STAMP,
    "reason": place.REASON,
    "no_implementation": place.NO_IMPLEMENTATION,
    "noise": engine_errors.NOISE,
    "no_importer": diagnosis.NO_IMPORTER,
    "quoted": logs.QUOTED,
    "own_entry": logs.OWN_ENTRY,
    "refused": logs.REFUSED,
    "listed": logs.LISTED,
    "refusal": logs.REFUSAL,
    "node_name": logs.NODE_NAME,
    "alone": logs.ALONE,
    "announces": logs.ANNOUNCES,
    "asks": logs.ASKS,
    "follows": logs.FOLLOWS,
    "calibrates": logs.CALIBRATES,
    "failed_phase": logs.FAILED_PHASE,
    "version": findings.VERSION,
    "severe": findings.SEVERE,
    "context": findings.CONTEXT,
    "region": findings.REGION,
    "pointwise": findings.POINTWISE,
    "copy": findings.COPY,
    "label": findings.LABEL,
    "node_alone": findings.NODE_ALONE,
    "upgrade": findings.UPGRADE,
}


def explaining() -> dict[str, Any]:
    """Return all that harness/report/static/explain.js has to know."""
    return {
        "signatures": [_signature(each) for each in sorted(load_signatures(), key=findings.kind_order)],
        "finders": {name: javascript(regex.pattern) for name, regex in _FINDERS.items()},
        "prefixes": [javascript(regex.pattern) for regex in logs.PREFIXES],
        "lacking": [javascript(regex.pattern) for regex in logs.LACKING],
        "forms": [[javascript(regex.pattern), said] for regex, said in findings.FORMS],
        "severities": logs.SEVERITIES,
        "codes": logs.CODES,
        "limits": {
            "messages": logs.MOST_MESSAGES,
            "forms": logs.MOST_FORMS,
            "alike": logs.MOST_ALIKE,
            "line": logs.LONGEST_LINE,
            "dropped": logs.DROPPED,
            "unknown": findings.MOST_UNKNOWN,
        },
        "near": place.NEAR,
        "see_above": findings.SEE_ABOVE,
        "close": diagnosis.CLOSE,
        "names": {name: [row.signature, row.since, row.now] for name, row in names.by_name().items()},
        "owners": javascript(names.OWNER.pattern),
        "generic": sorted(names.GENERIC),
        "operators": {name: list(names.read_since(name).values()) for name in names.operators()},
    }


def _signature(signature: Signature) -> dict[str, Any]:
    return {
        "id": signature.id,
        "title": signature.title,
        "cause": signature.cause,
        "advice": signature.advice,
        "harmless": signature.harmless,
        "kind": findings.kind(signature),
        "links": signature.links,
        "versions": signature.versions,
        "reported": " or ".join(dict.fromkeys(filter(None, (each.versions for each in signature.reported)))),
        "standard_op": signature.standard_op,
        "phases": signature.phases,
        "operator": signature.operator,
        "patterns": [
            [
                pattern.where,
                *(
                    javascript(each.pattern) if each else ""
                    for each in (pattern.regex, pattern.near, pattern.unless)
                ),
            ]
            for pattern in signature.patterns
            # What is pasted comes without its model.
            if pattern.where != "graph"
        ],
    }
