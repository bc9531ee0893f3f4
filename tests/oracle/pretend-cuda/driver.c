/* tests/oracle/pretend-cuda/driver.c - a CUDA driver without a GPU, and the library that tells of
 * GPUs (cudart.c). Virtual memory for expandable segments; of other names `run` says that they
 * succeed.
 */
#include <cuda.h>

unsigned long long pretend_reserve(unsigned long long bytes); /* cudart.c */

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    *value = 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = (CUcontext)0x1000;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    *flags = 0;
    *active = 1;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    *context = (CUcontext)0x1000;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = "an error";
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags flags) {
    *bytes = 2 << 20;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags) {
    *pointer = pretend_reserve(bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags) {
    static CUmemGenericAllocationHandle last;
    *handle = ++last;
    return CUDA_SUCCESS;
}

/* NVML's own header is not installed with PyTorch. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device) {
    *device = 0;
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *list);
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *list) {
    *count = 0;
    return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void);
int nvmlDeviceGetNvLinkRemoteDeviceType(void) {
    return 3; /* NVML_ERROR_NOT_SUPPORTED */
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void) {
    return 3;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = 13000;
    return 0;
}
