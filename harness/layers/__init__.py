"""Text of an engine -> layers; layers and nodes -> the precision each ONNX node really ran in.

The agent sends the engine's text unread; everything here runs on the host, so a better parser can
read old text again. Three sources, one result (`LayerReport`):

- verbose_log: the VERBOSE message "Layers:" at the end of a build, only with ProfilingVerbosity.DETAILED, in the
  inspector's one-line form. TensorRT-RTX 1.4 prints `Format/Datatype: Float`, no `Constants`, and ends with
  `Bindings:`; 1.5 and later print `Datatype` and `Format` apart, `Strides`, `StrideOrder` and `Constants`, and end with
  `I/O Tensors:` (measured on 1.4.0.76, 1.5.0.114, 1.6.1.120, 1.7.1.116). TensorRT 8.5 .. 10 print `Location` before
  `Dimensions` and `Weights: {"Type": "Int8", ..}`; 8.x an empty line between layers, and neither `StreamId` nor
  `Metadata` (read from published logs, not run here).
- inspector: IEngineInspector.get_engine_information(JSON). 8.5 .. 10: `Format/Datatype` ("Half", or in words,
  "Thirty-two wide channel vectorized row major Int8 format", or "N/A due to dynamic shapes"), `Weights` and
  `Bias` with a `Type`, `Bindings`. 11: `Datatype` and `Format` apart, `I/O Tensors`. A build without DETAILED
  gives plain names. Sources: github.com/NVIDIA/TensorRT/issues/2418 and /4020 (8.x, 10.x); "Migrating
  IEngineInspector Usage" in the documentation of 11.0. Not run here: it needs a GPU.
- ort_graph: the optimised model that ONNX Runtime writes (measured on 1.17.3 and 1.31.1).

The precisions that the ONNX graph asks of its nodes, and those wished of an engine, are read here too (`asked`,
`wished`).

Metadata separates its `[ONNX Layer: name]` entries by U+001F or U+001E, which a terminal does not show.
"""
