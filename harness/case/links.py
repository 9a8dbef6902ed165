"""Sources that several cases name."""

from __future__ import annotations

from harness.case.claims import Link

TRT, PARSER = "https://github.com/NVIDIA/TensorRT", "https://github.com/onnx/onnx-tensorrt/blob"


def issue(number: int, about: str = "") -> Link:
    """Return an issue of TensorRT's repository; `about` is its subject in a few words."""
    return Link(f"{TRT}/issues/{number}", f"TensorRT issue {number}{f': {about}' if about else ''}")


def operators(version: str) -> Link:
    """Return the ONNX parser's list of operators, types and limits of a version: "8.6"."""
    tag = "9.2" if version == "9.2" else f"release/{version}-GA"
    return Link(f"{PARSER}/{tag}/docs/operators.md", f"ONNX parser {version}: operators")


def changes(version: str, about: str) -> Link:
    """Return NVIDIA's list of changes up to a version: "10.14"; `about` is its subject in a few words."""
    return Link(f"{TRT}/blob/release/{version}/CHANGELOG.md", f"TensorRT {version}, changes: {about}")


MIGRATION = Link(
    "https://docs.nvidia.com/deeplearning/tensorrt/11.0.0/api/migration/tensorrt-10x-to-11x.html",
    "NVIDIA: migrating from TensorRT 10.x to 11.x",
)
HEADER_86 = Link(f"{TRT}/blob/v8.6.1/include/NvInfer.h", "NvInfer.h of 8.6.1")
#: Users found it with depthwise convolutions and Swish, and report dense ones and ReLU beside them.
DEPTHWISE_SWISH = issue(3385)
#: The support of each GPU generation for INT8, INT4, FP8 and FP4 on TensorRT for RTX.
RTX_PRECISIONS = Link(
    "https://docs.nvidia.com/deeplearning/tensorrt-rtx/latest/getting-started/support-matrix-1/1.5.html",
    "NVIDIA: support matrix of TensorRT for RTX 1.5",
)
QUANTISED_TYPES = Link(
    "https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/work-with-quantized-types.html",
    "NVIDIA: working with quantised types",
)
