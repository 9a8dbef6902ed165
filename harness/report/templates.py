"""Templates filled in safely: every text is escaped, and what hides in it is written out."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from harness.text import visible

if TYPE_CHECKING:
    from pathlib import Path


def environment(folder: Path) -> jinja2.Environment:
    """Return what fills in the templates of a folder; a name that is not there raises jinja2.UndefinedError."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def policy(style: str, script: str) -> str:
    """Return the content security policy of a page that runs this style and script, and asks nothing of any network."""
    return (
        f"default-src 'none'; style-src 'sha256-{_sha256(style)}'; script-src 'sha256-{_sha256(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _shown(value: Any) -> Any:  # noqa: ANN401  (whatever a template prints)
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
