// The other names that the Python bindings import from libnvinfer and its sister libraries. None is ever called; in a
// file of its own, because the headers that registry.cpp includes declare some of them with their parameters.
#include <stddef.h>

#define ABSENT(name) \
    void* name(void) { \
        return NULL; \
    }
ABSENT(getBuilderPluginRegistry)
ABSENT(createInferBuilder_INTERNAL)
ABSENT(createInferRefitter_INTERNAL)
ABSENT(createInferRuntime_INTERNAL)
ABSENT(initLibNvInferPlugins)
ABSENT(createNvOnnxParser_INTERNAL)
ABSENT(getNvOnnxParserVersion)
ABSENT(createNvOnnxParserRefitter_INTERNAL)
