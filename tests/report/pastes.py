# ruff: noqa: E501  (engine texts are quoted whole)
"""Texts that people paste: lines of public threads with their prefixes, and texts that are no error of an engine."""

from __future__ import annotations

T = "https://github.com/NVIDIA/TensorRT/issues/"

#: (signature of the cause, else of the warning; the page that quotes such lines; the paste)
PASTES = [
    ("no-implementation-residual", T + "3579", "[TRT] [E] 10: Could not find any implementation for node SandGlass4.8.weight + /SandGlass4/SandGlass4.8/_weight_quantizer/QuantizeLinear + /SandGlass4/SandGlass4.8/Conv + /Add"),
    ("no-implementation-silu", T + "3640", "[01/29/2024-10:11:12] [TRT] [E] 10: [optimizer.cpp::computeCosts::3869] Error Code 10: Internal Error (Could not find any implementation for node /model.0/conv/Conv + PWN(PWN(/model.0/act/Sigmoid), /model.0/act/Mul).)\n[01/29/2024-10:11:12] [TRT] [E] 2: [builder.cpp::buildSerializedNetwork::751] Error Code 2: Internal Error (Assertion engine != nullptr failed. )"),
    ("no-implementation-qdq", T + "4060", "[08/07/2024-09:00:00] [E] Error[10]: Could not find any implementation for node weights + node_of_weights_quantized + node_of_output.\n[08/07/2024-09:00:00] [E] Error[10]: [optimizer.cpp::computeCosts::3897] Error Code 10: Internal Error (Could not find any implementation for node weights + node_of_weights_quantized + node_of_output.)\n[08/07/2024-09:00:00] [E] Engine could not be created from network\n[08/07/2024-09:00:00] [E] Building engine failed"),
    ("no-implementation-head", T + "4555", "[08/20/2025-11:00:00] [E] Error[10]: IBuilder::buildSerializedNetwork: Error Code 10: Internal Error (Could not find any implementation for node /model.22/proto/cv3/conv/Conv + PWN(PWN(/model.22/proto/cv3/act/Sigmoid), /model.22/proto/cv3/act/Mul).)"),
    ("no-implementation-qdq", T + "3385", "> [E] 10: [optimizer.cpp::computeCosts::3728] Error Code 10: Internal Error (Could not find any implementation for node w + node_of_dqconv.dwconv + PWN(node_of_swish.sigmoid, node_of_swish.mul).)"),
    ("no-implementation-residual", "https://github.com/NVIDIA/Model-Optimizer/issues/50", "2024-08-01 10:00:00.123456789 [E:onnxruntime:Default, tensorrt_execution_provider.h:88 log] [2024-08-01 10:00:00   ERROR] 10: Could not find any implementation for node model.10.attn.pe.conv.weight + /model.10/attn/pe/conv/Conv + /model.10/attn/Add."),
    ("no-implementation", "https://github.com/jkjung-avt/tensorrt_demos/issues/603", "[TensorRT] ERROR: 10: [optimizer.cpp::computeCosts::3869] Error Code 10: Internal Error (Could not find any implementation for node 002_convolutional.)"),
    ("no-implementation-region", T + "3051", '{"level": "error", "msg": "10: [optimizer.cpp::computeCosts::3869] Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[onnx::MatMul_1.../Transpose_2]}.)"}'),
    ("no-implementation", T + "3640", "Could not find any implementation for node"),
    ("no-implementation", T + "3640", "could not find any implementation for node /model.0/conv/Conv."),
    ("bindings-removed", "https://github.com/wang-xinyu/tensorrtx/issues/1555", "/src/yolov8_det.cpp:109:20: error: 'class nvinfer1::ICudaEngine' has no member named 'getNbBindings'\n  109 |     assert(engine->getNbBindings() == 3);"),
    ("bindings-removed", T + "4216", "AttributeError: 'tensorrt_bindings.tensorrt.ICudaEngine' object has no attribute 'num_bindings'"),
    ("workspace-size-removed", T + "3923", "AttributeError: 'tensorrt_bindings.tensorrt.IBuilderConfig' object has no attribute 'max_workspace_size'"),
    ("no-plugin-format", T + "3844", "[05/06/2024-21:04:56] [TRT] [E] 9: [pluginV2Builder.cpp::reportPluginError::23] Error Code 9: Internal Error (LayerNorm_4: could not find any supported formats consistent with input/output data types)"),
    ("no-plugin-format", T + "2812", "[03/25/2023-08:47:30] [TRT] [E] 9: [pluginV2Builder.cpp::reportPluginError::23] Error Code 9: Internal Error ((Unnamed Layer* 3) [PluginV2DynamicExt]: could not find any supported formats consistent with input/output data types)"),
    ("candidates-removed", T + "3055", "WARNING: IPluginV2IOExt/IPluginV2DynamicExt ignores some format combinations because combination limit of 100 was reached\nERROR: 2: Assertion !n->candidateRequirements.empty() failed. All of the candidates were removed, which points to the node being incorrectly marked as an int8 node.\nERROR: 2: [optimizer.cpp::filterQDQFormats::4670] Error Code 2: Internal Error (Assertion !n->candidateRequirements.empty() failed. All of the candidates were removed, which points to the node being incorrectly marked as an int8 node.)"),
    ("no-supported-formats", T + "2966", "[W] CUDA lazy loading is not enabled. Enabling it can significantly reduce device memory usage. See `CUDA_MODULE_LOADING` in https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars\n[W] onnx2trt_utils.cpp:403: One or more weights outside the range of INT32 was clamped\n[E] 2: [optimizer.cpp::getFormatRequirements::2945] Error Code 2: Internal Error (Assertion !n->candidateRequirements.empty() failed. no supported formats)"),
    ("plugin-scale-missing", T + "2462", "[2022-11-08 06:01:48   ERROR] 2: [pluginV2Runner.cpp::getInputHostScale::88] Error Code 2: Internal Error (Assertion scales.size() == 1 failed. )\nterminate called after throwing an instance of 'std::runtime_error'"),
    ("int32-bias", "https://github.com/lyuwenyu/RT-DETR/issues/343", '[06/21/2024-17:30:57] [E] Error[3]: p2o.DequantizeLinear.1357: only activation types allowed as input to this layer.\n[06/21/2024-17:30:57] [E] [TRT] ModelImporter.cpp:771: While parsing node number 3294 [DequantizeLinear -> "p2o.DequantizeLinear.1358"]:\n[06/21/2024-17:30:57] [E] [TRT] ModelImporter.cpp:772: --- Begin node ---\n[06/21/2024-17:30:57] [E] [TRT] ModelImporter.cpp:773: input: "conv2d_0.w_0.merged.bias"\noutput: "p2o.DequantizeLinear.1358"\nname: "p2o.DequantizeLinear.1357"\nop_type: "DequantizeLinear"\n\n[06/21/2024-17:30:57] [E] [TRT] ModelImporter.cpp:774: --- End node ---\n[06/21/2024-17:30:57] [E] [TRT] ModelImporter.cpp:777: ERROR: ModelImporter.cpp:195 In function parseGraph:\n[6] Invalid Node - p2o.DequantizeLinear.1357\np2o.DequantizeLinear.1357: only activation types allowed as input to this layer.\n[06/21/2024-17:30:57] [E] Failed to parse onnx file'),
    ("negative-scale", "https://github.com/NVIDIA-AI-IOT/Lidar_AI_Solution/issues/182", '[09/19/2023-09:36:27] [V] [TRT] Importing initializer: onnx::QuantizeLinear_578\n[09/19/2023-09:36:27] [E] [TRT] ModelImporter.cpp:726: ERROR: builtin_op_importers.cpp:1197 In function QuantDequantLinearHelper:\n[6] Assertion failed: scaleAllPositive && "Scale coefficients must all be positive"'),
    ("check-links", "https://github.com/marcoslucianops/DeepStream-Yolo/issues/585", "ERROR: [TRT]: [checkSanity.cpp::checkLinks::218] Error Code 2: Internal Error (Assertion item.second != nullptr failed. region should have been removed from Graph::regions)"),
    ("instancenorm-plugin-missing", "https://github.com/NVIDIA/Stable-Diffusion-WebUI-TensorRT/issues/315", "[E] 3: getPluginCreator could not find plugin: InstanceNormalization_TRT version: 1\n[!] Could not parse ONNX correctly"),
    ("instancenorm-cudnn-error", T + "4239", "/_src/plugin/instanceNormalizationPlugin/instanceNormalizationPlugin.cu (192) - Cudnn Error in terminate: 4 (CUDNN_STATUS_INTERNAL_ERROR)"),
    ("instancenorm-cudnn-error", T + "1611", "Cudnn Error in enqueue: 3 (CUDNN_STATUS_BAD_PARAM)"),
    ("quantized-constant", T + "3919", "[TRT] [E] 4: [qdqGraphOptimizer.cpp::matchInt8ConstantDQ::3582] Error Code 4: Internal Error (Quantized constant is only allowed before DQ or PLUGIN_V2 node)"),
    ("unsupported-gpu", T + "3826", "[05/01/2024-10:00:00] [TRT] [E] Error Code: 9: Internal Error (Unsupported SM: 0x601)"),
    ("unsupported-gpu", "https://github.com/DDTRobot/tita_rl_sim2sim2real/issues/7", "[E] [TRT] IBuilder::buildSerializedNetwork: Error Code 9: API Usage Error (Target GPU SM 120 is not supported by this TensorRT release.)"),
    ("weak-typing-removed", "https://github.com/roboflow/rf-detr/issues/1214", "Traceback (most recent call last):\n  File \"export.py\", line 10, in <module>\n    config.set_flag(trt.BuilderFlag.FP16)\nAttributeError: type object 'tensorrt_bindings.tensorrt.BuilderFlag' has no attribute 'FP16'"),
    ("implicit-int8-removed", "https://github.com/NVIDIA/TensorRT", "AttributeError: module 'tensorrt' has no attribute 'IInt8EntropyCalibrator2'"),
    ("builder-flag-gone", "https://github.com/NVIDIA/TensorRT", "error: 'kINT8' is not a member of 'nvinfer1::BuilderFlag'"),
    ("calibrator-cuda-error", T + "3659", "[02/12/2024-15:00:00] [TRT] [I] Starting Calibration.\n[02/12/2024-15:00:01] [TRT] [E] 1: [calibrator.cpp::calibrateEngine::1181] Error Code 1: Cuda Runtime (invalid argument)"),
    ("no-scaling-factors", T + "2865", "[E] 4: [standardEngineBuilder.cpp::initCalibrationParams::1460] Error Code 4: Internal Error (Calibration failure occurred with no scaling factors detected. This could be due to no int8 calibrator or insufficient custom scales for network layers. Please see int8 sample to setup calibration correctly.)"),
    ("foreign-engine", T + "2036", "[TRT] [E] 6: The engine plan file is not compatible with this version of TensorRT, expecting library version 10.2.0.19 got 10.1.0.27, please rebuild."),
    ("foreign-engine-device", T + "2036", "ERROR: [TRT]: 6: The engine plan file is generated on an incompatible device, expecting compute 8.9 got compute 8.6, please rebuild."),
    ("jetson-image-mismatch", "https://github.com/dusty-nv/jetson-containers/issues/714", "ImportError: /usr/lib/libnvinfer.so.8: undefined symbol: _ZN5nvdla19IConcatenationLayer7setAxisEi"),
    ("library-not-found", "https://github.com/NVIDIA/TensorRT", 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    import tensorrt as trt\nImportError: libnvinfer.so.8: cannot open shared object file: No such file or directory'),
    ("library-not-found", "https://github.com/NVIDIA/TensorRT", "trtexec: error while loading shared libraries: libnvonnxparser.so.10: cannot open shared object file: No such file or directory"),
    ("explicit-batch-removed", "https://github.com/NVIDIA/TensorRT", "AttributeError: type object 'tensorrt_bindings.tensorrt.NetworkDefinitionCreationFlag' has no attribute 'EXPLICIT_BATCH'"),
    ("explicit-batch-removed", "https://github.com/NVIDIA/TensorRT", "error: 'kEXPLICIT_BATCH' is not a member of 'nvinfer1::NetworkDefinitionCreationFlag'"),
    ("follows-a-failure", "https://github.com/NVIDIA/TensorRT", "[E] Failed to parse onnx file\n[E] [TRT] 4: [network.cpp::validate::2882] Error Code 4: API Usage Error (Network must have at least one output)\n[E] Engine could not be created from network"),
    ("axes-not-constant", T + "3467", "[E] In node 12 with name: /Squeeze and operator: Squeeze (importSqueeze): UNSUPPORTED_NODE: Assertion failed: inputAxes.is_weights(): Axis input must be an initializer!"),
    ("input-not-constant", T + "2721", '[03/01/2023-10:00:00] [E] [TRT] ModelImporter.cpp:728: ERROR: builtin_op_importers.cpp:4531 In function importTopK:\n[8] Assertion failed: inputs.at(1).is_weights() && "This version of TensorRT only supports input K as an initializer."'),
    ("topk-limit", T + "4390", "[E] Error[4]: ITopKLayer /TopK: /TopK: K exceeds the maximum value allowed (3840)."),
    ("quantised-operator", T + "3360", '[TRT] [E] In node 3 with name: conv_quant and operator: QLinearConv (checkFallbackPluginImporter): UNSUPPORTED_NODE: Assertion failed: creator && "Plugin not found, are the plugin name, version, and namespace correct?"'),
    ("no-importer", T + "3870", "[TRT] [I] No importer registered for op: Mish. Attempting to import as plugin.\n[TRT] [E] 3: getPluginCreator could not find plugin: Mish version: 1"),
    ("plugin-not-found", T + "3055", "[I] No importer registered for op: MyCustomOp. Attempting to import as plugin.\n[E] 3: getPluginCreator could not find plugin: MyCustomOp version: 1"),
    ("mixed-qdq-types", T + "4832", "[E] IBuilder::buildSerializedNetwork: Error Code 1: Myelin ([type.cpp:186: infer_type] Could not infer output types for operation: 12: quantize: x, No matching rules found for input operand types)"),
    ("missing-scale", T + "3659", "[02/12/2024-15:00:03] [TRT] [W] Missing scale and zero-point for tensor (Unnamed Layer* 269) [Shuffle]_output, expect fall back to non-int8 implementation for any layer consuming or producing given tensor\n[02/12/2024-15:00:03] [TRT] [W] Missing scale and zero-point for tensor (Unnamed Layer* 270) [Constant]_output, expect fall back to non-int8 implementation for any layer consuming or producing given tensor"),
    ("calibrator-ignored", T + "4028", "[W] [TRT] Calibrator won't be used in explicit quantization mode. Please insert Quantize/Dequantize layers to indicate which tensors to quantize/dequantize."),
    ("int64-cast", T + "3051", "[06/08/2023-10:00:00] [W] [TRT] onnx2trt_utils.cpp:375: Your ONNX model has been generated with INT64 weights, while TensorRT does not natively support INT64. Attempting to cast down to INT32."),
    ("quantize-logged-float", T + "3844", "[V] [TRT] QuantizeLinear_3 [QuantizeLinear] outputs: [QuantizeLinear_3_output_0 -> (1, 16, 64)[FLOAT]], "),
    ("calibrator-deprecated", "https://github.com/laugh12321/TensorRT-YOLO/issues/95", "NvInfer.h:8261:63: warning: 'IInt8EntropyCalibrator2' is deprecated [-Wdeprecated-declarations]"),
    ("lazy-loading", T + "2966", "[W] [TRT] CUDA lazy loading is not enabled. Enabling it can significantly reduce device memory usage. See `CUDA_MODULE_LOADING`"),
]  # fmt: skip

#: Texts that must not match: other programs' errors, engines that work, and lines that are nearly an error.
NOTHING = [
    "hello",
    "[08/07/2024-09:00:00] [I] Engine built in 12.3 sec.\n&&&& PASSED TensorRT.trtexec",
    "[W] [TRT] Could not find any implementation for node x.",
    "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nModuleNotFoundError: No module named 'matplotlib'",
    "CMake Error at CMakeLists.txt:12 (find_package): Could not find TensorRT",
    "nvidia-smi has failed because it couldn't communicate with the NVIDIA driver.",
    "[E] [TRT] Using fastest implementation instead.",
    "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation.",
    "AttributeError: 'NoneType' object has no attribute 'shape'",
    '{"not": "a log"}',
    "[TRT] [V] Tactic: 0x0000000000000003 Time: 0.0123",
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit.\n\n\t\t",
]  # fmt: skip

#: The heads of loggers, each before one text: (severity of it, line).
LOGGERS = [
    (severity, head + "Could not find any implementation for node n.")
    for severity, head in (
        ("ERROR", "[2023-12-25 12:50:15][Error][TRT] "),
        ("ERROR", "[TRT ERROR] "),
        ("WARNING", "WARN TRT: "),
        ("ERROR", "ERROR TRT: "),
        ("ERROR", "ERROR: [TRT]: "),
        ("ERROR", "[TensorRT] ERROR: "),
        ("ERROR", "[TRT] [E] "),
        ("ERROR", "[01/29/2024-10:11:12] [E] [TRT] "),
        ("ERROR", "[2021-12-20 08:58:04   ERROR] "),
        ("ERROR", "[error] "),
        ("WARNING", "[warn] "),
        ("ERROR", "E0908 12:34:56.123456 1 logging.cc:43] "),
        (
            "ERROR",
            "[E:onnxruntime:Default, tensorrt_execution_provider.h:88 log] [2024-08-01 10:00:00   ERROR] ",
        ),
        ("ERROR", "[TRT-LLM] [E] "),
        ("ERROR", "[TensorRT-LLM][ERROR] "),
        ("ERROR", "[node-1] [ERROR] [1700000000.12] "),
        ("INFO", "[05/07/2024-10:00:00] [TRT] [I] "),
        ("VERBOSE", "[V] [TRT] "),
        ("", ""),
    )
]
