/* exec/cuda/measure/nvml.h - the management library of NVIDIA's driver, as far as it is used:
 * clocks, power, and the GPU's own count of its memory.
 *
 * Numbers are nvml.h's. It comes with the driver, not with the toolkit, so it is looked for at run
 * time, and its header is not needed. Threads: any.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct _ExecCudaNvmlDevice *ExecCudaNvmlDevice;
typedef struct {
    unsigned long long total, free, used;
} ExecCudaNvmlMemory;

enum {
    EXEC_CUDA_NVML_CLOCK_SM = 1,
    EXEC_CUDA_NVML_CLOCK_MEMORY = 2,
    EXEC_CUDA_NVML_TEXT = 96
};

typedef struct {
    gpointer library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_bus)(const char *bus, ExecCudaNvmlDevice *device);
    int (*driver_version)(char *text, unsigned length);
    int (*clock_mhz)(ExecCudaNvmlDevice device, int clock, unsigned *mhz);
    int (*max_clock_mhz)(ExecCudaNvmlDevice device, int clock, unsigned *mhz);
    int (*power_mw)(ExecCudaNvmlDevice device, unsigned *mw);
    int (*power_limit_mw)(ExecCudaNvmlDevice device, unsigned *mw);
    int (*memory)(ExecCudaNvmlDevice device, ExecCudaNvmlMemory *memory);
} ExecCudaNvml;

/* False: there is none here. Takes many milliseconds. */
bool exec_cuda_nvml_open(ExecCudaNvml *ret_nvml);
void exec_cuda_nvml_close(ExecCudaNvml *nvml); /* of one that is open */
/* The GPU that is this process's own. */
bool exec_cuda_nvml_own_gpu(const ExecCudaNvml *nvml, ExecCudaNvmlDevice *ret_device);
