/* exec/play-save.c - a rank's part of the weights, from wherever it lies into the file of all. */
#include "exec/device.h"
#include "exec/places.h"
#include "exec/play.h"

enum {
    SAVE_BYTES = 1 << 24 /* fetched at a time */
};

/* n elements of what a rank has of a parameter, from one of its own on. */
static bool put(const ExecPlay *play, ExecWeightsFile *file, uint32_t parameter, uint64_t own,
                uint64_t n, const char *numbers, PlanDtype dtype, GError **error) {
    const ExecContext *c = &play->context;
    for (uint64_t at = 0, from, run; at < n; at += run) {
        run = exec_place_run(c->plan, parameter, c->comm->rank, own + at, n - at, &from);
        if (!exec_weights_put(file, parameter, from, run, numbers + at * plan_dtype_bytes(dtype),
                              dtype, error)) {
            return false;
        }
    }
    return true;
}

/* What waits on the host needs no fetching. */
static bool save_slot(ExecPlay *play, const ExecPlace *place, ExecWeightsFile *file,
                      GError **error) {
    ExecSlots *slots = play->context.slots;
    PlanDtype dtype = exec_slots_dtype(slots, place->slot);
    const char *slot = exec_slots_at(slots, place->slot, place->first + place->count, error);
    return slot && put(play, file, place->parameter, place->from, place->count,
                       slot + place->first * plan_dtype_bytes(dtype), dtype, error);
}

static bool save_place(ExecPlay *play, const ExecPlace *place, gpointer block,
                       ExecWeightsFile *file, GError **error) {
    if (place->slot != PLAN_NONE) {
        return save_slot(play, place, file, error);
    }
    PlanDtype dtype = (PlanDtype)play->context.role->buffers[place->buffer].dtype;
    uint64_t size = plan_dtype_bytes(dtype), most = SAVE_BYTES / size;
    const char *from = (char *)exec_play_pointer(play, place->buffer) + place->first * size;
    for (uint64_t at = 0, n; at < place->count; at += n) {
        n = MIN(most, place->count - at);
        if (!play->device->fetch(play, block, from + at * size, n * size, error) ||
            !put(play, file, place->parameter, place->from + at, n, block, dtype, error)) {
            return false;
        }
    }
    return true;
}

bool exec_play_save(ExecPlay *play, ExecWeightsFile *file, ExecWatchdog *watchdog, GError **error) {
    const ExecContext *c = &play->context;
    g_autoptr(GArray) places = exec_places_to_save(c->plan, c->role, c->comm->rank);
    g_autofree gpointer block = g_malloc(SAVE_BYTES);
    guint next = 0;
    for (uint32_t p = 0; p < c->plan->n_parameters; p++) {
        const ExecPlace *place = &g_array_index(places, ExecPlace, next);
        bool mine = next < places->len && place->parameter == p;
        if ((mine && !save_place(play, place, block, file, error)) ||
            !c->comm->barrier(c->comm->self, error)) {
            return false;
        }
        next += mine;
        exec_watchdog_beat(watchdog);
    }
    g_assert(next == places->len);
    return true;
}
