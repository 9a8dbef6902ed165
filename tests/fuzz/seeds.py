"""What fuzzing begins with: files of the published run, of the project and of its tests, each cut to what is small."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.base import JOB, LOG, PART, TOP, tar, toy
from tests.fuzz.base import packed as packed_up

#: Gives the inputs that a target begins with.
Seeds = Callable[[], Iterator[bytes]]

#: Bytes of a seed: what is longer is mutated where it does not matter.
LONGEST = 16 << 10
PUBLISHED = TOP / "reports" / "published"
LAYERS = TOP / "tests" / "layers" / "data"


def plain(*texts: str | bytes) -> Seeds:
    """Return seeds that are written out."""
    return lambda: (text.encode() if isinstance(text, str) else text for text in texts)


def of_files(folder: Path, pattern: str) -> Seeds:
    """Return the files of a folder, as far as they are short."""
    return lambda: (
        data for path in sorted(folder.glob(pattern)) if len(data := path.read_bytes()) <= LONGEST
    )


@cache
def archived(archive: str) -> dict[str, bytes]:
    """Return the files of an archive of the published run."""
    from harness.record.archive import unpack

    return unpack(PUBLISHED / archive)


def _short(lines: list[bytes], most: int) -> list[bytes]:
    """Return some short lines from all over a file."""
    short = [line for line in lines if len(line) <= LONGEST // 2]
    return short[:: max(1, len(short) // most)][:most]


def records() -> Iterator[bytes]:
    for data in archived("records.tar.xz").values():
        yield from _short(data.splitlines(), 4)


def suite_records() -> Iterator[bytes]:
    for data in list(archived("suites/onnx-node/records.tar.xz").values())[:3]:
        about, head, *lines = data.splitlines()
        small = json.loads(about)
        small["about"]["items"] = dict(list(small["about"]["items"].items())[:3])
        yield b"\n".join([json.dumps(small).encode(), head, *_short(lines, 3)])


def suite_logs() -> Iterator[bytes]:
    from harness.record.suites import section, sections

    for name, data in list(archived("suites/onnx-node/logs.tar.xz").items())[:3]:
        found = [each for each in sections(Path(name), data) if len(each[2]) < LONGEST // 4]
        yield b"".join(section(*each) for each in found[:3])


def history() -> Iterator[bytes]:
    for data in list(archived("history.tar.xz").values())[:3]:
        found = json.loads(data)
        for count in (1, 12):
            cells = dict(list(found["cells"].items())[:count])
            yield json.dumps({**found, "cells": cells}).encode()


def suite_history() -> Iterator[bytes]:
    for data in list(archived("history/suites/onnx-node.tar.xz").values())[:3]:
        found = json.loads(data)
        found["ended"] = {how: models[:60] for how, models in list(found["ended"].items())[:5]}
        yield json.dumps(found).encode()


def results() -> Iterator[bytes]:
    from harness.record.archive import decompress

    found = json.loads(decompress(PUBLISHED / "results.json.xz"))
    small = {key: value[:1] if isinstance(value, list) else value for key, value in found.items()}
    case = small["cases"][0]
    small["cases"] = [{**case, "variants": [_lean(case["variants"][0])]}]
    small["questions"] = found["questions"][:2]
    for cell in sorted(found["cells"], key=lambda cell: len(json.dumps(cell)))[::1100]:
        yield json.dumps({**small, "cells": [cell]}).encode()


def _lean(value: Any) -> Any:
    """Return JSON with long lists and texts cut."""
    if isinstance(value, dict):
        return {key: _lean(each) for key, each in value.items()}
    return [_lean(each) for each in value[:2]] if isinstance(value, list) else value


def further() -> Iterator[bytes]:
    from tests.report.test_further import entry

    yield json.dumps([entry()]).encode()


def logs(kind: str, most: int) -> Iterator[bytes]:
    """Yield logs of the published run that hold a text."""
    held = (data for data in archived("logs.tar.xz").values() if kind.encode() in data)
    yield from _short(list(held), most)


def events() -> Iterator[bytes]:
    yield PART.join(head + b"\n" + body for head, body in _said())
    for head, body in _said():
        yield head + b"\n" + body


def frames() -> Iterator[bytes]:
    from harness.agent.protocol import Frame, encode, packed

    hello = encode({"type": "hello", "facts": {"engine_version": "1"}})
    said = [packed(Frame(head, body, JOB)) for head, body in _said()]
    yield hello
    yield hello + b"".join(said)
    yield from (hello + each for each in said)
    yield encode({"type": "hello_failed", "error": "no"})


def _said() -> Iterator[tuple[bytes, bytes]]:
    """Yield one of each message that a job may say, with a body where it has one."""
    layers = {"Layers": [_layer()], "Bindings": ["x"]}
    told: list[tuple[dict[str, Any], bytes]] = [
        ({"type": "phase_begin", "name": "build"}, b""),
        ({"type": "message", "severity": "WARNING", "text": "it is so\n[WARNING] and so"}, b""),
        ({"type": "message", "severity": "VERBOSE", "text": _verbose()}, b""),
        ({"type": "native", "text": "printed\n"}, b""),
        ({"type": "phase", "name": "build", "seconds": 0.25, "ok": True}, b""),
        ({"type": "parser_error", "text": "no", "code": "8", "node": "/act", "operator": "Relu"}, b""),
        ({"type": "missing_api", "name": "BuilderFlag.FP8"}, b""),
        ({"type": "unavailable", "text": "no GPU"}, b""),
        ({"type": "agent_fault", "text": "KeyError"}, b""),
        ({"type": "failed", "text": "refused"}, b""),
        ({"type": "fact", "facts": {"timing_cache": "cold"}}, b""),
        ({"type": "plan", "bytes": 4}, b"plan"),
        ({"type": "layers", "source": "inspector"}, json.dumps(layers).encode()),
        ({"type": "layers", "source": "ort_graph"}, next(of_files(LAYERS, "ort-1.31*half.onnx")())),
        ({"type": "profile"}, b'[{"name": "a_kernel_time", "dur": 3}]'),
        ({"type": "output", "name": "y", "dtype": "float32", "shape": [1, 4, 8, 8]}, bytes(1024)),
        (
            {"type": "latency", "samples_ms": [0.5], "warmup": 3, "clock": "cuda_events", "scope": "run"}
            | {"before": {"power_w": "70"}, "after": {}, "upload_ms": [0.1]},
            b"",
        ),
        ({"type": "layer_times", "times": {"/conv": [0.1, 0.2]}}, b""),
        ({"type": "calibration_cache"}, b"TRT-8601-EntropyCalibration2\nx: 3c010a14\n"),
        (
            {"type": "end", "kind": "exited", "detail": "ended", "exit_code": 1, "peak_rss_bytes": 10},
            b"",
        ),
    ]
    for message, body in told:
        yield json.dumps(message).encode(), body


def _layer() -> dict[str, Any]:
    edge = [{"Name": "x", "Dimensions": [1, 4, 8, 8], "Format/Datatype": "Row major linear FP32"}]
    named = {"Name": "/conv", "LayerType": "CaskConvolution", "Inputs": edge, "Outputs": edge}
    return {
        **named,
        "Weights": {"Type": "Int8", "Count": 8},
        "Metadata": "[ONNX Layer: /conv]",
        "TacticName": "t",
    }


def _verbose() -> str:
    return (LAYERS / "rtx-1.7.1.116-int8-matmul-sm89.txt").read_text(encoding="utf-8")[:4000]


def inspector() -> Iterator[bytes]:
    yield json.dumps({"Layers": [_layer(), "plain name"], "Bindings": ["x"]}).encode()
    # As a build without details gives it.
    yield b'{"Layers": ["Reformatting CopyNode for Input Tensor 0 to /conv", "/conv + /act", "{ForeignNode[/x.../act]}"]}'  # noqa: E501
    later = {"Name": "/conv", "Datatype": "Int8", "Format": "Linear", "Dimensions": [1, 4], "Strides": [4, 1]}
    layer = {**_layer(), "Inputs": [later], "Constants": [later]}
    yield json.dumps({"Layers": [layer], "I/O Tensors": []}).encode()


def verbose() -> Iterator[bytes]:
    for path in sorted(LAYERS.glob("rtx-*.txt")):
        yield path.read_bytes()[:LONGEST]
    yield (LAYERS / "written-8.x-one-line.txt").read_bytes()[:LONGEST]


def replayed() -> Iterator[bytes]:
    from harness.community.check import rederived

    for outcome, log in _measured():
        data = rederived(toy()[0], outcome, log).to_json()
        del data["stamps"]["environment"]["gpu_uuid"]
        yield json.dumps(data).encode() + PART + log.encode()


def submissions() -> Iterator[bytes]:
    from tests.community.measured import DIGEST

    for outcome, log in _measured():
        environment = {k: v for k, v in outcome.stamps.environment.items() if k != "gpu_uuid"}
        data = outcome.to_json() | {"log_sha256": LOG.decode()}
        data["stamps"] |= {"environment": environment | {"gpu_hash": "a" * 24}, "harness_commit": "b" * 12}
        said = {
            "account": "alice",
            "when": outcome.stamps.when,
            "commit": "b" * 40,
            "toolkit": "",
            "kernel": "",
        }
        said |= {
            name: data["stamps"][name]
            for name in ("harness_version", "engine_version", "via", "image", "run")
        }
        said |= {name: data["stamps"]["environment"][name] for name in ("gpu", "gpu_hash", "driver")}
        whole: dict[str, Any] = {**said, "target": outcome.target, "image_digest": DIGEST}
        whole |= {"compute_capability": "8.9", "contended": [], "cells": 1, "left_out": 0, "schema": 1}
        yield PART.join((json.dumps(whole).encode(), json.dumps(data).encode(), log.encode()))


@cache
def _measured() -> tuple[tuple[Any, str], ...]:
    from tests.community.measured import measure

    cell, _ = toy()
    return tuple(measure(cell, fails=fails)[1:] for fails in (False, True))


def logs_written() -> Iterator[bytes]:
    yield from (log.encode() for _, log in _measured())
    yield from logs("[stamps]", 4)


def archives() -> Iterator[bytes]:
    yield tar({"b/one": b"1", "b/two/three": b"2" * 600})
    yield tar({"b/" + "long" * 40: b"1"})
    yield tar({"b/one": b"", "b/two": b""})


def packed() -> Iterator[bytes]:
    yield from (packed_up(data.replace(b"b/", b"a/")) for data in archives())


def zipped() -> Iterator[bytes]:
    import gzip

    yield gzip.compress(b"[stamps] {}\n[seen] {}", mtime=0)
    yield gzip.compress(b"", mtime=0) * 2


def arrays() -> Iterator[bytes]:
    import io

    import numpy as np

    for save in (np.savez, np.savez_compressed):
        buffer = io.BytesIO()
        save(buffer, x=np.zeros((1, 4), np.float32), ids=np.arange(3))
        yield buffer.getvalue()
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    yield buffer.getvalue()


def matrices() -> Iterator[bytes]:
    text = (TOP / "matrix.yaml").read_text(encoding="utf-8")
    head, _, targets = text.partition("\ntargets:\n")
    found = re.split(r"\n(?=  [a-z]\w*:)", targets)
    yield f"{head}\ntargets:\n{found[0]}\n".encode()
    for at in range(0, len(found), 4):
        yield ("schema: 1\ntargets:\n" + "\n".join(found[at : at + 4]) + "\n").encode()
    yield b"schema: 1\ntargets:\n  a: &a {engine: tensorrt, version: 10.0.0, packages: [x==1], notes: *a}\n"


def entries(path: str, form: str, most: int) -> Seeds:
    """Return the head of a YAML file and some of its entries, each by itself."""

    def found() -> Iterator[bytes]:
        text = (TOP / path).read_text(encoding="utf-8")
        parts = re.split(rf"\n(?={form})", text)
        yield parts[0].encode()
        for part in parts[1 :: max(1, len(parts) // most)]:
            yield part[:LONGEST].encode() + b"\n"

    return found


def diagnosed() -> Iterator[bytes]:
    import yaml

    texts = (TOP / "harness" / "judge" / "texts.yaml").read_text(encoding="utf-8")
    for entry in yaml.load(texts, Loader=yaml.CSafeLoader):
        yield str(entry["text"]).encode()


def logs_of_layers() -> Iterator[bytes]:
    yield (LAYERS / "written-8.x-build.log").read_bytes()[:LONGEST]
