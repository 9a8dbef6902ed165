"""The data by which the page explains a pasted log: signatures, names and finders of harness/judge, for JavaScript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.judge import complaints, diagnosis, findings, logs, names
from harness.judge.signatures import javascript, load_signatures

if TYPE_CHECKING:
    import re

    from harness.judge.signatures import Signature

#: Finders of place, noise and the rest, by their names in the script.
_FINDERS: dict[str, re.Pattern[str]] = {
    "parsing": complaints.PARSING,
    "importer": complaints.IMPORTER,
    "importing": complaints.IMPORTING,
    "numbered": complaints.NUMBERED,
    "recipe": complaints.RECIPE,
    "stamp": complaints.STAMP,
    "reason": complaints.REASON,
    "no_implementation": complaints.NO_IMPLEMENTATION,
    "noise": complaints.NOISE,
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
        "near": complaints.NEAR,
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
