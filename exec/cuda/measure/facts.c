#include "exec/cuda/measure/facts.h"

#include <dlfcn.h>

#include "exec/cuda/calls.h"
#include "kernels/cuda/runtime.h"

bool exec_cuda_take_gpu(const ExecComm *comm, GError **error) {
    int n = 0;
    if (!exec_cuda_ok(cudaGetDeviceCount(&n), "cudaGetDeviceCount", error)) {
        g_prefix_error(error, "no GPU can be used: ");
        return false;
    }
    return exec_cuda_ok(cudaSetDevice((int)(comm->local_rank % (unsigned)n)), "cudaSetDevice",
                        error);
}

uint64_t exec_cuda_facts_used_bytes(void) {
    size_t free_bytes, total_bytes;
    return cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess ? total_bytes - free_bytes : 0;
}

uint64_t exec_cuda_facts_free_bytes(void) {
    size_t free_bytes, total_bytes;
    return cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess ? free_bytes : 0;
}

/* ---- the management library ----------------------------------------------------------------- */

/* Its interface as far as it is used; numbers are nvml.h's. It comes with the driver, so it is
 * looked for at run time. */
typedef struct _NvmlDevice *NvmlDevice;
typedef struct {
    unsigned long long total, free, used;
} NvmlMemory;

enum {
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_TEXT = 96
};

typedef struct {
    gpointer library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_bus)(const char *bus, NvmlDevice *device);
    int (*driver_version)(char *text, unsigned length);
    int (*clock_mhz)(NvmlDevice device, int clock, unsigned *mhz);
    int (*max_clock_mhz)(NvmlDevice device, int clock, unsigned *mhz);
    int (*power_mw)(NvmlDevice device, unsigned *mw);
    int (*power_limit_mw)(NvmlDevice device, unsigned *mw);
    int (*memory)(NvmlDevice device, NvmlMemory *memory);
} Nvml;

static bool find(const Nvml *nvml, const char *name, gpointer to) {
    return (*(gpointer *)to = dlsym(nvml->library, name)) != NULL;
}

static bool nvml_open(Nvml *nvml) {
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        return false;
    }
    bool ok = find(nvml, "nvmlInit_v2", &nvml->init) &&
              find(nvml, "nvmlShutdown", &nvml->shutdown) &&
              find(nvml, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->by_bus) &&
              find(nvml, "nvmlSystemGetDriverVersion", &nvml->driver_version) &&
              find(nvml, "nvmlDeviceGetClockInfo", &nvml->clock_mhz) &&
              find(nvml, "nvmlDeviceGetMaxClockInfo", &nvml->max_clock_mhz) &&
              find(nvml, "nvmlDeviceGetPowerUsage", &nvml->power_mw) &&
              find(nvml, "nvmlDeviceGetEnforcedPowerLimit", &nvml->power_limit_mw) &&
              find(nvml, "nvmlDeviceGetMemoryInfo", &nvml->memory) && nvml->init() == 0;
    if (!ok) {
        dlclose(nvml->library);
    }
    return ok;
}

static void nvml_close(Nvml *nvml) {
    nvml->shutdown();
    dlclose(nvml->library);
}

static void add_device(const Nvml *nvml, NvmlDevice device, Trace *trace) {
    const struct {
        const char *key;
        int (*ask)(NvmlDevice device, int clock, unsigned *mhz);
        int clock;
    } clocks[] = {{"gpu_clock_mhz", nvml->clock_mhz, NVML_CLOCK_SM},
                  {"gpu_clock_max_mhz", nvml->max_clock_mhz, NVML_CLOCK_SM},
                  {"gpu_memory_clock_mhz", nvml->clock_mhz, NVML_CLOCK_MEMORY},
                  {"gpu_memory_clock_max_mhz", nvml->max_clock_mhz, NVML_CLOCK_MEMORY}};
    unsigned value;
    NvmlMemory memory;
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

static void add_managed(const char *bus, Trace *trace) {
    Nvml nvml = {0};
    if (!nvml_open(&nvml)) {
        return;
    }
    char version[NVML_TEXT];
    NvmlDevice device;
    if (nvml.driver_version(version, sizeof version) == 0) {
        trace_set(trace, "driver", version);
    }
    if (nvml.by_bus(bus, &device) == 0) {
        add_device(&nvml, device, trace);
    }
    nvml_close(&nvml);
}

/* ---- while it works ------------------------------------------------------------------------- */

enum {
    WATCH_EVERY_MS = 50
};

typedef struct {
    uint64_t sum, samples;
    unsigned least, most;
} Range;

struct _ExecCudaWatch {
    Nvml nvml;
    NvmlDevice device;
    GThread *thread; /* NULL: not started, or stopped */
    GMutex mutex;
    GCond ends;
    bool ended;
    Range clock_mhz, power_mw;
};

static void take(Range *range, unsigned value) {
    range->least = range->samples ? MIN(range->least, value) : value;
    range->most = MAX(range->most, value);
    range->sum += value;
    range->samples++;
}

static gpointer watch_on(gpointer data) {
    ExecCudaWatch *watch = data;
    gint64 next_us = g_get_monotonic_time();
    g_mutex_lock(&watch->mutex);
    while (!watch->ended) {
        unsigned value;
        if (watch->nvml.clock_mhz(watch->device, NVML_CLOCK_SM, &value) == 0) {
            take(&watch->clock_mhz, value);
        }
        if (watch->nvml.power_mw(watch->device, &value) == 0) {
            take(&watch->power_mw, value);
        }
        next_us += WATCH_EVERY_MS * 1000;
        while (!watch->ended && g_cond_wait_until(&watch->ends, &watch->mutex, next_us)) {
        }
    }
    g_mutex_unlock(&watch->mutex);
    return NULL;
}

static bool current_bus(char bus[NVML_TEXT]) {
    int device;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetPCIBusId(bus, NVML_TEXT, device) == cudaSuccess;
}

ExecCudaWatch *exec_cuda_watch_new(void) {
    char bus[NVML_TEXT];
    Nvml nvml = {0};
    NvmlDevice device;
    if (!current_bus(bus) || !nvml_open(&nvml)) {
        return NULL;
    }
    if (nvml.by_bus(bus, &device) != 0) {
        nvml_close(&nvml);
        return NULL;
    }
    ExecCudaWatch *watch = g_new0(ExecCudaWatch, 1);
    watch->nvml = nvml;
    watch->device = device;
    g_mutex_init(&watch->mutex);
    g_cond_init(&watch->ends);
    return watch;
}

void exec_cuda_watch_start(ExecCudaWatch *watch) {
    if (watch) {
        watch->thread = g_thread_new("watch", watch_on, watch);
    }
}

void exec_cuda_watch_stop(ExecCudaWatch *watch) {
    if (!watch || !watch->thread) {
        return;
    }
    g_mutex_lock(&watch->mutex);
    watch->ended = true;
    g_cond_signal(&watch->ends);
    g_mutex_unlock(&watch->mutex);
    g_thread_join(g_steal_pointer(&watch->thread));
}

static void add_range(Trace *trace, const char *of, const Range *range) {
    const struct {
        const char *what;
        uint64_t value;
    } numbers[] = {{"least", range->least},
                   {"mean", range->samples ? range->sum / range->samples : 0},
                   {"most", range->most}};
    for (unsigned i = 0; range->samples && i < G_N_ELEMENTS(numbers); i++) {
        g_autofree char *key = g_strdup_printf("gpu_busy_%s_%s", of, numbers[i].what);
        trace_set_uint(trace, key, numbers[i].value);
    }
}

void exec_cuda_watch_add(const ExecCudaWatch *watch, Trace *trace) {
    if (watch) {
        add_range(trace, "clock_mhz", &watch->clock_mhz);
        add_range(trace, "power_mw", &watch->power_mw);
        trace_set_uint(trace, "gpu_busy_samples", watch->clock_mhz.samples);
    }
}

void exec_cuda_watch_free(ExecCudaWatch *watch) {
    if (watch) {
        exec_cuda_watch_stop(watch);
        nvml_close(&watch->nvml);
        g_mutex_clear(&watch->mutex);
        g_cond_clear(&watch->ends);
        g_free(watch);
    }
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void add_version(Trace *trace, const char *key, int version) {
    g_autofree char *text = g_strdup_printf("%d.%d", version / 1000, version % 1000 / 10);
    trace_set(trace, key, text);
}

void exec_cuda_facts_add(Trace *trace) {
    int device = 0, version = 0;
    char bus[NVML_TEXT];
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
    if (current_bus(bus)) {
        add_managed(bus, trace);
    }
}
