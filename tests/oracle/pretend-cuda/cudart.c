/* tests/oracle/pretend-cuda/cudart.c - a CUDA runtime that has no GPU.
 *
 * What PyTorch asks of libcudart.so.13 and must have an answer to; run adds a function that
 * does nothing, and succeeds, for each other name that PyTorch imports. Kernels are not run and
 * nothing is copied. Memory is addresses that only rise, with nothing behind them.
 *
 * An event is over when the host has waited for it, for its stream or for the device: as late as
 * may be. PRETEND_EVENTS=early in the environment: at once.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    STREAMS = 1024,
    EVENTS = 1 << 16,
    SEGMENTS = 1 << 16,
    PAGE = 4096
};

#define DEVICE_BYTES  (80ull << 30)
#define FIRST_ADDRESS 0x100000000000ull
#define ALIGNMENT     (2ull << 20)

static struct { unsigned long long recorded, over; } streams[STREAMS];
static struct {
    int stream, taken;
    unsigned long long number;
    struct timespec when; /* it was recorded: the device takes no time */
} events[EVENTS];
static struct { unsigned long long address, bytes; } segments[SEGMENTS];
static unsigned long long next_address = FIRST_ADDRESS, used_bytes;
static int last_stream, n_segments;

/* ---- the device ------------------------------------------------------------------------------ */

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}

/* An A100's, as far as PyTorch chooses kernels by it. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    *properties = (struct cudaDeviceProp){.name = "pretended A100",
                                          .totalGlobalMem = DEVICE_BYTES,
                                          .major = 8,
                                          .multiProcessorCount = 108,
                                          .warpSize = 32,
                                          .maxThreadsPerBlock = 1024,
                                          .maxThreadsPerMultiProcessor = 2048,
                                          .maxThreadsDim = {1024, 1024, 64},
                                          .maxGridSize = {0x7fffffff, 65535, 65535},
                                          .sharedMemPerBlock = 48 << 10,
                                          .sharedMemPerBlockOptin = 163 << 10,
                                          .sharedMemPerMultiprocessor = 164 << 10,
                                          .regsPerBlock = 65536,
                                          .regsPerMultiprocessor = 65536,
                                          .l2CacheSize = 40 << 20,
                                          .unifiedAddressing = 1,
                                          .streamPrioritiesSupported = 1};
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    *value = attribute == cudaDevAttrMultiProcessorCount            ? 108
             : attribute == cudaDevAttrComputeCapabilityMajor       ? 8
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 163 << 10
             : attribute == cudaDevAttrMaxThreadsPerMultiProcessor  ? 2048
             : attribute == cudaDevAttrMaxGridDimX                  ? 0x7fffffff
                                                                    : 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device) {
    snprintf(id, (size_t)length, "0000:00:00.0");
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *all) {
    *unused = DEVICE_BYTES - used_bytes;
    *all = DEVICE_BYTES;
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "an error";
}

const char *cudaGetErrorString(cudaError_t error) {
    return cudaGetErrorName(error);
}

/* ---- memory ---------------------------------------------------------------------------------- */

unsigned long long pretend_reserve(unsigned long long bytes);
unsigned long long pretend_reserve(unsigned long long bytes) {
    unsigned long long address = next_address;
    next_address += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT;
    return address;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    if (bytes > DEVICE_BYTES - used_bytes || n_segments == SEGMENTS) {
        return cudaErrorMemoryAllocation;
    }
    segments[n_segments].address = pretend_reserve(bytes);
    segments[n_segments].bytes = bytes;
    *pointer = (void *)segments[n_segments++].address;
    used_bytes += bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *pointer) {
    for (int i = 0; i < n_segments; i++) {
        if (segments[i].address == (unsigned long long)pointer) {
            used_bytes -= segments[i].bytes;
            segments[i] = segments[--n_segments];
            break;
        }
    }
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *pointer) {
    unsigned long long address = (unsigned long long)pointer;
    *attributes = (struct cudaPointerAttributes){
        .type = address >= FIRST_ADDRESS && address < next_address ? cudaMemoryTypeDevice
                                                                   : cudaMemoryTypeUnregistered,
        .devicePointer = (void *)pointer};
    return cudaSuccess;
}

/* The host's memory is real; its length lies before it. */
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    size_t *whole =
        mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) {
        return cudaErrorMemoryAllocation;
    }
    whole[0] = bytes + PAGE;
    *pointer = (char *)whole + PAGE;
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    return cudaHostAlloc(pointer, bytes, 0);
}

cudaError_t cudaFreeHost(void *pointer) {
    if (pointer) {
        size_t *whole = (size_t *)((char *)pointer - PAGE);
        munmap(whole, whole[0]);
    }
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
    *device = host;
    return cudaSuccess;
}

/* What comes from the device is zero. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    if (kind == cudaMemcpyDeviceToHost) {
        memset(to, 0, bytes);
    }
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, NULL);
}

/* ---- streams and events ---------------------------------------------------------------------- */

/* A stream's handle is its number times 16. */
static int stream_of(cudaStream_t stream) {
    unsigned long long number = (unsigned long long)stream / 16;
    return number < STREAMS ? (int)number : 0;
}

static int event_of(cudaEvent_t event) {
    return (int)((unsigned long long)event / 16) - 1;
}

static void wait_for_stream(int stream) {
    streams[stream].over = streams[stream].recorded;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    if (++last_stream == STREAMS) {
        return cudaErrorMemoryAllocation;
    }
    *stream = (cudaStream_t)(16ull * (unsigned long long)last_stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    return cudaStreamCreateWithPriority(stream, 0, 0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
    *priority = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                     size_t *n) {
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    wait_for_stream(stream_of(stream));
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    for (int i = 0; i < STREAMS; i++) {
        wait_for_stream(i);
    }
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    for (int i = 0; i < EVENTS; i++) {
        if (!events[i].taken) {
            events[i].taken = 1;
            events[i].number = 0;
            *event = (cudaEvent_t)(16ull * (unsigned long long)(i + 1));
            return cudaSuccess;
        }
    }
    return cudaErrorMemoryAllocation;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    events[event_of(event)].taken = 0;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    int i = event_of(event);
    const char *when = getenv("PRETEND_EVENTS");
    events[i].stream = stream_of(stream);
    events[i].number = ++streams[events[i].stream].recorded;
    clock_gettime(CLOCK_MONOTONIC, &events[i].when);
    if (when && strcmp(when, "early") == 0) {
        wait_for_stream(events[i].stream);
    }
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    int i = event_of(event);
    return events[i].number <= streams[events[i].stream].over ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    int i = event_of(event);
    if (streams[events[i].stream].over < events[i].number) {
        streams[events[i].stream].over = events[i].number;
    }
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end) {
    const struct timespec *from = &events[event_of(begin)].when, *to = &events[event_of(end)].when;
    *ms = (float)(to->tv_sec - from->tv_sec) * 1e3f + (float)(to->tv_nsec - from->tv_nsec) * 1e-6f;
    return cudaSuccess;
}

/* ---- kernels --------------------------------------------------------------------------------- */

void **__cudaRegisterFatBinary(void *binary);
void **__cudaRegisterFatBinary(void *binary) {
    static void *handle[4];
    return handle;
}

/* How often the host gave the device work: kernels here, products in cublas.c. */
static unsigned long long launches;

void pretend_launched(void);
void pretend_launched(void) {
    launches++;
}

unsigned long long pretend_launches(void);
unsigned long long pretend_launches(void) {
    return launches;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream) {
    launches++;
    return cudaSuccess;
}

/* What a compiled `<<<>>>` calls. */
cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream) {
    launches++;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments) {
    launches++;
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    launches++;
    return cudaSuccess;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    *grid = *block = (dim3){1, 1, 1};
    *shared = 0;
    *(void **)stream = NULL;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
    *attributes = (struct cudaFuncAttributes){
        .maxThreadsPerBlock = 1024, .binaryVersion = 80, .ptxVersion = 80, .numRegs = 32};
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                   const void *function,
                                                                   int threads, size_t shared,
                                                                   unsigned flags) {
    *blocks = 2;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int threads, size_t shared) {
    *blocks = 2;
    return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
    *address = (void *)FIRST_ADDRESS;
    return cudaSuccess;
}

/* The driver's functions are those of driver.c. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result) {
    *function = dlsym(RTLD_DEFAULT, name);
    if (result) {
        *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    }
    return cudaSuccess;
}
