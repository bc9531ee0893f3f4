#include "exec/cuda/measure/watch.h"

#include "exec/cuda/measure/nvml.h"

enum {
    WATCH_EVERY_MS = 50
};

typedef struct {
    uint64_t sum, samples;
    unsigned least, most;
} Range;

struct _ExecCudaWatch {
    ExecCudaNvml nvml;
    ExecCudaNvmlDevice device;
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
        if (watch->nvml.clock_mhz(watch->device, EXEC_CUDA_NVML_CLOCK_SM, &value) == 0) {
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

ExecCudaWatch *exec_cuda_watch_new(void) {
    ExecCudaNvml nvml = {0};
    ExecCudaNvmlDevice device;
    if (!exec_cuda_nvml_open(&nvml)) {
        return NULL;
    }
    if (!exec_cuda_nvml_own_gpu(&nvml, &device)) {
        exec_cuda_nvml_close(&nvml);
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
        exec_cuda_nvml_close(&watch->nvml);
        g_mutex_clear(&watch->mutex);
        g_cond_clear(&watch->ends);
        g_free(watch);
    }
}
