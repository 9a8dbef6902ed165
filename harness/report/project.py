"""Where the project is at home: the addresses that its package names, [project.urls] of pyproject.toml; "" for none."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata

#: By whom it is asked for: the labels that packages name such an address by.
_LABELS = {
    "issues": ("issues", "bug tracker", "issue tracker", "tracker"),
    "home": ("repository", "source", "source code", "github", "homepage"),
}


def addresses() -> dict[str, str]:
    """Return where reports are taken ("issues") and where the project is ("home")."""
    try:
        named = metadata("trt-compat").get_all("Project-URL") or []
    except PackageNotFoundError:
        named = []
    every = [str(entry).partition(", ") for entry in named]
    found = {label.lower(): url for label, _, url in every if url.startswith("https://")}
    return {
        name: next((found[label] for label in labels if label in found), "")
        for name, labels in _LABELS.items()
    }
