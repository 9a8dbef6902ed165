"""The archive of one cell for a maintainer: the issue's text, the model, the lines and files that show it, the log."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness import __version__
from harness.errors import HandledError
from harness.judge.cell import Judged, complaints, describe_recipe, headline
from harness.plan.by_hand import by_hand, model_file
from harness.share.submission import KNOWN_FACTS, Scrubber, scrubber
from harness.words import PREDICATE, UNJUDGED, Class

#: Every file has this time: the same result gives the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)
_LOG = "log.txt"
_ISSUE = "issue.md"
#: The agent's facts of the machine; the engine has a row of its own.
_FACTS = sorted(KNOWN_FACTS - {"engine", "engine_version"})


@dataclass(frozen=True)
class Shared:
    """The files of one archive by name; `title` is the issue's."""

    title: str
    files: Mapping[str, bytes]

    def archive(self) -> bytes:
        """Return the files as a zip, the same bytes for the same files."""
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.files.items():
                archive.writestr(zipfile.ZipInfo(name, _TIME), data, zipfile.ZIP_DEFLATED)
        return held.getvalue()


def share(judged: Judged, log: str) -> Shared:
    """Return the archive of a cell that was run.

    Names of this machine and its user are taken out. Raises HandledError for a cell that was not run, and if such a
    name is left.
    """
    cell, outcome = judged.cell, judged.outcome
    if judged.classification.cls in UNJUDGED:
        raise HandledError(
            f"{cell.id} {PREDICATE[judged.classification.cls]}: {judged.classification.reason}; run it first"
        )
    data = cell.variant.model_bytes()
    hand = by_hand(cell, data, outcome.stamps.image_digest)
    title = f"{cell.target.traits.product} {cell.target.version}: {headline(judged)}"
    stamps = outcome.stamps
    digest = stamps.image_digest.rpartition(":")[2]
    keep = (stamps.model_sha256, stamps.recipe_sha256, stamps.harness_commit, digest)
    clean = scrubber((cell.id, title, *stamps.packages, stamps.image), keep=keep)
    issue = "\n".join([f"# {title}", "", *_what(judged), *_lines(hand.lines), *_environment(judged, clean)])
    texts = {_ISSUE: clean.text(issue), _LOG: clean.text(log)}
    if left := clean.left_in("\n".join(texts.values())):
        raise HandledError(
            f"{left!r} is still in what was to be sent: nothing was written; please report this"
        )
    files = {_ISSUE: _bytes(texts[_ISSUE]), model_file(cell): data}
    files |= {name: _bytes(text) for name, text in hand.files.items()}
    if log:
        files[_LOG] = _bytes(texts[_LOG])
    return Shared(title, files)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _what(judged: Judged) -> list[str]:
    cell = judged.cell
    lines = [
        f"{cell.variant.title}: it {PREDICATE[judged.classification.cls]}.",
        "",
        "```text",
        judged.classification.reason,
        *complaints(judged),
        "```",
        "",
        f"Built with: {describe_recipe(cell.variant.recipe)}.",
        "",
    ]
    if judged.classification.cls is Class.PRECISION_LOST:
        lost = (
            f"- `{node}` is to run in {want} and ran in {got}"
            for node, want, got in judged.classification.lost
        )
        lines += [*lost, ""]
    return lines


def _lines(lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    return ["## To reproduce", "", "In a folder with the model:", "", "```sh", *lines, "```", ""]


def _environment(judged: Judged, clean: Scrubber) -> list[str]:
    stamps = judged.outcome.stamps
    built_for = judged.cell.target.compute_capability
    facts = {
        "engine": f"{judged.cell.target.traits.product} {stamps.engine_version}",
        "built for": f"compute capability {built_for}" if built_for else "",
        "image": " ".join(filter(None, (stamps.image, stamps.image_digest))),
        "packages": ", ".join(stamps.packages),
        **{name: clean.text(stamps.environment[name]) for name in _FACTS if name in stamps.environment},
        "model": f"sha256 {stamps.model_sha256}",
        "measured": f"{stamps.when} by trt-compat {stamps.harness_version or __version__}",
    }
    rows = [f"| {name} | {value} |" for name, value in facts.items() if value]
    return ["## Environment", "", "| | |", "| --- | --- |", *rows, ""]
