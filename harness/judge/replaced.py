"""What a version took away, and what NVIDIA's migration guide names in its place: reported, and tried by none of us.

tests/judge/test_replaced.py holds the old names against docs/capabilities.md, which is written from the real bindings.
"""

from __future__ import annotations

from dataclasses import dataclass

_GUIDE = "https://docs.nvidia.com/deeplearning/tensorrt/11.4.0/api/migration/tensorrt-10x-to-11x"
_PYTHON, _TRTEXEC = f"{_GUIDE}-python-api-reference.html", f"{_GUIDE}-trtexec.html"
_QDQ = "Q/DQ nodes in the model (explicit quantisation)"
_TYPES = "types in the model (strong typing), for example by ModelOpt's AutoCast"
_ALWAYS = "nothing: every network is strongly typed"


@dataclass(frozen=True)
class Replaced:
    """A call or option that is gone, what stands in its place, and where NVIDIA says so."""

    old: str
    new: str
    url: str


#: By the signature of the failure that the old call ends in.
REPLACED: dict[str, tuple[Replaced, ...]] = {
    "implicit-int8-removed": (
        Replaced("BuilderFlag.INT8", _QDQ, _PYTHON),
        Replaced("IBuilderConfig.int8_calibrator", _QDQ, _PYTHON),
        Replaced("IBuilderConfig.set_calibration_profile", _QDQ, _PYTHON),
        Replaced("IBuilderConfig.set_quantization_flag", _QDQ, _PYTHON),
        Replaced(
            "trtexec --int8 --calib", "a model that was quantised before, then trtexec without them", _TRTEXEC
        ),
    ),
    "weak-typing-removed": (
        Replaced("BuilderFlag.FP16", _TYPES, _PYTHON),
        Replaced("BuilderFlag.BF16", _TYPES, _PYTHON),
        Replaced("BuilderFlag.FP8", _QDQ, _PYTHON),
        Replaced("BuilderFlag.INT4", _QDQ, _PYTHON),
        Replaced("BuilderFlag.FP4", _QDQ, _PYTHON),
        Replaced("BuilderFlag.OBEY_PRECISION_CONSTRAINTS", _ALWAYS, _PYTHON),
        Replaced("BuilderFlag.PREFER_PRECISION_CONSTRAINTS", _ALWAYS, _PYTHON),
        Replaced("trtexec --fp16 (--bf16, --fp8, --int4, --best)", _TYPES, _TRTEXEC),
        Replaced("trtexec --stronglyTyped", _ALWAYS, _TRTEXEC),
    ),
}
