/* tests/pretended-gpu/gpu.c - see gpu.h. What cuBLASLt asks of the runtime and of the driver; for
 * every other name of theirs test-products.py writes a function that says "not supported".
 *
 * The facts of GPUs are NVIDIA's: data sheets, and "Technical Specifications per Compute
 * Capability" of the CUDA C++ Programming Guide. How many registers a kernel has is in its machine
 * code, which nobody reads here: REGISTERS is assumed for all.
 */
#include "tests/pretended-gpu/gpu.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    KERNELS = 1 << 18, /* that may be registered */
    REGISTERS = 64,    /* a thread; so many that 1024 threads fit */
    THREADS_PER_BLOCK = 1024,
    THREADS_PER_SM = 2048,
    REGISTERS_PER_SM = 65536,
    SHARED_RESERVED = 1024,
    SHARED_UNASKED = 48 << 10, /* bytes that a block has without asking for more */
    GRID_Y = 65535,
    PLACES = 1 << 12, /* allocations at a time */
    TABLE = 8         /* entries of the tables at the end */
};

#define FIRST_ADDRESS 0x100000000000ull
#define ALIGNMENT     (2ull << 20)

typedef struct {
    const char *name, *whole_name;
    int capability, processors, shared_optin, shared_per_sm, l2_bytes;
    int clock_khz, memory_clock_khz, bus_bits;
    size_t memory_bytes;
} Gpu;

static const Gpu gpus[PRETENDED_GPUS] = {{"H100", "NVIDIA H100 80GB HBM3", 90, 132, 227 << 10,
                                          228 << 10, 50 << 20, 1980000, 2619000, 5120, 80ull << 30},
                                         {"H200", "NVIDIA H200", 90, 132, 227 << 10, 228 << 10,
                                          50 << 20, 1980000, 3201000, 6144, 141ull << 30},
                                         {"A100", "NVIDIA A100-SXM4-80GB", 80, 108, 163 << 10,
                                          164 << 10, 40 << 20, 1410000, 1593000, 5120, 80ull << 30},
                                         {"L40S", "NVIDIA L40S", 89, 142, 99 << 10, 100 << 10,
                                          96 << 20, 2520000, 9001000, 384, 48ull << 30}};

static int current;

static const Gpu *gpu(void) {
    return &gpus[current];
}

const char *pretended_gpu_name(unsigned i) {
    return gpus[i].name;
}

unsigned pretended_gpu_capability(unsigned i) {
    return (unsigned)gpus[i].capability;
}

/* ---- what a GPU is --------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count) {
    *count = PRETENDED_GPUS;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= PRETENDED_GPUS) {
        return cudaErrorInvalidDevice;
    }
    current = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    const Gpu *of = &gpus[device];
    const struct {
        enum cudaDeviceAttr attribute;
        int value;
    } known[] = {{cudaDevAttrMaxThreadsPerBlock, THREADS_PER_BLOCK},
                 {cudaDevAttrMaxBlockDimX, THREADS_PER_BLOCK},
                 {cudaDevAttrMaxBlockDimY, THREADS_PER_BLOCK},
                 {cudaDevAttrMaxBlockDimZ, 64},
                 {cudaDevAttrMaxGridDimX, 0x7fffffff},
                 {cudaDevAttrMaxGridDimY, GRID_Y},
                 {cudaDevAttrMaxGridDimZ, GRID_Y},
                 {cudaDevAttrMaxSharedMemoryPerBlock, SHARED_UNASKED},
                 {cudaDevAttrMaxSharedMemoryPerBlockOptin, of->shared_optin},
                 {cudaDevAttrMaxSharedMemoryPerMultiprocessor, of->shared_per_sm},
                 {cudaDevAttrReservedSharedMemoryPerBlock, SHARED_RESERVED},
                 {cudaDevAttrTotalConstantMemory, 64 << 10},
                 {cudaDevAttrWarpSize, 32},
                 {cudaDevAttrMaxRegistersPerBlock, REGISTERS_PER_SM},
                 {cudaDevAttrMaxRegistersPerMultiprocessor, REGISTERS_PER_SM},
                 {cudaDevAttrMaxThreadsPerMultiProcessor, THREADS_PER_SM},
                 {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
                 {cudaDevAttrTextureAlignment, 512},
                 {cudaDevAttrMultiProcessorCount, of->processors},
                 {cudaDevAttrComputeCapabilityMajor, of->capability / 10},
                 {cudaDevAttrComputeCapabilityMinor, of->capability % 10},
                 {cudaDevAttrClockRate, of->clock_khz},
                 {cudaDevAttrMemoryClockRate, of->memory_clock_khz},
                 {cudaDevAttrGlobalMemoryBusWidth, of->bus_bits},
                 {cudaDevAttrL2CacheSize, of->l2_bytes},
                 {cudaDevAttrConcurrentKernels, 1},
                 {cudaDevAttrUnifiedAddressing, 1},
                 {cudaDevAttrStreamPrioritiesSupported, 1},
                 {cudaDevAttrCooperativeLaunch, 1},
                 {cudaDevAttrMemoryPoolsSupported, 1},
                 {(enum cudaDeviceAttr)CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, of->capability >= 90}};
    *value = 0; /* what is not there, or not told */
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].attribute == attribute) {
            *value = known[i].value;
        }
    }
    return cudaSuccess;
}

CUresult cuInit(unsigned flags) {
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
}

/* Both sides number attributes alike. */
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    return (CUresult)cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device);
}

CUresult cuDeviceGetName(char *text, int length, CUdevice device) {
    snprintf(text, (size_t)length, "%s", gpus[device].whole_name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    *bytes = gpus[device].memory_bytes;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = (CUcontext)&gpus[current];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    current = (int)((const Gpu *)context - gpus);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
    *device = current;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
    return cuCtxGetCurrent(context);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* What stands for a kernel: an address on the host's side, or its name where the driver finds
 * it. */
static struct {
    const void *host;
    const char *name;
} kernels[KERNELS];
static unsigned n_kernels;
static char launches[PRETENDED_LAUNCHES][256];
static unsigned n_launches;

unsigned pretended_n_launches(void) {
    return n_launches;
}

const char *pretended_launch(unsigned i) {
    return launches[i];
}

void pretended_forget(void) {
    n_launches = 0;
}

void **__cudaRegisterFatBinary(void *binary);
void **__cudaRegisterFatBinary(void *binary) {
    static void *handle[4];
    return handle;
}

void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFatBinaryEnd(void **handle) {
}

void __cudaUnregisterFatBinary(void **handle);
void __cudaUnregisterFatBinary(void **handle) {
}

void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int is_extern,
                       size_t bytes, int is_constant, int global);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int is_extern,
                       size_t bytes, int is_constant, int global) {
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *a, void *b, void *c, void *d, int *e);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *a, void *b, void *c, void *d, int *e) {
    if (n_kernels < KERNELS) {
        kernels[n_kernels].host = host;
        kernels[n_kernels++].name = name;
    }
}

static const char *name_of(const void *function) {
    for (unsigned i = 0; i < n_kernels; i++) {
        if (kernels[i].host == function) {
            return kernels[i].name;
        }
    }
    return NULL;
}

static cudaError_t launch(const char *name, dim3 grid, dim3 block, size_t shared) {
    size_t threads = (size_t)block.x * block.y * block.z;
    if (!name) {
        return cudaErrorInvalidDeviceFunction;
    }
    if (!threads || threads > THREADS_PER_BLOCK || block.z > 64 || !grid.x || !grid.y || !grid.z ||
        grid.x > 0x7fffffff || grid.y > GRID_Y || grid.z > GRID_Y) {
        return cudaErrorInvalidConfiguration;
    }
    if (shared > (size_t)gpu()->shared_optin) {
        return cudaErrorInvalidValue;
    }
    if (n_launches < PRETENDED_LAUNCHES) {
        snprintf(launches[n_launches++], sizeof launches[0], "%s", name);
    }
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream) {
    return launch(name_of(function), grid, block, shared);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments) {
    return launch(name_of(function), config->gridDim, config->blockDim, config->dynamicSmemBytes);
}

/* What a compiler of CUDA 13 writes for <<< >>>. */
cudaError_t __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream) {
    return launch(name_of(kernel), grid, block, shared);
}

cudaError_t __cudaGetKernel(const void **kernel, const void *function);
cudaError_t __cudaGetKernel(const void **kernel, const void *function) {
    *kernel = function;
    return cudaSuccess;
}

static struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} configuration;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    *(void **)stream = configuration.stream;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute,
                                 int value) {
    bool too_much =
        attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value > gpu()->shared_optin;
    return too_much ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
    *attributes = (struct cudaFuncAttributes){.maxThreadsPerBlock = THREADS_PER_BLOCK,
                                              .numRegs = REGISTERS,
                                              .binaryVersion = gpu()->capability,
                                              .ptxVersion = gpu()->capability,
                                              .maxDynamicSharedSizeBytes = SHARED_UNASKED};
    return cudaSuccess;
}

static int at_a_time(int threads, size_t shared) {
    int all = threads > 0 ? threads : 1;
    int by_shared = gpu()->shared_per_sm / (int)(shared + SHARED_RESERVED);
    int by_threads = THREADS_PER_SM / all, by_registers = REGISTERS_PER_SM / (REGISTERS * all);
    int least = by_shared < by_threads ? by_shared : by_threads;
    return least < by_registers ? least : by_registers;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                   const void *function,
                                                                   int threads, size_t shared,
                                                                   unsigned flags) {
    *blocks = at_a_time(threads, shared);
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int threads, size_t shared) {
    *blocks = at_a_time(threads, shared);
    return cudaSuccess;
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function,
                                                      int blocks, int threads) {
    *bytes = (size_t)(gpu()->shared_per_sm / blocks - SHARED_RESERVED);
    return cudaSuccess;
}

/* As many as there are multiprocessors for, as if no part of the chip were smaller than another. */
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function,
                                           const cudaLaunchConfig_t *config) {
    unsigned blocks = 1;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
            blocks = config->attrs[i].val.clusterDim.x * config->attrs[i].val.clusterDim.y *
                     config->attrs[i].val.clusterDim.z;
        }
    }
    *clusters = gpu()->processors / (int)blocks;
    return cudaSuccess;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
                           void **values, unsigned n, CUlibraryOption *library_options,
                           void **library_values, unsigned n_library) {
    *library = (CUlibrary)code;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    *kernel = (CUkernel)name; /* that text lasts: cuBLASLt has it in its own data */
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK           ? THREADS_PER_BLOCK
             : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS                      ? REGISTERS
             : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? SHARED_UNASKED
                                                                            : 0;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    bool too_much =
        attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value > gpu()->shared_optin;
    return too_much ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t shared) {
    *blocks = at_a_time(threads, shared);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                              int threads, size_t shared,
                                                              unsigned flags) {
    *blocks = at_a_time(threads, shared);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **arguments, void **extra) {
    return (CUresult)launch((const char *)function, (dim3){grid_x, grid_y, grid_z},
                            (dim3){block_x, block_y, block_z}, shared);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct {
    uintptr_t address;
    size_t bytes;
} places[PLACES];
static uintptr_t next_address = FIRST_ADDRESS;
static size_t allocated_bytes;
static unsigned n_allocations;

size_t pretended_allocated_bytes(void) {
    return allocated_bytes;
}

unsigned pretended_n_allocations(void) {
    return n_allocations;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    n_allocations++;
    for (unsigned i = 0; i < PLACES; i++) {
        if (!places[i].address) {
            places[i].address = next_address;
            places[i].bytes = bytes;
            *pointer = (void *)next_address; // NOLINT
            next_address += (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
            allocated_bytes += bytes;
            return cudaSuccess;
        }
    }
    return cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *pointer) {
    for (unsigned i = 0; pointer && i < PLACES; i++) {
        if (places[i].address == (uintptr_t)pointer) {
            allocated_bytes -= places[i].bytes;
            places[i].address = 0;
            return cudaSuccess;
        }
    }
    return pointer ? cudaErrorInvalidValue : cudaSuccess;
}

/* A lane's flag; a few bytes that are never given back. */
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    static _Alignas(16) char pinned[1 << 16];
    static size_t used;
    if (bytes > sizeof pinned - used) {
        return cudaErrorMemoryAllocation;
    }
    *pointer = pinned + used;
    used += (bytes + 15) / 16 * 16;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *pointer) {
    return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
    *address = (void *)symbol;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *pointer) {
    *attributes = (struct cudaPointerAttributes){
        .type = cudaMemoryTypeDevice, .device = current, .devicePointer = (void *)pointer};
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    return cudaSuccess;
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
    return cudaSuccess;
}

/* ---- waiting, and words ---------------------------------------------------------------------- */

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    return cudaSuccess; /* each launch said so itself */
}

const char *cudaGetErrorName(cudaError_t error) {
    return error == cudaErrorInvalidConfiguration ? "cudaErrorInvalidConfiguration" : "an error";
}

const char *cudaGetErrorString(cudaError_t error) {
    return "refused by the pretended GPU";
}

CUresult cuGetErrorName(CUresult error, const char **text) {
    *text = "an error of the pretended driver";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    return cuGetErrorName(error, text);
}

/* ---- what the libraries find by name --------------------------------------------------------- */

static CUresult encode_tensor_map(void) {
    return CUDA_SUCCESS; /* only kernels read it */
}

cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result);
cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result) {
    *function = !strcmp(name, "cuDeviceGet")              ? (void *)cuDeviceGet
                : !strcmp(name, "cuDeviceGetName")        ? (void *)cuDeviceGetName
                : !strncmp(name, "cuTensorMapEncode", 17) ? (void *)encode_tensor_map
                                                          : NULL;
    if (result) {
        *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    }
    return cudaSuccess;
}

/* Two tables, of which the first is known as profilers' (TOOLS_TLS of ZLUDA's dark_api): around its
 * own work cuBLASLt is seen to take a word by entry 2 of one and to hand it to entry 4 of the
 * other. There is no profiler here. No other table is served, least of all one by which a driver
 * would prove what it is. */
static CUresult take_word(void **ret_word) {
    *ret_word = NULL;
    return CUDA_SUCCESS;
}

static CUresult exchange_word(const void *word, void **ret_word) {
    *ret_word = NULL;
    return CUDA_SUCCESS;
}

static const void *const tool_tls[TABLE] = {(void *)sizeof tool_tls, NULL, (void *)take_word};
static const void *const tool_words[TABLE] = {(void *)sizeof tool_words, NULL, NULL, NULL,
                                              (void *)exchange_word};

cudaError_t cudaGetExportTable(const void **table, const cudaUUID_t *id) {
    static const unsigned char tls[] = {0x42, 0xd8, 0x5a, 0x81}, words[] = {0x21, 0x31, 0x8c, 0x60};
    *table = !memcmp(id->bytes, tls, sizeof tls)       ? (const void *)tool_tls
             : !memcmp(id->bytes, words, sizeof words) ? (const void *)tool_words
                                                       : NULL;
    return *table ? cudaSuccess : cudaErrorSymbolNotFound;
}
