#include "exec/cuda/measure/facts.h"

#include "exec/cuda/calls.h"
#include "exec/cuda/measure/nvml.h"
#include "kernels/cuda/runtime.h"

static void add_device(const ExecCudaNvml *nvml, ExecCudaNvmlDevice device, Trace *trace) {
    const struct {
        const char *key;
        int (*ask)(ExecCudaNvmlDevice device, int clock, unsigned *mhz);
        int clock;
    } clocks[] = {{"gpu_clock_mhz", nvml->clock_mhz, EXEC_CUDA_NVML_CLOCK_SM},
                  {"gpu_clock_max_mhz", nvml->max_clock_mhz, EXEC_CUDA_NVML_CLOCK_SM},
                  {"gpu_memory_clock_mhz", nvml->clock_mhz, EXEC_CUDA_NVML_CLOCK_MEMORY},
                  {"gpu_memory_clock_max_mhz", nvml->max_clock_mhz, EXEC_CUDA_NVML_CLOCK_MEMORY}};
    unsigned value;
    ExecCudaNvmlMemory memory;
    for (unsigned i = 0; i < G_N_ELEMENTS(clocks); i++) {
        if (clocks[i].ask(device, clocks[i].clock, &value) == 0) {
            trace_set_uint(trace, clocks[i].key, value);
        }
    }
    if (nvml->power_mw(device, &value) == 0) {
        trace_set_uint(trace, "gpu_power_mw", value);
    }
    if (nvml->power_limit_mw(device, &value) == 0) {
        trace_set_uint(trace, "gpu_power_limit_mw", value);
    }
    if (nvml->memory(device, &memory) == 0) {
        trace_set_uint(trace, "gpu_nvml_used_bytes", memory.used);
    }
}

static void add_managed(Trace *trace) {
    ExecCudaNvml nvml = {0};
    if (!exec_cuda_nvml_open(&nvml)) {
        return;
    }
    char version[EXEC_CUDA_NVML_TEXT];
    ExecCudaNvmlDevice device;
    if (nvml.driver_version(version, sizeof version) == 0) {
        trace_set(trace, "driver", version);
    }
    if (exec_cuda_nvml_own_gpu(&nvml, &device)) {
        add_device(&nvml, device, trace);
    }
    exec_cuda_nvml_close(&nvml);
}

static void add_version(Trace *trace, const char *key, int version) {
    g_autofree char *text = g_strdup_printf("%d.%d", version / 1000, version % 1000 / 10);
    trace_set(trace, key, text);
}

void exec_cuda_facts_add(Trace *trace) {
    int device = 0, version = 0;
    struct cudaDeviceProp properties;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
        return;
    }
    g_autofree char *capability = g_strdup_printf("%d.%d", properties.major, properties.minor);
    trace_set(trace, "gpu", properties.name);
    trace_set(trace, "gpu_capability", capability);
    trace_set_uint(trace, "gpu_sms", (uint64_t)properties.multiProcessorCount);
    trace_set_uint(trace, "gpu_memory_bytes", properties.totalGlobalMem);
    if (cudaRuntimeGetVersion(&version) == cudaSuccess) {
        add_version(trace, "cuda_runtime", version);
    }
    if (cudaDriverGetVersion(&version) == cudaSuccess) {
        add_version(trace, "cuda_driver_api", version);
    }
    trace_set(trace, "cuda_libraries", kernel_cuda_libraries());
    add_managed(trace);
}
