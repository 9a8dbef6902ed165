"""The layers that several cases have in common."""

from __future__ import annotations

from onnx import TensorProto

from harness.case.graph.quantised import Quantised


class Graph(Quantised):
    """A graph under construction; every method that makes a tensor returns the tensor's name (see `Base`)."""

    def conv(  # noqa: PLR0913
        self,
        tensor: str,
        weight: str,
        *,
        name: str,
        kernel: int = 3,
        stride: int = 1,
        group: int = 1,
        bias: str | None = None,
        output: str | None = None,
        dimensions: int = 2,
    ) -> str:
        """Add a Conv with a kernel of one size in all dimensions, padded by half of it on every side."""
        return self.node(
            "Conv",
            [tensor, weight] if bias is None else [tensor, weight, bias],
            name=name,
            output=output,
            group=group,
            kernel_shape=[kernel] * dimensions,
            pads=[kernel // 2] * 2 * dimensions,
            strides=[stride] * dimensions,
        )

    def conv_transpose(  # noqa: PLR0913
        self,
        tensor: str,
        weight: str,
        *,
        name: str,
        kernel: int = 4,
        stride: int = 2,
        pad: int = 1,
        dilation: int = 1,
        group: int = 1,
        output: str | None = None,
        dimensions: int = 2,
    ) -> str:
        """Add a ConvTranspose, whose weight has input channels first; with the defaults it doubles each dimension."""
        return self.node(
            "ConvTranspose",
            [tensor, weight],
            name=name,
            output=output,
            dilations=[dilation] * dimensions,
            group=group,
            kernel_shape=[kernel] * dimensions,
            pads=[pad] * 2 * dimensions,
            strides=[stride] * dimensions,
        )

    def batch_norm(  # noqa: PLR0913
        self,
        tensor: str,
        channels: int,
        *,
        name: str,
        prefix: str,
        output: str | None = None,
        dtype: int = TensorProto.FLOAT,
    ) -> str:
        """Add a BatchNormalization kept as a node.

        Its vectors are `<prefix>.weight`, `.bias`, `.running_mean` and `.running_var`.
        """
        parts = [
            self.weight(f"{prefix}.weight", (channels,), centre=1.0, spread=0.1, dtype=dtype),
            self.weight(f"{prefix}.bias", (channels,), spread=0.1, dtype=dtype),
            self.weight(f"{prefix}.running_mean", (channels,), spread=0.1, dtype=dtype),
            self.weight(f"{prefix}.running_var", (channels,), centre=1.0, spread=0.2, dtype=dtype),
        ]
        # An inference has no use for the momentum, but below opset 14 onnx.reference mixes the batch's own
        # statistics in by it; 1 keeps them out.
        return self.node(
            "BatchNormalization", [tensor, *parts], name=name, output=output, epsilon=1e-5, momentum=1.0
        )
