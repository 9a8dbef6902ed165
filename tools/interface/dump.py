"""Print as JSON what the bindings of one TensorRT offer; run by the Python they are for, with them on its path."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from types import ModuleType
from typing import Any

#: Methods behind an operator or a statement, which code uses without naming them.
_OPERATORS = frozenset({"__init__", "__getitem__", "__len__", "__iter__", "__enter__", "__exit__"})
_MODULES = ("", ".plugin")
_SIGNATURE = re.compile(r"^(?:\d+\. )?\w+\((?P<arguments>.*)\)(?: -> (?P<returns>.+))?$")
_ARGUMENT = re.compile(r"(?:^|, )\**(\w+)(?=: |=|,|$)")
_OWN = re.compile(r"tensorrt\w*\.(?:tensorrt\w*\.)?(\w+)")
_DEPRECATED = re.compile(r"\bDeprecated in TensorRT.*?(?=\n\s*\n|\n\s*:|\n\s*\w+ :|\Z)", re.DOTALL)


def _first_line_arguments(doc: str) -> tuple[list[str], str]:
    """Return the arguments of all overloads, and what the call returns if that is of the module itself."""
    arguments: dict[str, None] = {}
    returns = ""
    for line in doc.splitlines():
        found = _SIGNATURE.match(line)
        if found and not found["arguments"].startswith("*args"):
            # Neither types nor values of default name an argument.
            plain = re.sub(
                r"\[[^\[\]]*\]|<[^<>]*>|\([^()]*\)", "", re.sub(r"\[[^\[\]]*\]", "", found["arguments"])
            )
            arguments.update(dict.fromkeys(_ARGUMENT.findall(plain)))
            own = _OWN.fullmatch(found["returns"] or "")
            returns = own[1] if own else returns
    return [each for each in arguments if each != "self"], returns


def _note(doc: str) -> str:
    found = _DEPRECATED.search(doc)
    return " ".join(found[0].split()) if found else ""


def _member(value: Any) -> dict[str, Any]:  # noqa: ANN401  (whatever a module has)
    """Return what is known of one attribute."""
    if isinstance(value, property):
        doc = f"{getattr(value.fget, '__doc__', '') or ''}"
        return {
            "kind": "property",
            "returns": _first_line_arguments(doc.replace("(self", "get(self", 1))[1],
            "note": _note(value.__doc__ or ""),
        }
    doc = inspect.unwrap(value).__doc__ if callable(value) else ""
    if callable(value) and not isinstance(value, type):
        arguments, returns = _first_line_arguments(doc or "")
        if inspect.isfunction(value):
            arguments = [each for each in inspect.signature(value).parameters if each != "self"]
        return {"kind": "call", "arguments": arguments, "returns": returns, "note": _note(doc or "")}
    if isinstance(value, type):
        return {"kind": "class", "note": _note(doc or "")}
    return {"kind": "value", "returns": type(value).__name__, "note": ""}


def _enumerators(owner: type) -> dict[str, dict[str, Any]]:
    """Return the members of an enumeration, with what its documentation says of each."""
    text = owner.__doc__ or ""
    found = {}
    for name in getattr(owner, "__members__", ()):
        said = re.search(rf"^\s*{name} : (.*?)(?=^\s*\w+ : |\Z)", text, re.DOTALL | re.MULTILINE)
        found[name] = {"kind": "value", "returns": owner.__name__, "note": _note(said[1]) if said else ""}
    return found


def listed(module: ModuleType, name: str) -> dict[str, Any]:
    """Return the attributes of a module, with those of its classes and their bases."""
    found: dict[str, Any] = {}
    prefix = "".join(f"{each}." for each in name.split(".") if each)
    for attribute, value in vars(module).items():
        foreign = not getattr(value, "__module__", "tensorrt").startswith("tensorrt")
        if attribute.startswith("_") or isinstance(value, ModuleType) or foreign:
            continue
        found[prefix + attribute] = _member(value)
        if not isinstance(value, type):
            continue
        bases = [each.__name__ for each in value.__bases__ if each.__module__.startswith("tensorrt")]
        found[prefix + attribute]["bases"] = bases
        members = _enumerators(value)
        for own, inner in vars(value).items():
            if own in _OPERATORS or not (own.startswith("_") or own in members):
                members[own] = _member(inner)
        if hasattr(value, "__members__"):
            members = {own: each for own, each in members.items() if own not in ("name", "value", "__init__")}
        found.update({f"{prefix}{attribute}.{own}": each for own, each in members.items()})
    return found


def main(package: str) -> None:
    """Print the modules of one package together."""
    found: dict[str, Any] = {}
    # Its own submodules import it by the name that it has beside the libraries.
    sys.modules["tensorrt"] = importlib.import_module(package)
    for name in _MODULES:
        try:
            found.update(listed(importlib.import_module(package + name), name))
        except ModuleNotFoundError:
            continue
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
