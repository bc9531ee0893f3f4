/* tests/emulator/device.cc - the device's properties, and the last error. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>

#include "tests/emulator/emulator-private.h"

namespace {

/* An H100's limits, but few multiprocessors: grids are sized by them, and blocks run one by one. */
constexpr int PROCESSORS = 4, SHARED = 48 << 10, SHARED_OPTIN = 227 << 10, L2 = 50 << 20;

thread_local cudaError_t last_error;
std::atomic<bool> is_broken; /* for good */
int first_capability() {
    const char *text = getenv("FORESHARD_EMULATOR_CAPABILITY");
    return text ? atoi(text) : 90;
}

std::atomic<int> capability{first_capability()}; /* of its compute, times ten */

struct Name {
    cudaError_t error;
    const char *name, *text;
};

constexpr Name names[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

const Name *name_of(cudaError_t error) {
    static constexpr Name unknown = {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
    for (const Name &name : names) {
        if (name.error == error) {
            return &name;
        }
    }
    return &unknown;
}

} // namespace

void emulator_set_capability(int of_compute) {
    capability = of_compute;
}

int emulator_capability() {
    return capability;
}

cudaError_t emulator_error(cudaError_t error) {
    return last_error = error;
}

EmulatorFault emulator_is_to_fault() {
    static const char *const wanted = getenv("FORESHARD_EMULATOR_FAULT");
    static unsigned long launched;
    char *end;
    if (!wanted || ++launched != strtoul(wanted, &end, 10)) {
        return EMULATOR_NO_FAULT;
    }
    return *end == '!' ? EMULATOR_FAULT_AT_ONCE : EMULATOR_FAULT_IN_TURN;
}

void emulator_break() {
    is_broken = true;
}

cudaError_t emulator_state() {
    return is_broken ? emulator_error(cudaErrorIllegalAddress) : cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t error = is_broken ? cudaErrorIllegalAddress : last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) {
    return last_error;
}

const char *cudaGetErrorName(cudaError_t error) {
    return name_of(error)->name;
}

const char *cudaGetErrorString(cudaError_t error) {
    return name_of(error)->text;
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return device == 0 ? cudaSuccess : emulator_error(cudaErrorInvalidDevice);
}

cudaError_t cudaSetDeviceFlags(unsigned) {
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void) {
    return cudaDeviceSynchronize();
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int) {
    snprintf(text, (size_t)length, "0000:00:00.0");
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
    size_t free_bytes;
    *properties = {};
    snprintf(properties->name, sizeof properties->name, "emulated GPU");
    cudaMemGetInfo(&free_bytes, &properties->totalGlobalMem);
    properties->sharedMemPerBlock = SHARED;
    properties->sharedMemPerBlockOptin = SHARED_OPTIN;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->major = capability / 10;
    properties->minor = capability % 10;
    properties->multiProcessorCount = PROCESSORS;
    properties->l2CacheSize = L2;
    properties->memoryBusWidth = 5120;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = SHARED;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = SHARED_OPTIN;
        return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
        *value = PROCESSORS;
        return cudaSuccess;
    case cudaDevAttrL2CacheSize:
        *value = L2;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        *value = capability / 10;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value = capability % 10;
        return cudaSuccess;
    case cudaDevAttrClockRate: /* kHz */
    case cudaDevAttrMemoryClockRate:
        *value = 1000000;
        return cudaSuccess;
    }
    return emulator_error(cudaErrorInvalidValue);
}
