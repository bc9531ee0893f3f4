#include "trace/import/steps.h"

#include <string.h>

#include "trace/import/repeats.h"

static bool begins_with(const char *name, guint length, const char *prefix) {
    return length >= strlen(prefix) && memcmp(name, prefix, strlen(prefix)) == 0;
}

bool steps_is_profiler(const char *name, guint length) {
    return begins_with(name, length, "ProfilerStep#");
}

bool steps_is_optimizer(const char *name, guint length) {
    return begins_with(name, length, "Optimizer.step#");
}

const char *steps_from_text(StepsFrom from) {
    switch (from) {
    case STEPS_UNKNOWN:
        return "nothing";
    case STEPS_OF_PROFILER:
        return "ProfilerStep#";
    case STEPS_OF_OPTIMIZER:
        return "the ends of Optimizer.step#";
    case STEPS_REPEATED:
        return "what repeats itself";
    }
    g_assert_not_reached();
}

/* The first event that is later than a time; the events are in order of time, or nearly so. */
static guint event_behind(const Snapshot *snapshot, int64_t time_us) {
    guint low = 0, high = snapshot->events->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (snapshot_event(snapshot, middle)->time_us <= time_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A boundary that adds no event to the one before is none: its step lies outside the window. */
static void add_end(GArray *ends, guint event) {
    if (ends->len == 0 || event > g_array_index(ends, guint, ends->len - 1)) {
        g_array_append_val(ends, event);
    }
}

/* From one begin to the next; the last step ends where its own annotation does. */
static void from_profiler(const Snapshot *snapshot, GArray *ends) {
    int64_t last_us = -1;
    for (guint i = 0; i < snapshot->annotations->len; i++) {
        const SnapshotAnnotation *annotation =
            &g_array_index(snapshot->annotations, SnapshotAnnotation, i);
        if (!steps_is_profiler(annotation->name, annotation->name_length)) {
            continue;
        }
        if (annotation->ends) {
            last_us = annotation->time_us;
        } else {
            add_end(ends, event_behind(snapshot, annotation->time_us));
            last_us = -1;
        }
    }
    if (last_us >= 0) {
        add_end(ends, event_behind(snapshot, last_us));
    }
}

/* What comes before the first end is no whole step: the network may be made in it. */
static void from_optimizer(const Snapshot *snapshot, GArray *ends) {
    for (guint i = 0; i < snapshot->annotations->len; i++) {
        const SnapshotAnnotation *annotation =
            &g_array_index(snapshot->annotations, SnapshotAnnotation, i);
        if (annotation->ends && steps_is_optimizer(annotation->name, annotation->name_length)) {
            add_end(ends, event_behind(snapshot, annotation->time_us));
        }
    }
}

/* Requests and frees of the host, in its order; what a stream completes comes when it comes. A step
 * gives back as much as it takes, which tells it from a network whose blocks are made one by one.
 */
static void from_repetition(const Snapshot *snapshot, GArray *ends) {
    g_autoptr(GArray) tokens = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GArray) events = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GArray) balance = g_array_new(FALSE, FALSE, sizeof(int64_t));
    int64_t asked = 0;
    g_array_append_val(balance, asked);
    for (guint i = 0; i < snapshot->events->len; i++) {
        const SnapshotEvent *event = snapshot_event(snapshot, i);
        if (event->action == SNAPSHOT_ALLOC || event->action == SNAPSHOT_FREE) {
            uint64_t mixed = (event->requested_bytes * 2 + (event->action == SNAPSHOT_FREE)) *
                             UINT64_C(0x9e3779b97f4a7c15); /* odd: no two sizes give the same */
            uint32_t token = (uint32_t)(mixed >> 32);
            g_array_append_val(tokens, token);
            g_array_append_val(events, i);
            asked += event->action == SNAPSHOT_ALLOC ? (int64_t)event->requested_bytes
                                                     : -(int64_t)event->requested_bytes;
            g_array_append_val(balance, asked);
        }
    }
    TraceRepeats repeats;
    if (!trace_repeats_find((const uint32_t *)(gpointer)tokens->data,
                            (const int64_t *)(gpointer)balance->data, tokens->len, &repeats)) {
        return;
    }
    for (guint i = 0; i <= repeats.n; i++) {
        guint place = repeats.begin + i * repeats.period;
        add_end(ends,
                place < events->len ? g_array_index(events, guint, place) : snapshot->events->len);
    }
}

SnapshotSteps *snapshot_steps_new(const Snapshot *snapshot) {
    static const struct {
        StepsFrom from;
        void (*find)(const Snapshot *snapshot, GArray *ends);
    } ways[] = {{STEPS_OF_PROFILER, from_profiler},
                {STEPS_OF_OPTIMIZER, from_optimizer},
                {STEPS_REPEATED, from_repetition}};
    SnapshotSteps *steps = g_new0(SnapshotSteps, 1);
    steps->ends = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = 0; i < G_N_ELEMENTS(ways) && steps->from == STEPS_UNKNOWN; i++) {
        g_array_set_size(steps->ends, 0);
        ways[i].find(snapshot, steps->ends);
        steps->from = steps->ends->len >= 2 ? ways[i].from : STEPS_UNKNOWN;
    }
    if (steps->from == STEPS_UNKNOWN) {
        g_array_set_size(steps->ends, 0);
    }
    return steps;
}

void snapshot_steps_free(SnapshotSteps *steps) {
    if (steps != NULL) {
        g_array_unref(steps->ends);
        g_free(steps);
    }
}

guint snapshot_n_steps(const SnapshotSteps *steps) {
    return steps->ends->len > 0 ? steps->ends->len - 1 : 0;
}
