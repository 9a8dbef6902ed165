# ruff: noqa: E501  (engine texts are quoted whole)
"""Texts that engines really print, by signature, from harness/judge/texts.yaml; and near misses."""

from __future__ import annotations

from harness.judge.signatures import load_signatures, load_texts

_NOTES = {signature.id for signature in load_signatures() if signature.note}
_INNOCENT = {signature.id for signature in load_signatures() if signature.innocent}

#: (id, place, text); the place "refused" is an entry of the parser's error list, as `operator: code: text`.
TEXTS = [
    (each.id, each.place, each.text)
    for each in load_texts()
    if each.id not in _NOTES | _INNOCENT and each.place != "log"
]
#: (id, text): texts of several lines of a log.
LOGS = [(each.id, each.text) for each in load_texts() if each.place == "log"]
NOTES = [(each.id, each.text) for each in load_texts() if each.id in _NOTES]
INNOCENT = [(each.id, each.place, each.text) for each in load_texts() if each.id in _INNOCENT]

RTX, STRONG, WEAK = "tensorrt_rtx, strongly typed", "tensorrt, strongly typed", "tensorrt, weakly typed"
VECTOR = "a scale in a vector of one element"
#: (id, operator, its request and feed, class, network): causes that are told from the model if the engine is silent.
SILENT = [
    ("deconvolution-in-float", "ConvTranspose", ("int8", ""), "precision_lost", RTX),
    ("scale-in-vector", "Conv", ("fp8", VECTOR), "precision_lost", RTX),
    ("concat-of-unlike-scales", "Concat", ("", "inputs of unlike scales"), "crashed", RTX),
    ("concat-of-unlike-scales", "Conv", ("int8_weights", "inputs of unlike scales"), "precision_lost", WEAK),
    ("fp8-weakly-typed", "Conv", ("fp8", ""), "precision_lost", WEAK),
    ("product-of-narrow-weights", "MatMul", ("int4_weights", ""), "precision_lost", WEAK),
    ("normalisation-overflows", "Pow", ("", ""), "inaccurate", WEAK),
    ("fp8-weakly-typed", "Conv", ("fp8", VECTOR), "precision_lost", WEAK),
]
#: The same, of another kind.
TALKING = [
    ("Conv", ("int8", ""), "precision_lost", RTX),
    ("ConvTranspose", ("fp16", ""), "precision_lost", RTX),
    ("ConvTranspose", ("int8", ""), "crashed", RTX),
    ("Conv", ("int8", VECTOR), "crashed", RTX),
    # On TensorRT a scale in a vector costs nothing, and FP8 is not lost for the typing in a strongly typed network.
    ("Conv", ("int8", VECTOR), "precision_lost", WEAK),
    ("Conv", ("fp8", VECTOR), "precision_lost", STRONG),
    ("MatMul", ("fp8", ""), "precision_lost", WEAK),
    *(
        (operator, said, "inaccurate", network)
        for _, operator, said, cls, network in SILENT
        if cls != "inaccurate"
    ),
    *((operator, said, "build_failed", network) for _, operator, said, _, network in SILENT),
]

#: Texts that are near a signature but of another kind: (id that must not be found, place, text).
NEAR_MISSES = [
    ("no-implementation", "warnings", "Could not find any implementation for node x."),
    ("no-int8-convolution", "errors", "MyelinCheckException: cudnn_impl.cpp:9: CHECK(dtype == myelinTypeInt32) failed."),
    ("implicit-int8-removed", "errors", "Parameter check failed, condition: config.getFlag(BuilderFlag::kINT8)"),
    ("implicit-int8-removed", "missing_api", "BuilderFlag.INT8_COMPAT"),
    ("implicit-int8-removed", "missing_api", "BuilderFlag.INT4"),
    ("weak-typing-removed", "missing_api", "BuilderFlag.INT8"),
    ("weak-typing-removed", "missing_api", "BuilderFlag.TF32"),
    ("weak-typing-removed", "missing_api", "ILayer.precision_is_set"),
    ("strong-typing-missing", "missing_api", "NetworkDefinitionCreationFlag.EXPLICIT_BATCH"),
    ("parser-flag-missing", "missing_api", "OnnxParserFlag.NATIVE_INSTANCENORM.value"),
    ("not-on-this-generation", "errors", "Cannot compile operation '/MatMul' for Turing (SM75): FP32 GEMM is not supported."),
    ("fp32-not-on-turing", "errors", "Cannot compile operation '/conv' for Turing (SM75): native INT8 convolution is not currently supported."),
    ("fp32-not-on-turing", "errors", "Cannot compile operation '/MatMul' for Ampere (SM86): FP32 GEMM is not supported."),
    ("no-importer", "parser", "Op type IdentityInt8 is not supported in TensorRT-RTX."),
    ("no-importer", "warnings", "No importer registered for op: CompatIdentity. Attempting to import as plugin."),
    ("instancenorm-plugin-missing", "errors", "getPluginCreator could not find plugin: GroupNormalization_TRT version: 1"),
    ("mixed-types-norm", "parser", "Inputs must be either all FLOAT or all INT32."),
    ("candidates-removed", "errors", "Assertion !n->candidateRequirements.empty() failed. no supported formats"),
    ("calibrator-cuda-error", "errors", "Error Code 1: Cuda Runtime (an error that is none of these)"),
    ("runtime-ir-11", "errors", "Unsupported model IR version: 13, max supported IR version: 12"),
    ("runtime-ir-10", "errors", "Unsupported model IR version: 14, max supported IR version: 10"),
    ("runtime-empty-reduction", "errors", "Non-zero status code returned while running ReduceMax node. Name:'r' Status Message: out of memory"),
    ("runtime-type", "errors", "Type Error: Type (tensor(float)) of output arg (y) of node (n) does not match expected type (tensor(float16))."),
    ("runtime-not-registered", "errors", "Fatal error: com.microsoft:Gelu(1) could not be created"),
    ("mixed-qdq-types", "errors", "Could not infer output types for operation: 12"),
    ("cast-type", "errors", "Unsupported data type for the Clip operator!"),
    ("string-type", "native", "Unsupported ONNX data type: STRINGS"),
    ("string-type", "refused", "Unique: UNSUPPORTED_NODE: false"),
    ("sequence-or-optional", "native", "Unsupported ONNX data type: <UNKNOWN> (20)"),
    ("sequence-or-optional", "refused", "Split: UNSUPPORTED_NODE: false"),
    ("sixteen-bit-integer", "native", "Unsupported ONNX data type: FLOAT16 (10)"),
    ("wide-unsigned-integer", "native", "Unsupported ONNX data type: INT64 (7)"),
    ("four-bit-integer", "native", "Unsupported ONNX data type: <UNKNOWN> (2)"),
    ("other-fp8", "native", "Unsupported ONNX data type: FLOAT8E4M3FN (17)"),
    ("uint8-tensor", "errors", "ITensor::getDimensions: Error Code 4: API Usage Error (/b: ElementWiseOperation DIV requires inputs with type kFLOAT, kHALF. But type is Bool.)"),
    ("bool-reduction", "errors", "Found unsupported input type of UINT8"),
    ("type-of-operator", "errors", "This version of TensorRT only supports the training_mode input as an initializer."),
    ("mod-of-floats", "errors", "The fmod attribute is set to 1. Inputs must be of floating point types."),
    ("quantised-output-type", "errors", "Attribute axis specifies an unsupported data type"),
    ("zero-point-not-constant", "errors", "IQuantizeLayer node_of_y has `zero_point` of another type than its output"),
    ("input-not-constant", "errors", "Axis input must be an initializer!"),
    ("floating-shape-input", "errors", "Network input scales is a shape tensor and must be on the host"),
    ("quantised-operator", "refused", "QLinearConv: UNSUPPORTED_NODE_ATTR: group must be 1"),
    ("quantised-operator", "refused", "QuantizeLinear: UNSUPPORTED_NODE: false"),
    ("training-operator", "refused", "Adamax: UNSUPPORTED_NODE: false"),
    ("bit-operator", "refused", "BitShift: INVALID_NODE: direction must be LEFT or RIGHT"),
    ("preprocessing-operator", "refused", "STFT: UNSUPPORTED_NODE: false"),
    ("classical-operator", "refused", "Binarizer: INVALID_NODE: threshold is missing"),
    ("contrib-operator", "refused", "Gelu: INTERNAL_ERROR: Op type Gelu is not supported in TensorRT-RTX."),
    ("nbits-type", "errors", "input tensor B must be UINT8."),
    ("operator-unknown", "refused", "Resize: UNSUPPORTED_NODE_ATTR: false"),
    ("operator-unknown", "refused", "Resize: UNSUPPORTED_NODE: mode is unknown"),
    ("plugin-needs-gpu", "errors", "Cuda Error in ROIAlignV3: 2 (out of memory)"),
    ("attention-outputs", "errors", "TensorRT only supports Loop nodes with one output."),
    ("attention-no-kernel", "errors", "RoPE operation was not supported by a dedicated kernel."),
    ("attention-mask-and-causal", "errors", "Option mask cannot be used together with a bias"),
    ("attention-softcap", "errors", "Setting softcap is deprecated in TensorRT Attention."),
    ("attention-shapes", "errors", "/attn: Key and Query must have the same shape"),
    ("extra-outputs", "errors", "doesn't support mode than 1 outputs"),
    ("resize-mode", "errors", "TensorRT only supports linear and nearest"),
    ("scatter-reduction", "errors", "ScatterND with indices of INT8 is not supported."),
    ("scatter-reduction", "errors", "ReduceFoo: Unsupported reduction type"),
    ("tensor-scatter", "errors", "The past_cache tensor is required to be FP16"),
    ("pooling-form", "errors", "does not support strides other than 1."),
    ("gridsample-volume", "errors", "addResize: condition: input.getDimensions().nbDims == 4"),
    ("rank-limit", "errors", "convertOnnxDims(dims) failed for a negative dimension"),
    ("int32-bias", "errors", "/b: input has type Int32 but must have type Bool"),
    ("scale-axis", "errors", "Axis must be in the range [0, nbDims (4)]. Provided axis is: 7"),
    ("int8-constant", "errors", "Quantized constant is only allowed before DQ or PLUGIN_V2 node"),
    ("four-bit-odd", "errors", "8-bit quantization requies an even number of elements."),
    ("mixed-types-elementwise", "errors", "/Add: ElementWiseOperation SUM must have same input shapes."),
    ("topk-limit", "errors", "ITopKLayer /TopK: K must be positive (3840)"),
    ("bf16-deconvolution", "errors", "Could not infer output types for operation:    32: conv: /Conv_o0-(bf16[1,8,10,10][]so[])"),
    ("rotary-order", "errors", "/RotaryEmbedding: positionIds has type Float but must have type Int32 or Int64"),
    ("runtime-no-kernel", "errors", "Could not find any implementation for node /attn/MatMul."),
]  # fmt: skip
