/*
 * Stands in for NVIDIA's libraries, so that the real Python bindings of TensorRT import and take calls on a machine
 * that has neither the libraries nor a GPU.
 *
 * Every factory hands out one object. Its table of virtual functions holds one function in every place, and that
 * returns the object again: whatever the bindings call on it, they get a builder, a network, a parser, "true" (the
 * low byte of its address), the number 65537 (its low 32 bits) or an empty string (its first byte). The bindings'
 * own work, which is what the contract test is about, is done before the call gets here: the look-up of the
 * attribute, the choice of the overload, the conversion of every argument.
 *
 * The object lies at a low address on purpose: a size_t read from it is small enough to copy that many bytes.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define OBJECT ((char *)0x10001)
#define TABLE ((void **)0x60000)
#define BYTES (1 << 17)
#define ENTRIES 4096

/* A structure is returned through a hidden first argument (x86-64); zeros are dimensions of rank 0. */
static void *answer(void *first, void *second)
{
    if (first == OBJECT || second != OBJECT)
        return OBJECT;
    memset(first, 0, sizeof(int64_t));
    return first;
}

__attribute__((constructor)) static void make_object(void)
{
    /* One region: the bytes before the object, the object, the words before the table (no run-time type: null),
     * the table. Libraries under several names are one file, and so are made once. */
    char *start = (char *)0x10000, *end = (char *)(TABLE + ENTRIES);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (mmap(start, end - start, PROT_READ | PROT_WRITE, flags, -1, 0) != start)
        __builtin_trap();
    for (int i = 0; i < ENTRIES; i++)
        TABLE[i] = (void *)answer;
    /* First the pointer to the table, then the pointer to the implementation, which is the object itself. */
    void *table = TABLE, *self = OBJECT;
    memcpy(OBJECT, &table, sizeof table);
    for (size_t at = sizeof table; at < 64 * sizeof self; at += sizeof self)
        memcpy(OBJECT + at, &self, sizeof self);
}

#define HANDS_OUT_THE_OBJECT(name) void *name(void) { return OBJECT; }

/* The factory that gives nothing, as NVIDIA's do where CUDA does not start; set by the probe, "" for none. */
char null_factory[64];

/* Which of the logger's virtual functions is `log`: the first, until the loggers of TensorRT 11 got a base class. */
int log_slot = 0;

/* What NVIDIA's then say to the logger. */
static void complain(void *logger, const char *name)
{
    typedef void log_function(void *self, int severity, const char *text);
    char text[256];
    snprintf(text, sizeof text, "%s: Error Code 6: API Usage Error (CUDA initialization failure with error: 35)", name);
    (*(log_function ***)logger)[log_slot](logger, 1 /* kERROR */, text);
}

#define HANDS_OUT_THE_OBJECT_OR_NULL(name, called, logger)                  \
    void *name(void *first, void *second)                                  \
    {                                                                      \
        (void)first, (void)second;                                         \
        if (strcmp(null_factory, called) != 0)                             \
            return OBJECT;                                                 \
        complain(logger, called);                                          \
        return 0;                                                          \
    }

HANDS_OUT_THE_OBJECT_OR_NULL(createInferBuilder_INTERNAL, "createInferBuilder", first)
HANDS_OUT_THE_OBJECT_OR_NULL(createInferRuntime_INTERNAL, "createInferRuntime", first)
HANDS_OUT_THE_OBJECT_OR_NULL(createNvOnnxParser_INTERNAL, "createNvOnnxParser", second)
HANDS_OUT_THE_OBJECT(createInferRefitter_INTERNAL)
HANDS_OUT_THE_OBJECT(getBuilderPluginRegistry)
HANDS_OUT_THE_OBJECT(getPluginRegistry)
HANDS_OUT_THE_OBJECT(initLibNvInferPlugins)
HANDS_OUT_THE_OBJECT(createNvOnnxParserRefitter_INTERNAL)
HANDS_OUT_THE_OBJECT(getNvOnnxParserVersion)

/* The Caffe and UFF parsers, which the bindings of 8.6 still want: C++ names. */
HANDS_OUT_THE_OBJECT(_ZN11nvuffparser15createUffParserEv)
HANDS_OUT_THE_OBJECT(_ZN11nvuffparser8FieldMapC1EPKcPKvNS_9FieldTypeEi)
HANDS_OUT_THE_OBJECT(_ZN14nvcaffeparser117createCaffeParserEv)
HANDS_OUT_THE_OBJECT(_ZN14nvcaffeparser123shutdownProtobufLibraryEv)
