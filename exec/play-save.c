/* exec/play-save.c - a rank's part of the weights, from wherever it lies into the file of all. */
#include "exec/device.h"
#include "exec/play.h"
#include "exec/slices.h"

enum {
    SAVE_BYTES = 1 << 24 /* fetched at a time */
};

/* n elements of what a rank has of a parameter, from one of its own on. */
static bool put(const ExecPlay *play, ExecWeightsFile *file, uint32_t parameter, uint64_t own,
                uint64_t n, const char *numbers, PlanDtype dtype, GError **error) {
    const ExecContext *c = &play->context;
    for (uint64_t at = 0, from, run; at < n; at += run) {
        run = exec_slice_run(c->plan, parameter, c->comm->rank, own + at, n - at, &from);
        if (!exec_weights_put(file, parameter, from, run, numbers + at * plan_dtype_bytes(dtype),
                              dtype, error)) {
            return false;
        }
    }
    return true;
}

/* What waits on the host needs no fetching. */
static bool save_slot(ExecPlay *play, const ExecSlice *slice, ExecWeightsFile *file,
                      GError **error) {
    ExecSlots *slots = play->context.slots;
    PlanDtype dtype = exec_slots_dtype(slots, slice->slot);
    const char *slot = exec_slots_at(slots, slice->slot, slice->first + slice->count, error);
    return slot && put(play, file, slice->parameter, slice->from, slice->count,
                       slot + slice->first * plan_dtype_bytes(dtype), dtype, error);
}

static bool save_slice(ExecPlay *play, const ExecSlice *slice, gpointer block,
                       ExecWeightsFile *file, GError **error) {
    if (slice->slot != PLAN_NONE) {
        return save_slot(play, slice, file, error);
    }
    PlanDtype dtype = (PlanDtype)play->context.role->buffers[slice->buffer].dtype;
    uint64_t size = plan_dtype_bytes(dtype), most = SAVE_BYTES / size;
    const char *from = (char *)exec_play_pointer(play, slice->buffer) + slice->first * size;
    for (uint64_t at = 0, n; at < slice->count; at += n) {
        n = MIN(most, slice->count - at);
        if (!play->device->fetch(play, block, from + at * size, n * size, error) ||
            !put(play, file, slice->parameter, slice->from + at, n, block, dtype, error)) {
            return false;
        }
    }
    return true;
}

bool exec_play_save(ExecPlay *play, ExecWeightsFile *file, ExecWatchdog *watchdog, GError **error) {
    const ExecContext *c = &play->context;
    g_autoptr(GArray) slices = exec_slices_to_save(c->plan, c->role, c->comm->rank);
    g_autofree gpointer block = g_malloc(SAVE_BYTES);
    guint next = 0;
    for (uint32_t p = 0; p < c->plan->n_parameters; p++) {
        const ExecSlice *slice = &g_array_index(slices, ExecSlice, next);
        bool mine = next < slices->len && slice->parameter == p;
        if ((mine && !save_slice(play, slice, block, file, error)) ||
            !c->comm->barrier(c->comm->self, error)) {
            return false;
        }
        next += mine;
        exec_watchdog_beat(watchdog);
    }
    g_assert(next == slices->len);
    return true;
}
