"""`explain`: each known cause in a log, or in a line of one, with its place and remedy.

A verbose build log also shows why layers lost their precision; two of them show which layers changed.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from harness.bounded import check_file
from harness.cli.options import EXIT_OK, EXIT_REGRESSION, REPORTS
from harness.cli.terminal import wrapped
from harness.errors import HandledError, InfraError
from harness.judge.complaints import INPUT, MODEL
from harness.judge.findings import Explanation, Finding
from harness.judge.reasons import BuiltLayer, LayerChange, built_layers, changes
from harness.judge.tables import explain
from harness.layers.names import is_region
from harness.layers.tactics import TacticsReader
from harness.text import clip
from harness.words import said

if TYPE_CHECKING:
    from typing import BinaryIO

#: Bytes of a log, and of one of its lines: the rest of such a line is passed over.
MOST_BYTES, _LONGEST_LINE = 512 << 20, 65_536
#: Bytes that tell whether a file is text, the control characters that logs have, and the share of others.
_LOOKED_AT, _BLANK, _IN_LOGS, _MOST_ODD = 4096, 0x20, frozenset(b"\a\b\t\n\f\r\x1b"), 0.02
#: Characters of a question: its time grows with its words, and nothing interrupts the script.
_LONGEST_QUESTION = 1000
#: Characters of a line of the log in the answer.
_QUOTED = 300
_KINDS = {"failure": "", "warning": "warning: ", "harmless": "harmless: "}
#: Layers of a sort that are printed; --json has all.
_MOST = 12
_NAME = 120


def add_explain(command: argparse.ArgumentParser) -> None:
    """Add the file and how the answer is written."""
    command.description = (
        "Say in words what a log says, of TensorRT or of what uses it. A verbose build log also tells why layers lost "
        "their precision, from the tactics that the builder tried; with a second log, of the same model, what changed. "
        "The exit code is 0 if it finds a failure, else 1."
    )
    command.add_argument("file", metavar="FILE", help="the log, - for a pipe, or a line of it in quotes")
    command.add_argument(
        "new", metavar="NEW", nargs="?", help="a later build log of the same model, to compare with"
    )
    command.add_argument(
        "--engine-version",
        default="",
        metavar="VERSION",
        help="the TensorRT that said so, if the log does not",
    )
    command.add_argument(
        "--ask",
        action="store_true",
        help="FILE is a question in quotes, as the page takes it: 'FP8 on 8.6?', 'RTX 5090', '8.6 to 10.6'",
    )
    command.add_argument(
        "--reports", type=Path, default=Path(REPORTS), metavar="DIR", help="the report that --ask reads"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")


def do_explain(options: argparse.Namespace) -> int:
    """Print the findings of a log, causes first, then warnings, then harmless ones, then unknown lines."""
    if options.ask:
        return _asked(options)
    if options.new:
        return _compared(options)
    found, layers, _ = _explained(options.file, options.engine_version)
    if options.json:
        print(json.dumps({**as_json(found), "layers": _layers_json(layers)}, indent=2, ensure_ascii=False))
    else:
        parts = [_lines(found, options.engine_version), _build_lines(layers) if layers else ()]
        print("\n\n".join(filter(None, ("\n".join(part) for part in parts))))
    return EXIT_OK if found.causes else EXIT_REGRESSION


def _asked(options: argparse.Namespace) -> int:
    """Print the answer to a question, from a report; the published one if there is no other."""
    from harness.cli.project import results_path  # noqa: PLC0415  (they take their time, and a log needs none)
    from harness.report.model import content, load_results  # noqa: PLC0415

    if options.new is not None:
        raise HandledError(f"{options.new!r} is one word too many; --ask takes one question, in quotes")
    if len(options.file) > _LONGEST_QUESTION:
        raise HandledError(
            f"--ask takes {_LONGEST_QUESTION} characters at most; a log is explained without --ask"
        )
    try:
        from harness.report.asking import answering  # noqa: PLC0415
    except ImportError as error:
        raise InfraError(f"--ask needs the package quickjs-ng, which does not load: {error}") from error
    path = results_path(options)
    results, data = load_results(path), json.loads(content(path))
    shorts = {target.id: target.short for target in results.targets}

    def headline(*sides: str) -> str:
        said = results.step(*sides).headline
        return functools.reduce(lambda text, name: text.replace(name, shorts[name]), sides, said)

    found = answering(data, headline)(options.file)
    if options.json:
        print(json.dumps({"lines": [asdict(line) for line in found.lines], "step": found.step}, indent=2))
    else:
        print("\n".join(line for each in found.lines for line in wrapped(each.text, "", "  ")))
    return EXIT_OK


def _compared(options: argparse.Namespace) -> int:
    """Print the layers that changed between two build logs."""
    (_, old, gpu), (found, new, other) = (
        _explained(name, options.engine_version) for name in (options.file, options.new)
    )
    for name, layers in ((options.file, old), (options.new, new)):
        if not layers:
            raise HandledError(
                f"{name}: holds no tactics; build with a verbose log (trtexec --verbose > build.log 2>&1, in Python a "
                "Logger of severity VERBOSE), without a timing cache"
            )
    if options.json:
        print(json.dumps({"old": _layers_json(old), "new": _layers_json(new)}, indent=2))
        return EXIT_OK
    if gpu and other and gpu != other:
        print(f"two GPUs: {gpu} in the old log, {other} in the new; each has kernels and times of its own")
    print("\n".join(_change_lines(old, new)))
    if found.causes:
        print("\nthe new log says too")
        print("\n".join(_lines(Explanation(found.causes, ()))))
    return EXIT_OK


def as_json(found: Explanation) -> dict[str, object]:
    """Return an explanation as `--json` prints it."""
    fields = ("id", "title", "cause", "advice", "where", "node", "operator", "versions", "harmless")
    return {
        "findings": [{name: getattr(each, name) for name in fields} for each in found.findings],
        "unknown": list(found.unknown),
    }


def _explained(name: str, version: str) -> tuple[Explanation, tuple[BuiltLayer, ...], str]:
    """Return the explanation of a log, the layers of the build if it tells of tactics, and the GPU that it names."""
    reader = TacticsReader()
    found = explain(_taken(_lines_of(name, version), reader), version)
    build = reader.build()
    return found, built_layers(build) if build.layers else (), build.gpu


def _taken(lines: Iterable[str], reader: TacticsReader) -> Iterator[str]:
    for line in lines:
        reader.take(line)
        yield line


def _lines_of(name: str, version: str) -> Iterator[str]:
    if version and not re.fullmatch(r"\d{1,4}(?:\.\d{1,6}){0,4}", version, re.ASCII):
        raise HandledError(f"--engine-version {version!r} is no version; write it as 8.6.1")
    if name == "-":
        return _read(sys.stdin.buffer)
    # A line that was pasted, which no file is called, or an empty one.
    pasted = not name or (any(each.isspace() for each in name) and not _is_there(name))
    return iter(name.splitlines()) if pasted else _of_file(Path(name))


def _of_file(path: Path) -> Iterator[str]:
    try:
        check_file(path, MOST_BYTES)
        with path.open("rb") as file:
            if _is_binary(file.peek(_LOOKED_AT)[:_LOOKED_AT]):
                cure = "`trt-compat check` reads models" if path.suffix == ".onnx" else "give a log, unpacked"
                raise HandledError(f"{path}: is no text; {cure}")
            yield from _read(file)
    except OSError as error:
        raise HandledError(
            f"{path}: {error.strerror or error}; give a log, or - for what comes in by a pipe"
        ) from error


def _is_binary(start: bytes) -> bool:
    """Tell whether a file that begins so is no text: a terminal's log has few other control characters."""
    odd = sum(byte < _BLANK and byte not in _IN_LOGS for byte in start)
    return odd > _MOST_ODD * len(start)


def _is_there(name: str) -> bool:
    """Tell whether a file of that name is there; a pasted line may be longer than any name."""
    try:
        return Path(name).exists()
    except OSError:
        return False


def _read(file: BinaryIO) -> Iterator[str]:
    """Yield the lines of a file, each to a bounded length."""
    read = 0
    whole = True
    while chunk := file.readline(_LONGEST_LINE):
        read += len(chunk)
        if read > MOST_BYTES:
            raise HandledError(
                f"more than {MOST_BYTES >> 20} MiB came in; give the end of the log, by `tail -c 100M`"
            )
        if whole:
            yield from chunk.decode("utf-8", "replace").rstrip("\r\n").split("\r")
        whole = chunk.endswith(b"\n")


def _lines(found: Explanation, given: str = "") -> Iterator[str]:
    if found.version:
        yield f"TensorRT {found.version}{'' if given else ', as the log says'}"
    for number, each in enumerate(found.findings):
        if number:
            yield ""
        yield from _told(each)
    if found.unknown:
        yield from (
            ("", "not known here:")
            if found.findings
            else ("nothing known in it; the lines that may matter:",)
        )
        yield from (f"  {clip(' '.join(line.split()), _QUOTED)}" for line in found.unknown)
    elif not found.findings:
        yield "nothing known in it"


def _told(each: Finding) -> Iterator[str]:
    follows = each.kind == "harmless" and not each.harmless_where
    yield f"{'' if follows else _KINDS[each.kind]}{each.title} ({each.id})"
    if each.where:
        more = f", and {each.others} more like it" if each.others else ""
        yield f"  line {each.where}{more}: {clip(' '.join(each.message.split()), _QUOTED)}"
    yield from _wrapped("means", each.cause)
    yield from _wrapped("where", _place(each))
    yield from (f"             {clip(part, 200)}" for part in each.parts)
    yield from _wrapped("versions", each.versions)
    yield from _wrapped("do", each.advice)
    yield from _wrapped("harmless?", each.harmless_where)
    yield from (f"  see        {link}" for link in each.links)


def _place(each: Finding) -> str:
    if each.operator in (INPUT, MODEL):
        return f"{each.operator} {each.node}".strip()
    node = each.node and f"node {each.node}"
    if each.parts:
        node = f"the layer {clip(each.node, 200)}, whose parts are"
    return ", ".join(filter(None, (each.operator and f"operator {each.operator}", node)))


def _wrapped(label: str, text: str) -> list[str]:
    return wrapped(text, f"  {label:<10} ", " " * 13) if text else []


def _build_lines(layers: Sequence[BuiltLayer]) -> Iterator[str]:
    """Yield the lines on one build: layers without their precision or without a kernel, then toss-ups."""
    reasons = [each.reason for each in layers if each.reason]
    clear = [f"{each}" for each in reasons if not each.toss_up]
    yield "tactics, with times as the builder took them on its GPU"
    yield from _section("lost precision, or no kernel", clear)
    if not clear:
        yield _nothing_lost(layers, close=bool(reasons))
    close = (f"{each}" for each in reasons if each.toss_up)
    yield from _section("closest calls: another build may choose otherwise", close)


def _nothing_lost(layers: Sequence[BuiltLayer], *, close: bool) -> str:
    if not any(each.precision for each in layers):
        return "  the log does not list the layers of an engine, so not which kernels were taken"
    regions = any(is_region(each.name) for each in layers)
    inside = "; the inside of a region is not printed" if regions else ""
    return f"  each runs in the finest precision that was offered{', save a close call' if close else ''}{inside}"


def _change_lines(old: Sequence[BuiltLayer], new: Sequence[BuiltLayer]) -> Iterator[str]:
    """Yield the lines on an upgrade: the layers that changed, lost precision first."""
    found = changes(old, new)
    changed = [each for each in found if each.old and each.new]
    alone = f", {len(found) - len(changed)} are in one of them only" if len(found) > len(changed) else ""
    yield f"{len(changed)} of {len(new)} layers changed from the old log to the new one{alone}"
    yield from _some(map(_change, changed))
    named = {each.new.name for each in found if each.new}
    same = (f"{each.reason}" for each in new if each.reason and each.name not in named)
    yield from _section("unchanged, without the precision that was asked or offered", same)
    yield from _one_sided(found)
    sums = [sum(each.time_us or 0 for each in side) for side in (old, new)]
    if all(sums):
        yield f"sum of the kernels that were timed: {sums[0]:.1f} us in the old, {sums[1]:.1f} us in the new"


def _one_sided(found: Sequence[LayerChange]) -> Iterator[str]:
    gone = (each.old for each in found if each.old and not each.new)
    came = (each.new for each in found if each.new and not each.old)
    yield from _section("only in the old log", map(_alone, gone))
    yield from _section("only in the new log", map(_alone, came))


def _change(change: LayerChange) -> str:
    old, new = change.old, change.new
    lost = "LOST " if change.coarser else ""
    why = f"; {new.reason.sentence}" if new and new.reason and new.reason != (old and old.reason) else ""
    return f"  {lost}{clip(change.name, _NAME)}: {old} -> {new}{why}"


def _alone(layer: BuiltLayer) -> str:
    return f"{clip(layer.name, _NAME)}: {layer}{f'; {layer.reason.sentence}' if layer.reason else ''}"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the first of some lines under a title, or nothing without one."""
    if every := list(lines):
        yield title
        yield from _some(every)


def _some(lines: Iterable[str]) -> Iterator[str]:
    every = list(lines)
    for line in every[:_MOST]:
        yield from wrapped(line.strip(), "  ", "    ")
    if every[_MOST:]:
        yield f"  and {len(every) - _MOST} more, which --json has"


def _layers_json(layers: Sequence[BuiltLayer]) -> list[dict[str, object]]:
    """Return the layers of a build as `--json` prints them."""
    return [
        {
            "name": each.name,
            "precision": said(each.precision),
            "time_us": each.time_us,
            "tactic": each.tactic,
            "multiplies": each.multiplies,
            "reason": {**asdict(each.reason), "sentence": each.reason.sentence} if each.reason else None,
        }
        for each in layers
    ]
