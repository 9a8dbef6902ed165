// What CompatIdentity accepts and how much it copies: no TensorRT, no CUDA, so that any compiler can test it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace compat {

// The numbers of nvinfer1::DataType and nvinfer1::TensorFormat; compat_identity.cpp asserts that they are.
enum : int32_t { kFloat = 0, kInt8 = 2 };
enum : int32_t { kLinear = 0, kCHW4 = 3, kCHW32 = 5 };

enum class Formats : int32_t { kUnknown, kInt8Linear, kInt8Vectorised, kFp32, kInt8Fp32 };

constexpr char const* kFormatNames[] = {"", "int8_linear", "int8_vectorised", "fp32", "int8_fp32"};

// A tensor's type and memory layout.
struct Choice {
    int32_t type;
    int32_t format;
};

inline char const* nameOf(Formats formats) {
    return kFormatNames[static_cast<int32_t>(formats)];
}

// Reads the attribute. The parser counts a closing zero in the length, a creator's caller may not.
inline Formats parseFormats(void const* text, int32_t length) {
    auto const* characters = static_cast<char const*>(text);
    size_t size = 0;
    while (characters != nullptr && size < static_cast<size_t>(length < 0 ? 0 : length) && characters[size] != '\0') {
        ++size;
    }
    for (int32_t value = 1; size != 0 && value <= static_cast<int32_t>(Formats::kInt8Fp32); ++value) {
        if (std::strlen(kFormatNames[value]) == size && std::memcmp(kFormatNames[value], characters, size) == 0) {
            return static_cast<Formats>(value);
        }
    }
    return Formats::kUnknown;
}

inline bool acceptsInput(Formats formats, Choice choice) {
    bool const linear = choice.format == kLinear;
    switch (formats) {
    case Formats::kInt8Linear: return choice.type == kInt8 && linear;
    case Formats::kInt8Vectorised:
        return choice.type == kInt8 && (choice.format == kCHW4 || choice.format == kCHW32);
    case Formats::kFp32: return choice.type == kFloat && linear;
    case Formats::kInt8Fp32: return (choice.type == kInt8 || choice.type == kFloat) && linear;
    case Formats::kUnknown: break;
    }
    return false;
}

// Inputs come first, then the one output. Only the entries up to `position` are valid, as TensorRT promises.
inline bool accepts(Formats formats, int32_t position, Choice const* inputsAndOutput, int32_t inputs) {
    Choice const asked = inputsAndOutput[position];
    if (position == 0) {
        return acceptsInput(formats, asked);
    }
    if (position < inputs) {
        return asked.type == kInt8 && asked.format == kLinear;
    }
    return asked.type == inputsAndOutput[0].type && asked.format == inputsAndOutput[0].format;
}

// Bytes of a tensor; the vectorised formats round the channels, third from the end, up to whole vectors.
inline size_t bytesOf(Choice choice, int64_t const* extents, int32_t rank) {
    int64_t const vector = choice.format == kCHW4 ? 4 : choice.format == kCHW32 ? 32 : 1;
    int64_t elements = 1;
    for (int32_t axis = 0; axis < rank; ++axis) {
        int64_t const extent = extents[axis];
        elements *= axis == rank - 3 ? (extent + vector - 1) / vector * vector : extent;
    }
    return static_cast<size_t>(elements) * (choice.type == kInt8 ? 1 : 4);
}

}  // namespace compat
