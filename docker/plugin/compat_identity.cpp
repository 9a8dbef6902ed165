// CompatIdentity: copies its first input, and accepts the tensor formats that its attribute `formats` names.
//
// Version "1" is an IPluginV2DynamicExt and is there for every TensorRT from 8.5 on (deprecated from 10.0); version
// "2" is an IPluginV3 and needs 10.0. Both register themselves when the library is loaded. What they accept is decided
// in formats.h. No kernel: a copy on the stream is all that runs.
#include <NvInferRuntime.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "formats.h"

namespace {

using compat::Choice;
using compat::Formats;
namespace trt = nvinfer1;

static_assert(static_cast<int32_t>(trt::DataType::kFLOAT) == compat::kFloat, "formats.h: kFloat");
static_assert(static_cast<int32_t>(trt::DataType::kINT8) == compat::kInt8, "formats.h: kInt8");
static_assert(static_cast<int32_t>(trt::TensorFormat::kLINEAR) == compat::kLinear, "formats.h: kLinear");
static_assert(static_cast<int32_t>(trt::TensorFormat::kCHW4) == compat::kCHW4, "formats.h: kCHW4");
static_assert(static_cast<int32_t>(trt::TensorFormat::kCHW32) == compat::kCHW32, "formats.h: kCHW32");

constexpr char const* kName = "CompatIdentity";
constexpr char const* kField = "formats";
constexpr int32_t kOutputs = 1;
constexpr int32_t kMostInputs = 2;

Choice choiceOf(trt::PluginTensorDesc const& tensor) {
    return {static_cast<int32_t>(tensor.type), static_cast<int32_t>(tensor.format)};
}

trt::PluginTensorDesc const& descriptionOf(trt::PluginTensorDesc const& tensor) {
    return tensor;
}

#if NV_TENSORRT_MAJOR >= 10
trt::PluginTensorDesc const& descriptionOf(trt::DynamicPluginTensorDesc const& tensor) {
    return tensor.desc;
}
#endif

template <typename Tensor>
bool supports(Formats formats, int32_t position, Tensor const* inOut, int32_t inputs, int32_t outputs) {
    if (inputs < 1 || inputs > kMostInputs || outputs != kOutputs) {
        return false;
    }
    Choice choices[kMostInputs + kOutputs]{};
    for (int32_t index = 0; index <= position; ++index) {
        choices[index] = choiceOf(descriptionOf(inOut[index]));
    }
    return compat::accepts(formats, position, choices, inputs);
}

int32_t copy(trt::PluginTensorDesc const& tensor, void const* from, void* to, cudaStream_t stream) {
    int64_t extents[trt::Dims::MAX_DIMS]{};
    for (int32_t axis = 0; axis < tensor.dims.nbDims; ++axis) {
        extents[axis] = tensor.dims.d[axis];
    }
    size_t const size = compat::bytesOf(choiceOf(tensor), extents, tensor.dims.nbDims);
    return static_cast<int32_t>(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream));
}

// Returns kUnknown, and says so, where the field is missing or means nothing.
Formats formatsOf(trt::PluginFieldCollection const* fields) {
    for (int32_t index = 0; fields != nullptr && index < fields->nbFields; ++index) {
        trt::PluginField const& field = fields->fields[index];
        if (std::strcmp(field.name, kField) == 0) {
            Formats const formats = compat::parseFormats(field.data, field.length);
            if (formats != Formats::kUnknown) {
                return formats;
            }
        }
    }
    std::fprintf(stderr, "%s: the attribute `%s` is missing or names no formats\n", kName, kField);
    return Formats::kUnknown;
}

trt::PluginFieldCollection const* fieldNames() {
    static trt::PluginField const field{kField, nullptr, trt::PluginFieldType::kCHAR, 0};
    static trt::PluginFieldCollection const collection{1, &field};
    return &collection;
}

class IdentityV2 final : public trt::IPluginV2DynamicExt {
public:
    explicit IdentityV2(Formats formats) : mFormats(formats) {}

    trt::AsciiChar const* getPluginType() const noexcept override { return kName; }
    trt::AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return kOutputs; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    void destroy() noexcept override { delete this; }

    size_t getSerializationSize() const noexcept override { return std::strlen(compat::nameOf(mFormats)); }
    void serialize(void* buffer) const noexcept override {
        std::memcpy(buffer, compat::nameOf(mFormats), getSerializationSize());
    }

    void setPluginNamespace(trt::AsciiChar const* name) noexcept override { mNamespace = name; }
    trt::AsciiChar const* getPluginNamespace() const noexcept override { return mNamespace.c_str(); }

    trt::IPluginV2DynamicExt* clone() const noexcept override {
        auto* const twin = new (std::nothrow) IdentityV2(mFormats);
        if (twin != nullptr) {
            twin->setPluginNamespace(mNamespace.c_str());
        }
        return twin;
    }

    trt::DataType getOutputDataType(int32_t, trt::DataType const* types, int32_t) const noexcept override {
        return types[0];
    }
    trt::DimsExprs getOutputDimensions(
        int32_t, trt::DimsExprs const* inputs, int32_t, trt::IExprBuilder&) noexcept override {
        return inputs[0];
    }
    bool supportsFormatCombination(int32_t position, trt::PluginTensorDesc const* inOut, int32_t inputs,
        int32_t outputs) noexcept override {
        return supports(mFormats, position, inOut, inputs, outputs);
    }
    void configurePlugin(trt::DynamicPluginTensorDesc const*, int32_t, trt::DynamicPluginTensorDesc const*,
        int32_t) noexcept override {}
    size_t getWorkspaceSize(trt::PluginTensorDesc const*, int32_t, trt::PluginTensorDesc const*,
        int32_t) const noexcept override {
        return 0;
    }
    int32_t enqueue(trt::PluginTensorDesc const* inputs, trt::PluginTensorDesc const*, void const* const* from,
        void* const* to, void*, cudaStream_t stream) noexcept override {
        return copy(inputs[0], from[0], to[0], stream);
    }

private:
    Formats mFormats;
    std::string mNamespace;
};

class IdentityCreatorV2 final : public trt::IPluginCreator {
public:
    trt::AsciiChar const* getPluginName() const noexcept override { return kName; }
    trt::AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
    trt::PluginFieldCollection const* getFieldNames() noexcept override { return fieldNames(); }
    void setPluginNamespace(trt::AsciiChar const* name) noexcept override { mNamespace = name; }
    trt::AsciiChar const* getPluginNamespace() const noexcept override { return mNamespace.c_str(); }

    trt::IPluginV2* createPlugin(
        trt::AsciiChar const*, trt::PluginFieldCollection const* fields) noexcept override {
        return make(formatsOf(fields));
    }
    trt::IPluginV2* deserializePlugin(
        trt::AsciiChar const*, void const* data, size_t length) noexcept override {
        return make(compat::parseFormats(data, static_cast<int32_t>(length)));
    }

private:
    trt::IPluginV2* make(Formats formats) const {
        if (formats == Formats::kUnknown) {
            return nullptr;
        }
        auto* const plugin = new (std::nothrow) IdentityV2(formats);
        if (plugin != nullptr) {
            plugin->setPluginNamespace(mNamespace.c_str());
        }
        return plugin;
    }

    std::string mNamespace;
};

REGISTER_TENSORRT_PLUGIN(IdentityCreatorV2);

#if NV_TENSORRT_MAJOR >= 10

class IdentityV3 final : public trt::IPluginV3,
                         public trt::IPluginV3OneCore,
                         public trt::IPluginV3OneBuild,
                         public trt::IPluginV3OneRuntime {
public:
    explicit IdentityV3(Formats formats)
        : mFormats(formats)
        , mField{kField, compat::nameOf(formats), trt::PluginFieldType::kCHAR,
              static_cast<int32_t>(std::strlen(compat::nameOf(formats))) + 1}
        , mFields{1, &mField} {}

    trt::IPluginCapability* getCapabilityInterface(trt::PluginCapabilityType type) noexcept override {
        switch (type) {
        case trt::PluginCapabilityType::kCORE: return static_cast<trt::IPluginV3OneCore*>(this);
        case trt::PluginCapabilityType::kBUILD: return static_cast<trt::IPluginV3OneBuild*>(this);
        case trt::PluginCapabilityType::kRUNTIME: return static_cast<trt::IPluginV3OneRuntime*>(this);
        }
        return nullptr;
    }
    trt::IPluginV3* clone() noexcept override { return new (std::nothrow) IdentityV3(mFormats); }

    trt::AsciiChar const* getPluginName() const noexcept override { return kName; }
    trt::AsciiChar const* getPluginVersion() const noexcept override { return "2"; }
    trt::AsciiChar const* getPluginNamespace() const noexcept override { return ""; }

    int32_t getNbOutputs() const noexcept override { return kOutputs; }
    int32_t getOutputDataTypes(
        trt::DataType* outputs, int32_t, trt::DataType const* inputs, int32_t) const noexcept override {
        outputs[0] = inputs[0];
        return 0;
    }
    int32_t getOutputShapes(trt::DimsExprs const* inputs, int32_t, trt::DimsExprs const*, int32_t,
        trt::DimsExprs* outputs, int32_t, trt::IExprBuilder&) noexcept override {
        outputs[0] = inputs[0];
        return 0;
    }
    bool supportsFormatCombination(int32_t position, trt::DynamicPluginTensorDesc const* inOut, int32_t inputs,
        int32_t outputs) noexcept override {
        return supports(mFormats, position, inOut, inputs, outputs);
    }
    int32_t configurePlugin(trt::DynamicPluginTensorDesc const*, int32_t, trt::DynamicPluginTensorDesc const*,
        int32_t) noexcept override {
        return 0;
    }

    int32_t onShapeChange(
        trt::PluginTensorDesc const*, int32_t, trt::PluginTensorDesc const*, int32_t) noexcept override {
        return 0;
    }
    int32_t enqueue(trt::PluginTensorDesc const* inputs, trt::PluginTensorDesc const*, void const* const* from,
        void* const* to, void*, cudaStream_t stream) noexcept override {
        return copy(inputs[0], from[0], to[0], stream);
    }
    trt::IPluginV3* attachToContext(trt::IPluginResourceContext*) noexcept override { return clone(); }
    trt::PluginFieldCollection const* getFieldsToSerialize() noexcept override { return &mFields; }

private:
    Formats mFormats;
    trt::PluginField mField;
    trt::PluginFieldCollection mFields;
};

class IdentityCreatorV3 final : public trt::IPluginCreatorV3One {
public:
    trt::AsciiChar const* getPluginName() const noexcept override { return kName; }
    trt::AsciiChar const* getPluginVersion() const noexcept override { return "2"; }
    trt::AsciiChar const* getPluginNamespace() const noexcept override { return ""; }
    trt::PluginFieldCollection const* getFieldNames() noexcept override { return fieldNames(); }

    trt::IPluginV3* createPlugin(trt::AsciiChar const*, trt::PluginFieldCollection const* fields,
        trt::TensorRTPhase) noexcept override {
        Formats const formats = formatsOf(fields);
        return formats == Formats::kUnknown ? nullptr : new (std::nothrow) IdentityV3(formats);
    }
};

REGISTER_TENSORRT_PLUGIN(IdentityCreatorV3);

#endif

}  // namespace
