"""INT8 calibrators for implicit quantisation, right ones and some that are wrong on purpose.

The batches are those of the recipe's data, or the cell's own inputs followed by scaled copies of them, so that
calibration is deterministic and needs no data set; with dynamic shapes they have the profile's optimum, which is the
calibration profile too. A calibrator hands over device addresses, one for each network input, of contiguous elements:
float32, but for own data of another type.

TensorRT's bindings catch an exception in a calibrator, print it and go on as if the batches had ended
(https://github.com/NVIDIA/TensorRT/issues/3871). The build that then fails is not the product's failure: `blame` says
whose it is.
"""

import array
from typing import Any, Dict, List, Optional, Sequence, Tuple

from harness.agent.cuda import CudaDevice, CudaError

_SCALES = (1.0, 0.5, 0.75, 0.25)
_PARENTS = {"entropy": "IInt8EntropyCalibrator2", "minmax": "IInt8MinMaxCalibrator"}

#: The exceptions of the present job's calibrators.
raised: List[BaseException] = []


class Batches:
    """The batches, and how they are handed over.

    `fault` "host_pointer" hands over host addresses, "float64" doubles twice as wide as TensorRT reads them, and
    "non_contiguous" every second element: the mistakes that users reported as product failures.
    """

    def __init__(self, recipe: Dict[str, Any], inputs: Dict[str, bytes], device: CudaDevice) -> None:
        self._fault = recipe.get("fault")
        self._inputs = inputs
        self._device = device
        self._own, self._many = bool(recipe.get("data")), recipe["batches"]
        self._left = list(range(recipe["batches"]))
        self._addresses: Dict[str, int] = {}
        self._keep: List[Any] = []

    def next(self, names: Sequence[str]) -> Optional[List[int]]:
        """Return the address of each named input's next batch, in the order of the names; None after the last."""
        if not self._left:
            return None
        index = self._left.pop(0)
        if self._own:
            return [self._upload(name, self._batch(name, index)) for name in names]
        scale = _SCALES[index % len(_SCALES)]
        return [self._hand_over(name, _scaled(self._inputs[name], scale)) for name in names]

    def _batch(self, name: str, index: int) -> bytes:
        length = len(self._inputs[name]) // self._many
        return self._inputs[name][index * length : (index + 1) * length]

    def _hand_over(self, name: str, values: "array.array[float]") -> int:
        if self._fault == "host_pointer":
            self._keep.append(values)
            return values.buffer_info()[0]
        if self._fault == "float64":
            values = array.array("d", values)
        elif self._fault == "non_contiguous":
            values = values[::2]
        return self._upload(name, values.tobytes())

    def _upload(self, name: str, data: bytes) -> int:
        if name not in self._addresses:
            self._addresses[name] = self._device.allocate(len(data))
        self._device.upload(self._addresses[name], data)
        return self._addresses[name]


def make_calibrator(trt: Any, recipe: Dict[str, Any], inputs: Dict[str, bytes], device: CudaDevice) -> Any:
    """Return a calibrator of the recipe's kind; `inputs` are raw float32 by network input name, or all own batches.

    Its `cache` is the one that the builder wrote, None before. A cache never passes from one cell to another: it would
    hide which calibrator and which version the ranges come from.
    """
    parent = getattr(trt, _PARENTS[recipe["kind"]])
    batches = Batches(recipe, inputs, device)

    class Calibrator(parent):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            # pybind11 wants the base's own constructor called by name.
            parent.__init__(self)
            self.cache: Optional[bytes] = None

        def get_batch_size(self) -> int:
            # The network has an explicit batch dimension; it is in the inputs' own shape.
            return 1

        def get_batch(self, names: Sequence[str], *_: Any) -> Optional[List[int]]:
            try:
                return batches.next(names)
            except Exception as error:
                raised.append(error)
                return None

        def read_calibration_cache(self) -> Optional[bytes]:
            return self.cache

        def write_calibration_cache(self, cache: Any) -> None:
            self.cache = bytes(cache)

    return Calibrator()


def blame(errors: Sequence[BaseException]) -> Optional[Tuple[str, str]]:
    """Return ("engine" or "agent", one sentence) for exceptions of calibrators, None without any.

    A CUDA error while a batch is copied comes from the work before it on the device: the engine's own, or that of a
    wrong calibrator, whose recipe says so. Anything else is a fault of this program.
    """
    for error in errors:
        if not isinstance(error, CudaError):
            return "agent", "the calibrator failed: %s: %s" % (type(error).__name__, error)
    return ("engine", "calibration could not go on: %s" % errors[0]) if errors else None


def _scaled(data: bytes, scale: float) -> "array.array[float]":
    values = array.array("f")
    values.frombytes(data)
    return array.array("f", (value * scale for value in values))
