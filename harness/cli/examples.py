"""What `--help` ends with: for each verb, lines to paste."""

from __future__ import annotations

import argparse

EXAMPLES: dict[str, tuple[str, ...]] = {
    "run": (
        "trt-compat run                                  # all that this machine can run",
        "trt-compat run -k 'mish and not qdq' --target rtx17",
        "trt-compat run --target trt102 --pull           # its image too, large as it is",
        "trt-compat run --fresh                          # also what nothing has changed for",
        "trt-compat run --resume                         # go on where a run was stopped",
        "trt-compat run --dry-run                        # only say what would run, and where",
    ),
    "check": (
        "trt-compat check model.onnx",
        "trt-compat check model.onnx --from rtx16 --to rtx17 --html out",
        "trt-compat check model.onnx --shapes images:1x3x640x640 --inputs data.npz",
    ),
    "reduce": (
        "trt-compat reduce model.onnx --target rtx16 -o small.onnx",
        "trt-compat reduce model.onnx --differs rtx17,rtx17-sm75 --case cases/mine.py",
    ),
    "bisect": ("trt-compat bisect model.onnx --good rtx17 --bad rtx14",),
    "new": ("trt-compat new my_block --from small.onnx",),
    "list": (
        "trt-compat list -k 'mish and rtx17'",
        "trt-compat list variants",
        "trt-compat list targets",
    ),
    "show": (
        "trt-compat show 'conv_silu[qdq]-rtx17'",
        "trt-compat show 'conv_silu[qdq]-rtx17' --save model.onnx",
    ),
    "doctor": ("trt-compat doctor",),
    "init": ("trt-compat init", "trt-compat init nightly    # into a new folder"),
    "report": (
        "trt-compat report",
        "trt-compat report --pages build/pages    # with a page for each error and each case",
    ),
    "diff": (
        "trt-compat diff rtx16 rtx17                     # two targets of one report",
        "trt-compat diff before/reports after/reports",
    ),
    "accept": ("trt-compat accept --target rtx17", "trt-compat accept -k 'mish[qdq]-rtx17'"),
    "merge": (
        "trt-compat merge ../gpu-box/reports",
        "trt-compat merge --check theirs.jsonl.xz",
    ),
    "verify": ("trt-compat verify",),
    "share": ("trt-compat share 'conv_silu[qdq]-rtx17' -o issue.zip",),
    "submit": ("trt-compat submit --target trt102 --account NAME",),
    "ci-matrix": ("trt-compat ci-matrix --gpu 8.9 --gpu 9.0",),
    "completion": (
        "trt-compat completion bash > ~/.local/share/bash-completion/completions/trt-compat",
        "trt-compat completion zsh > ~/.trt-compat.zsh     # and in ~/.zshrc: source ~/.trt-compat.zsh",
        "trt-compat completion fish > ~/.config/fish/completions/trt-compat.fish",
    ),
}


class Help(argparse.HelpFormatter):
    """Leaves the lines of examples as they are, and fills everything else."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_HEAD) else super()._fill_text(text, width, indent)


_HEAD = "examples:\n"


def epilog(verb: str) -> str:
    """Return the examples of a verb, "" where it has none."""
    return "\n".join([_HEAD.rstrip(), *(f"  {line}" for line in EXAMPLES[verb])]) if verb in EXAMPLES else ""
