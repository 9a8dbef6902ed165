"""Where each page of the site is, and how one of them links to another."""

from __future__ import annotations

import hashlib
import posixpath
import re

ENTRY = "index.html"
STYLE = "style.css"
FEED = "feed.xml"
SITEMAP = "sitemap.xml"
#: The whole interactive report, as `pack` writes it, and its results.json unpacked.
LATEST = "latest"
REPORT = f"{LATEST}/index.html"
DATA = f"{LATEST}/results.json"
SCHEMA = f"{LATEST}/results.schema.json"
MODELS = "models"
ERRORS, CASES, TARGETS, UPGRADES, RUNS, CONTRIBUTORS = (
    f"{name}/index.html" for name in ("errors", "cases", "targets", "upgrades", "runs", "contributors")
)
#: No name is longer: file systems take 255 bytes, and a scratch file beside it needs some of them.
_LONGEST = 100
_UNSAFE = re.compile(r"[^a-z0-9_-]")


def slug(name: str) -> str:
    """Return a name as one part of an address: no two names give the same, on no file system.

    Capitals are written out too, for some file systems take them for small letters; so are dots, for "..", for
    "index.html", and for servers that go by a name's ending.
    """
    safe = _UNSAFE.sub(lambda found: "".join(f"~{byte:02x}" for byte in _bytes(found.group())), name) or "~"
    return safe if len(safe) <= _LONGEST else f"{safe[:60]}~{hashlib.sha256(_bytes(name)).hexdigest()[:24]}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def error(signature: str) -> str:
    """Return the page of an error."""
    return f"errors/{slug(signature)}/{ENTRY}"


def case(name: str) -> str:
    """Return the page of a case."""
    return f"cases/{slug(name)}/{ENTRY}"


def variant(of: str, name: str) -> str:
    """Return the page of a variant of a case."""
    return f"cases/{slug(of)}/{slug(name)}/{ENTRY}"


def target(name: str) -> str:
    """Return the page of a target."""
    return f"targets/{slug(name)}/{ENTRY}"


def upgrade(before: str, after: str) -> str:
    """Return the page of a step from one target to another."""
    return f"upgrades/{slug(before)}/{slug(after)}/{ENTRY}"


def model(of: str, name: str) -> str:
    """Return the model of a variant, where it is small enough to lie on the site by itself."""
    return f"{MODELS}/{slug(of)}-{slug(name)}.onnx"


def relative(here: str, there: str) -> str:
    """Return what a page links to another by: it holds from a folder and under any address."""
    return posixpath.relpath(there, posixpath.dirname(here) or ".")


def address(base: str, path: str) -> str:
    """Return the address of a page for the world, as a server gives a folder's page."""
    return base + path.removesuffix(ENTRY)
