#include "exec/cuda/measure/times.h"

#include "exec/clock.h"
#include "exec/cuda/calls.h"

enum {
    BASES = 4 /* an op's base is at most so old when the op is settled */
};

typedef struct {
    cudaEvent_t event;
    int64_t ns; /* on the host's clock */
} Base;

typedef struct {
    TraceOpRow *row; /* NULL: the end of a step */
    int32_t step;
    unsigned base; /* its number */
    cudaEvent_t start, end;
} Timed;

struct _ExecCudaTimes {
    bool of_ops;
    Base bases[BASES];
    unsigned n_bases; /* the last ones are there */
    GQueue pending;   /* Timed, as issued */
    GPtrArray *idle;  /* cudaEvent_t */
    int64_t recording_ns;
    uint64_t n_recorded;
};

ExecCudaTimes *exec_cuda_times_new(bool of_ops) {
    ExecCudaTimes *times = g_new0(ExecCudaTimes, 1);
    times->of_ops = of_ops;
    times->idle = g_ptr_array_new();
    g_queue_init(&times->pending);
    return times;
}

static void put_back(ExecCudaTimes *times, cudaEvent_t event) {
    if (event) {
        g_ptr_array_add(times->idle, event);
    }
}

static void drop(ExecCudaTimes *times, Timed *timed) {
    put_back(times, timed->start);
    put_back(times, timed->end);
    g_free(timed);
}

void exec_cuda_times_free(ExecCudaTimes *times) {
    if (!times) {
        return;
    }
    for (Timed *timed; (timed = g_queue_pop_head(&times->pending));) {
        drop(times, timed);
    }
    for (unsigned i = 0; i < BASES; i++) {
        put_back(times, times->bases[i].event);
    }
    for (guint i = 0; i < times->idle->len; i++) {
        cudaEventDestroy(times->idle->pdata[i]);
    }
    g_ptr_array_unref(times->idle);
    g_free(times);
}

static bool record(ExecCudaTimes *times, cudaStream_t stream, cudaEvent_t *ret_event,
                   GError **error) {
    guint n = times->idle->len;
    cudaEvent_t event = n ? g_ptr_array_steal_index(times->idle, n - 1) : NULL;
    if (!event && !exec_cuda_ok(cudaEventCreate(&event), "cudaEventCreate", error)) {
        return false;
    }
    *ret_event = event;
    int64_t start_ns = exec_now_ns();
    bool ok = exec_cuda_ok(cudaEventRecord(event, stream), "cudaEventRecord", error);
    times->recording_ns += exec_now_ns() - start_ns;
    times->n_recorded++;
    return ok;
}

uint64_t exec_cuda_times_record_ns(const ExecCudaTimes *times) {
    return times->n_recorded ? (uint64_t)times->recording_ns / times->n_recorded : 0;
}

/* ---- bases ---------------------------------------------------------------------------------- */

static void add_base(ExecCudaTimes *times, cudaEvent_t event, int64_t ns) {
    Base *base = &times->bases[times->n_bases++ % BASES];
    put_back(times, base->event);
    *base = (Base){event, ns};
}

bool exec_cuda_times_start(ExecCudaTimes *times, cudaStream_t stream, int64_t *ret_ns,
                           GError **error) {
    cudaEvent_t event;
    if (!record(times, stream, &event, error) ||
        !exec_cuda_ok(cudaEventSynchronize(event), "cudaEventSynchronize", error)) {
        return false;
    }
    *ret_ns = exec_now_ns();
    add_base(times, event, *ret_ns);
    return true;
}

static bool time_of(const ExecCudaTimes *times, unsigned base, cudaEvent_t event, int64_t *ret_ns,
                    GError **error) {
    const Base *from = &times->bases[base % BASES];
    float ms;
    g_assert(times->n_bases - base <= BASES);
    if (!exec_cuda_ok(cudaEventElapsedTime(&ms, from->event, event), "cudaEventElapsedTime",
                      error)) {
        return false;
    }
    *ret_ns = from->ns + (int64_t)((double)ms * 1e6);
    return true;
}

/* ---- what is timed -------------------------------------------------------------------------- */

static Timed *add(ExecCudaTimes *times, TraceOpRow *row, int32_t step) {
    Timed *timed = g_new0(Timed, 1);
    timed->row = row;
    timed->step = step;
    timed->base = times->n_bases - 1;
    g_queue_push_tail(&times->pending, timed);
    return timed;
}

bool exec_cuda_times_op_begins(ExecCudaTimes *times, TraceOpRow *row, cudaStream_t stream,
                               GError **error) {
    return !row || !times->of_ops ||
           record(times, stream, &add(times, row, row->step)->start, error);
}

bool exec_cuda_times_op_ends(ExecCudaTimes *times, const TraceOpRow *row, cudaStream_t stream,
                             GError **error) {
    Timed *timed = g_queue_peek_tail(&times->pending);
    return !row || !times->of_ops || record(times, stream, &timed->end, error);
}

bool exec_cuda_times_step_ends(ExecCudaTimes *times, int32_t step, cudaStream_t stream,
                               GError **error) {
    return record(times, stream, &add(times, NULL, step)->end, error);
}

/* ---- settling ------------------------------------------------------------------------------- */

static bool has_ended(const Timed *timed, bool *ret_ended, GError **error) {
    cudaError_t status = cudaEventQuery(timed->end);
    *ret_ended = status != cudaErrorNotReady;
    if (!*ret_ended) {
        cudaGetLastError();
        return true;
    }
    return exec_cuda_ok(status, "cudaEventQuery", error);
}

static bool settle(ExecCudaTimes *times, Timed *timed, ExecPlay *play, GError **error) {
    int64_t end_ns;
    if (!time_of(times, timed->base, timed->end, &end_ns, error)) {
        return false;
    }
    if (timed->row) {
        timed->row->end_ns = end_ns;
        return time_of(times, timed->base, timed->start, &timed->row->start_ns, error);
    }
    add_base(times, g_steal_pointer(&timed->end), end_ns);
    exec_play_note_step_end(play, timed->step, end_ns);
    return true;
}

bool exec_cuda_times_settle(ExecCudaTimes *times, ExecPlay *play, GError **error) {
    Timed *timed;
    while ((timed = g_queue_peek_head(&times->pending))) {
        bool ended;
        if (!has_ended(timed, &ended, error)) {
            return false;
        }
        if (!ended) {
            return true;
        }
        g_queue_pop_head(&times->pending);
        bool ok = settle(times, timed, play, error);
        drop(times, timed);
        if (!ok) {
            return false;
        }
    }
    return true;
}
