"""INT8 calibrators for implicit quantisation, right ones and ones that are wrong on purpose.

The batches are the cell's own input followed by scaled copies of it, so that calibration is deterministic and needs
no data set. A calibrator hands over device addresses, one for each network input, of contiguous float32.
"""

import array
from typing import Any, Dict, List, Optional, Sequence

from harness.agent.cuda import Device

_SCALES = (1.0, 0.5, 0.75, 0.25)
_PARENTS = {"entropy": "IInt8EntropyCalibrator2", "minmax": "IInt8MinMaxCalibrator"}


class Batches:
    """The batches, and how they are handed over.

    `fault` "host_pointer" hands over host addresses, "float64" doubles twice as wide as TensorRT reads them, and
    "non_contiguous" every second element: the mistakes that users reported as product failures.
    """

    def __init__(self, recipe: Dict[str, Any], inputs: Dict[str, bytes], device: Device) -> None:
        self._fault = recipe.get("fault")
        self._inputs = inputs
        self._device = device
        self._left = list(_SCALES[: recipe["batches"]])
        self._addresses: Dict[str, int] = {}
        self._keep: List[Any] = []

    def next(self, names: Sequence[str]) -> Optional[List[int]]:
        """Return the addresses of the next batch, None after the last."""
        if not self._left:
            return None
        scale = self._left.pop(0)
        return [self._hand_over(name, _scaled(self._inputs[name], scale)) for name in names]

    def _hand_over(self, name: str, values: "array.array[float]") -> int:
        if self._fault == "host_pointer":
            self._keep.append(values)
            return values.buffer_info()[0]
        if self._fault == "float64":
            values = array.array("d", values)
        elif self._fault == "non_contiguous":
            values = values[::2]
        data = values.tobytes()
        if name not in self._addresses:
            self._addresses[name] = self._device.allocate(len(data))
        self._device.upload(self._addresses[name], data)
        return self._addresses[name]


def make_calibrator(trt: Any, recipe: Dict[str, Any], inputs: Dict[str, bytes], device: Device) -> Any:
    """Return a calibrator of the recipe's kind; `inputs` are raw float32 by network input name.

    Its `cache` holds what the builder wrote as the calibration cache, None before.
    """
    parent = getattr(trt, _PARENTS[recipe["kind"]])
    batches = Batches(recipe, inputs, device)

    class Calibrator(parent):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            parent.__init__(self)
            self.cache: Optional[bytes] = None

        def get_batch_size(self) -> int:
            return 1

        def get_batch(self, names: Sequence[str], *_: Any) -> Optional[List[int]]:
            return batches.next(names)

        def read_calibration_cache(self) -> Optional[bytes]:
            # A cache would hide which calibrator the ranges come from.
            return None

        def write_calibration_cache(self, cache: Any) -> None:
            self.cache = bytes(cache)

    return Calibrator()


def _scaled(data: bytes, scale: float) -> "array.array[float]":
    values = array.array("f")
    values.frombytes(data)
    return array.array("f", (value * scale for value in values))
