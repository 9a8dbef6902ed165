"""The plugin `CompatIdentity` in Python, for the versions that have the classes.

Its formats are specified in cases/q_plugin_dq.py and are the same in docker/plugin/formats.h: it copies its first
input, and its attribute `formats` says in which types and layouts. The C++ side of the bindings calls the methods, with
their arguments by position.
"""

from typing import Any, Optional, Sequence, Tuple

from harness.agent.cuda import Driver

NAME = "CompatIdentity"
#: The formats of the first input that each word accepts, as (DataType, TensorFormat) by their names in Python.
ACCEPTS = {
    "int8_linear": (("INT8", "LINEAR"),),
    "int8_vectorised": (("INT8", "CHW4"), ("INT8", "CHW32")),
    "fp32": (("FLOAT", "LINEAR"),),
    "int8_fp32": (("INT8", "LINEAR"), ("FLOAT", "LINEAR")),
}
_VECTOR = {"CHW4": 4, "CHW32": 32}
_MOST_INPUTS = 2

#: A tensor's type and layout.
Choice = Tuple[str, str]

_driver: Optional[Driver] = None


def accepts(formats: str, position: int, choices: Sequence[Choice], inputs: int) -> bool:
    """Tell whether the plugin takes `choices[position]` beside the earlier ones; inputs first, then the output."""
    if not 1 <= inputs <= _MOST_INPUTS or len(choices) != inputs + 1:
        return False
    if position == 0:
        return choices[0] in ACCEPTS[formats]
    if position < inputs:
        return choices[position] == ("INT8", "LINEAR")
    return choices[position] == choices[0]


def size_in_bytes(choice: Choice, extents: Sequence[int]) -> int:
    """Return a tensor's size; CHW4 and CHW32 round the channels, third from the end, up to whole vectors."""
    kind, layout = choice
    vector = _VECTOR.get(layout, 1)
    size = 1 if kind == "INT8" else 4
    for axis, extent in enumerate(extents):
        size *= -(-extent // vector) * vector if axis == len(extents) - 3 else extent
    return size


def reads_attributes(trt: Any) -> bool:
    """Tell whether a plugin in Python can read its attributes here, which the bindings hand over as NumPy arrays.

    Without NumPy they cannot, and those of 10.0 to 10.14 with NumPy 2 repeat the first byte ("iiiiiiiiiii").
    """
    text = b"formats"
    try:
        return bool(_bytes(trt.PluginField("formats", bytearray(text), trt.PluginFieldType.CHAR)) == text)
    except ImportError:
        return False


def creator_v2(trt: Any) -> Any:
    """Return a creator of the plugin as IPluginV2DynamicExt, version "1"; TensorRT 9.0 and later have the class."""
    plugin = _plugin_v2(trt)

    class Creator(trt.IPluginCreator):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IPluginCreator.__init__(self)
            _introduce(self, trt, "1")

        def create_plugin(self, _name: str, fields: Any) -> Any:
            return plugin(_formats(fields))

        def deserialize_plugin(self, _name: str, data: bytes) -> Any:
            return plugin(bytes(data).decode())

    return Creator()


def creator_v3(trt: Any) -> Any:
    """Return a creator of the plugin as IPluginV3, version "2"; TensorRT 10.0 and later have the class."""
    plugin = _plugin_v3(trt)

    class Creator(trt.IPluginCreatorV3One):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IPluginCreatorV3One.__init__(self)
            _introduce(self, trt, "2")

        def create_plugin(self, _name: str, fields: Any, _phase: Any) -> Any:
            return plugin(_formats(fields))

    return Creator()


def _plugin_v2(trt: Any) -> Any:
    class IdentityV2(_Copy, trt.IPluginV2DynamicExt):  # type: ignore[misc]
        def __init__(self, formats: str) -> None:
            trt.IPluginV2DynamicExt.__init__(self)
            self.formats = formats
            self.num_outputs = 1
            self.plugin_type = NAME
            self.plugin_version = "1"
            self.plugin_namespace = ""

        def get_output_datatype(self, _index: int, input_types: Any) -> Any:
            return input_types[0]

        def get_output_dimensions(self, _index: int, inputs: Any, _expressions: Any) -> Any:
            return trt.DimsExprs(inputs[0])

        def supports_format_combination(self, position: int, tensors: Any, inputs: int) -> bool:
            return accepts(self.formats, position, [_choice(tensor) for tensor in tensors], inputs)

        def serialize(self) -> str:
            return self.formats

        def clone(self) -> "IdentityV2":
            return IdentityV2(self.formats)

    return IdentityV2


def _plugin_v3(trt: Any) -> Any:
    parts = (trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime)

    class IdentityV3(_Copy, *parts):  # type: ignore[misc]
        def __init__(self, formats: str) -> None:
            for part in parts:
                part.__init__(self)
            self.formats = formats
            self.num_outputs = 1
            self.plugin_name = NAME
            self.plugin_version = "2"
            self.plugin_namespace = ""
            # Kept: C++ is given a pointer to it, and into its buffer.
            self.fields, self.kept = _fields(trt, formats)

        # The method is called by this name; the documentation of 10.0 to 10.5 has get_output_datatypes.
        def get_output_data_types(self, input_types: Any) -> Any:
            return [input_types[0]]

        def get_output_shapes(self, inputs: Any, _shape_inputs: Any, _expressions: Any) -> Any:
            return [trt.DimsExprs(inputs[0])]

        def supports_format_combination(self, position: int, tensors: Any, inputs: int) -> bool:
            return accepts(self.formats, position, [_choice(tensor.desc) for tensor in tensors], inputs)

        def attach_to_context(self, _context: Any) -> Any:
            return self.clone()

        def get_fields_to_serialize(self) -> Any:
            return self.fields

        def clone(self) -> "IdentityV3":
            return IdentityV3(self.formats)

    return IdentityV3


class _Copy:
    """The methods that both kinds of plugin share, and those of V3 alone that need no state."""

    def get_capability_interface(self, _kind: Any) -> Any:
        return self

    def configure_plugin(self, _inputs: Any, _outputs: Any) -> None:
        pass

    def on_shape_change(self, _inputs: Any, _outputs: Any) -> None:
        pass

    def enqueue(self, tensors: Any, _outputs: Any, sources: Any, targets: Any, *rest: int) -> None:
        global _driver  # noqa: PLW0603  (one a process, and only if a job runs)
        if _driver is None:
            _driver = Driver()
        size = size_in_bytes(_choice(tensors[0]), list(tensors[0].dims))
        _workspace, stream = rest
        _driver.call("cuMemcpyDtoDAsync_v2", targets[0], sources[0], size, stream)


def _introduce(creator: Any, trt: Any, version: str) -> None:
    creator.name = NAME
    creator.plugin_version = version
    creator.plugin_namespace = ""
    creator.field_names, creator.kept = _fields(trt, "")


def _choice(tensor: Any) -> Choice:
    return (tensor.type.name, tensor.format.name)


def _formats(fields: Any) -> str:
    for field in fields:
        if field.name == "formats":
            # The parser counts a closing zero.
            text = _bytes(field).split(b"\0")[0].decode()
            if text in ACCEPTS:
                return text
    raise ValueError("%s: the attribute `formats` is missing or names no formats" % NAME)


def _bytes(field: Any) -> bytes:
    return bytes(field.data.tobytes())


def _fields(trt: Any, text: str) -> Tuple[Any, Tuple[Any, ...]]:
    """Return a collection with the one attribute, and the buffers that it points into and that must be kept."""
    buffer = bytearray(text.encode() + b"\0")
    vector = trt.PluginFieldCollection([trt.PluginField("formats", buffer, trt.PluginFieldType.CHAR)])
    # PluginFieldCollection is a vector in Python, and the bindings make a C++ collection of it only within a call that
    # came from Python in the same thread: get_fields_to_serialize would fail elsewhere.
    return trt.PluginFieldCollection_(vector), (vector, buffer)
