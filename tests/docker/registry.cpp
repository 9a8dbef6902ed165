// Stands for libnvinfer in tests: a plugin registry made of a version's real headers, and `drive`, which leads a
// registered plugin, in C++ or Python, through what a builder and a runtime do with it and says as JSON what it saw.
#include <NvInferRuntime.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace trt = nvinfer1;
using trt::AsciiChar;

namespace {

constexpr int32_t kTypes = 10;
constexpr int32_t kFormats = 13;

#if NV_TENSORRT_MAJOR >= 10
using Creator = trt::IPluginCreatorInterface;
#else
using Creator = trt::IPluginCreator;
#endif

std::vector<trt::IPluginCreator*> gV2;
std::vector<Creator*> gAll;
std::string gCopies;

// Keeps creators as they come; it never asks one for its name before `drive` does.
class Registry final : public trt::IPluginRegistry {
public:
    void setErrorRecorder(trt::IErrorRecorder* const) noexcept override {}
    trt::IErrorRecorder* getErrorRecorder() const noexcept override { return nullptr; }
#if NV_TENSORRT_MAJOR < 11
    bool registerCreator(trt::IPluginCreator& creator, AsciiChar const* const name) noexcept override {
        creator.setPluginNamespace(name);
        gV2.push_back(&creator);
        return true;
    }
    trt::IPluginCreator* const* getPluginCreatorList(int32_t* const count) const noexcept override {
        *count = static_cast<int32_t>(gV2.size());
        return gV2.data();
    }
    trt::IPluginCreator* getPluginCreator(
        AsciiChar const* const, AsciiChar const* const, AsciiChar const* const) noexcept override {
        return nullptr;
    }
    bool deregisterCreator(trt::IPluginCreator const&) noexcept override { return true; }
#endif
#if NV_TENSORRT_MAJOR > 8 || NV_TENSORRT_MINOR >= 6
    bool isParentSearchEnabled() const override { return false; }
    void setParentSearchEnabled(bool const) override {}
    PluginLibraryHandle loadLibrary(AsciiChar const*) noexcept override { return nullptr; }
    void deregisterLibrary(PluginLibraryHandle) noexcept override {}
#endif
#if NV_TENSORRT_MAJOR >= 10
    bool registerCreator(Creator& creator, AsciiChar const* const name) noexcept override {
        if (std::strcmp(creator.getInterfaceInfo().kind, "PLUGIN CREATOR_V1") == 0) {
            auto& old = static_cast<trt::IPluginCreator&>(creator);
            old.setPluginNamespace(name);
            gV2.push_back(&old);
        } else {
            gAll.push_back(&creator);
        }
        return true;
    }
    Creator* const* getAllCreators(int32_t* const count) const noexcept override {
        *count = static_cast<int32_t>(gAll.size());
        return gAll.data();
    }
    Creator* getCreator(
        AsciiChar const* const, AsciiChar const* const, AsciiChar const* const) noexcept override {
        return nullptr;
    }
    bool deregisterCreator(Creator const&) noexcept override { return true; }
    trt::IPluginResource* acquirePluginResource(AsciiChar const*, trt::IPluginResource*) noexcept override {
        return nullptr;
    }
    int32_t releasePluginResource(AsciiChar const*) noexcept override { return 0; }
    // Not marked as an override: it came in the middle of 10.x.
    virtual Creator* const* getAllCreatorsRecursive(int32_t* const count) noexcept {
        return getAllCreators(count);
    }
#endif
};

Registry& registry() {
    static auto* const one = new Registry;  // outlives the Python interpreter, as TensorRT's own does
    return *one;
}

class Expression final : public trt::IDimensionExpr {};
class Builder final : public trt::IExprBuilder {};

std::string text(AsciiChar const* words) {
    return words == nullptr ? "null" : '"' + std::string(words) + '"';
}

trt::PluginTensorDesc tensor(int32_t type, int32_t format) {
    trt::PluginTensorDesc made{};
    made.dims.nbDims = 4;
    int32_t const extents[] = {2, 5, 3, 7};
    std::copy(extents, extents + 4, made.dims.d);
    made.type = static_cast<trt::DataType>(type);
    made.format = static_cast<trt::TensorFormat>(format);
    return made;
}

trt::DynamicPluginTensorDesc dynamic(trt::PluginTensorDesc const& description) {
    trt::DynamicPluginTensorDesc made{};
    made.desc = description;
    return made;
}

using Ask = std::function<bool(int32_t, trt::PluginTensorDesc const*, int32_t)>;

// Lists the [type, format] pairs that are accepted at a position beside the given earlier ones.
std::string accepted(Ask const& ask, std::vector<trt::PluginTensorDesc> earlier, int32_t inputs) {
    std::ostringstream out;
    auto const position = static_cast<int32_t>(earlier.size());
    out << '[';
    char const* comma = "";
    for (int32_t type = 0; type < kTypes; ++type) {
        for (int32_t format = 0; format < kFormats; ++format) {
            auto all = earlier;
            all.push_back(tensor(type, format));
            all.resize(static_cast<size_t>(inputs) + 1);
            if (ask(position, all.data(), inputs)) {
                out << comma << '[' << type << ',' << format << ']';
                comma = ",";
            }
        }
    }
    out << ']';
    return out.str();
}

// The whole table: the first input's choices, and beside each of some of them the other tensors' choices.
std::string table(Ask const& ask) {
    std::ostringstream out;
    out << "{\"input\":" << accepted(ask, {}, 1);
    for (auto const& [type, format] : std::vector<std::pair<int32_t, int32_t>>{{0, 0}, {2, 0}, {2, 3}, {2, 5}}) {
        out << ",\"output " << type << ' ' << format << "\":" << accepted(ask, {tensor(type, format)}, 1);
    }
    out << ",\"second\":" << accepted(ask, {tensor(2, 0)}, 2);
    out << ",\"output of two\":" << accepted(ask, {tensor(2, 0), tensor(2, 0)}, 2) << '}';
    return out.str();
}

void* address(size_t number) {
    return reinterpret_cast<void*>(number);
}

trt::PluginFieldCollection fieldsOf(trt::PluginField const& field) {
    return {1, &field};
}

template <typename Plugin>
std::string copies(Plugin& plugin) {
    gCopies.clear();
    std::ostringstream codes;
    for (auto const& [type, format] : std::vector<std::pair<int32_t, int32_t>>{{0, 0}, {2, 0}, {2, 3}, {2, 5}}) {
        auto const description = tensor(type, format);
        void const* from[] = {address(0x7000000001)};
        void* to[] = {address(0x7000000002)};
        auto* const stream = reinterpret_cast<cudaStream_t>(address(0x7000000003));
        codes << (codes.tellp() > 0 ? "," : "") << plugin.enqueue(&description, &description, from, to, nullptr, stream);
    }
    return "[" + codes.str() + "],\"copies\":[" + gCopies + "]";
}

std::string driveV2(trt::IPluginCreator& creator, trt::PluginField const& field) {
    std::ostringstream out;
    auto const collection = fieldsOf(field);
    out << "{\"name\":" << text(creator.getPluginName()) << ",\"version\":" << text(creator.getPluginVersion())
        << ",\"namespace\":" << text(creator.getPluginNamespace())
        << ",\"field\":" << text(creator.getFieldNames()->fields[0].name);
    auto* const plugin = static_cast<trt::IPluginV2DynamicExt*>(creator.createPlugin("node", &collection));
    if (plugin == nullptr) {
        return out.str() + ",\"plugin\":null}";
    }
    plugin->setPluginNamespace("");
    plugin->initialize();
    trt::DataType const types[] = {trt::DataType::kINT8, trt::DataType::kFLOAT};
    Expression one;
    Builder builder;
    trt::DimsExprs shape{};
    shape.nbDims = 1;
    shape.d[0] = &one;
    auto const made = plugin->getOutputDimensions(0, &shape, 1, builder);
    std::string plan(plugin->getSerializationSize(), '?');
    plugin->serialize(&plan[0]);
    auto* const twin = plugin->clone();
    auto* const loaded = static_cast<trt::IPluginV2DynamicExt*>(
        creator.deserializePlugin("node", plan.data(), plan.size()));
    auto const in = dynamic(tensor(2, 0));
    out << ",\"type\":" << text(plugin->getPluginType()) << ",\"outputs\":" << plugin->getNbOutputs()
        << ",\"output type\":" << static_cast<int32_t>(plugin->getOutputDataType(0, types, 2))
        << ",\"same shape\":" << (made.nbDims == 1 && made.d[0] == &one ? "true" : "false")
        << ",\"plan\":" << text(plan.c_str()) << ",\"tables\":[";
    for (auto* const each : {plugin, twin, loaded}) {
        out << (each == plugin ? "" : ",") << table([each](int32_t position, auto const* inOut, int32_t inputs) {
            return each->supportsFormatCombination(position, inOut, inputs, 1);
        });
    }
    loaded->configurePlugin(&in, 1, &in, 1);
    out << "],\"codes\":" << copies(*loaded) << '}';
    for (auto* const each : {plugin, twin, loaded}) {
        each->terminate();
        each->destroy();
    }
    return out.str();
}

#if NV_TENSORRT_MAJOR >= 10

template <typename Interface>
Interface& capability(trt::IPluginV3& plugin, trt::PluginCapabilityType type) {
    return *static_cast<Interface*>(plugin.getCapabilityInterface(type));
}

std::string driveV3(trt::IPluginCreatorV3One& creator, trt::PluginField const& field) {
    std::ostringstream out;
    auto const collection = fieldsOf(field);
    out << "{\"name\":" << text(creator.getPluginName()) << ",\"version\":" << text(creator.getPluginVersion())
        << ",\"namespace\":" << text(creator.getPluginNamespace())
        << ",\"field\":" << text(creator.getFieldNames()->fields[0].name);
    auto* const plugin = creator.createPlugin("node", &collection, trt::TensorRTPhase::kBUILD);
    if (plugin == nullptr) {
        return out.str() + ",\"plugin\":null}";
    }
    using Type = trt::PluginCapabilityType;
    auto& core = capability<trt::IPluginV3OneCore>(*plugin, Type::kCORE);
    auto& build = capability<trt::IPluginV3OneBuild>(*plugin, Type::kBUILD);
    trt::DataType const types[] = {trt::DataType::kINT8, trt::DataType::kFLOAT};
    trt::DataType outputType{trt::DataType::kFLOAT};
    int32_t codes = build.getOutputDataTypes(&outputType, 1, types, 2);
    Expression one;
    Builder builder;
    trt::DimsExprs shape{};
    shape.nbDims = 1;
    shape.d[0] = &one;
    trt::DimsExprs made{};
    codes |= build.getOutputShapes(&shape, 1, nullptr, 0, &made, 1, builder);
    auto const in = dynamic(tensor(2, 0));
    codes |= build.configurePlugin(&in, 1, &in, 1);
    auto& saver = capability<trt::IPluginV3OneRuntime>(*plugin, Type::kRUNTIME);
    auto const* const saved = saver.getFieldsToSerialize();
    std::string const plan(static_cast<char const*>(saved->fields[0].data), static_cast<size_t>(saved->fields[0].length));
    auto* const twin = plugin->clone();
    auto* const loaded = creator.createPlugin("node", saved, trt::TensorRTPhase::kRUNTIME);
    out << ",\"type\":" << text(core.getPluginName()) << ",\"outputs\":" << build.getNbOutputs()
        << ",\"output type\":" << static_cast<int32_t>(outputType)
        << ",\"same shape\":" << (made.nbDims == 1 && made.d[0] == &one ? "true" : "false")
        << ",\"plan\":" << text(plan.c_str()) << ",\"plan field\":" << text(saved->fields[0].name)
        << ",\"build codes\":" << codes << ",\"tables\":[";
    for (auto* const each : {plugin, twin, loaded}) {
        auto& asked = capability<trt::IPluginV3OneBuild>(*each, Type::kBUILD);
        out << (each == plugin ? "" : ",") << table([&asked](int32_t position, auto const* inOut, int32_t inputs) {
            std::vector<trt::DynamicPluginTensorDesc> wrapped;
            for (int32_t index = 0; index <= inputs; ++index) {
                wrapped.push_back(dynamic(inOut[index]));
            }
            return asked.supportsFormatCombination(position, wrapped.data(), inputs, 1);
        });
    }
    auto& runtime = capability<trt::IPluginV3OneRuntime>(*loaded, Type::kRUNTIME);
    auto* const attached = runtime.attachToContext(nullptr);
    auto& running = capability<trt::IPluginV3OneRuntime>(*attached, Type::kRUNTIME);
    auto const description = tensor(2, 0);
    running.onShapeChange(&description, 1, &description, 1);
    out << "],\"codes\":" << copies(running) << '}';
    return out.str();
}

#endif

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT trt::IPluginRegistry* getPluginRegistry() noexcept {
    return &registry();
}

// Replaces the runtime's function where a library links to no other.
EXPORT __attribute__((weak)) cudaError_t cudaMemcpyAsync(
    void* to, void const* from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream) {
    std::ostringstream out;
    out << (gCopies.empty() ? "" : ",") << '[' << reinterpret_cast<size_t>(to) << ','
        << reinterpret_cast<size_t>(from) << ',' << size << ',' << static_cast<int>(kind) << ','
        << reinterpret_cast<size_t>(stream) << ']';
    gCopies += out.str();
    return static_cast<cudaError_t>(0);
}

// Drives the plugin of a version ("1", "2") made with the attribute `formats` of `length` characters; "null" for none.
EXPORT char const* drive(char const* version, char const* formats, int32_t length) {
    static std::string result;
    trt::PluginField const field{"formats", formats, trt::PluginFieldType::kCHAR, length};
    result = "null";
    for (auto* const creator : gV2) {
        if (std::strcmp(creator->getPluginVersion(), version) == 0) {
            result = driveV2(*creator, field);
        }
    }
#if NV_TENSORRT_MAJOR >= 10
    for (auto* const creator : gAll) {
        auto& one = static_cast<trt::IPluginCreatorV3One&>(*creator);
        if (std::strcmp(one.getPluginVersion(), version) == 0) {
            result = driveV3(one, field);
        }
    }
#endif
    return result.c_str();
}
