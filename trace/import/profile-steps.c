/* trace/import/profile-steps.c - a profile's steps, and what each is made of (profile.h). */
#include <string.h>

#include "trace/import/profile.h"
#include "trace/import/repeats.h"
#include "trace/intervals.h"

static const ProfileKernel *kernel_at(const Profile *profile, guint i) {
    return &g_array_index(profile->kernels, ProfileKernel, i);
}

static bool computes(const ProfileKernel *kernel) {
    return kernel->what != PROFILE_NCCL && kernel->what != PROFILE_COPY;
}

/* ---- where steps end, on the host ------------------------------------------------------------ */

static void add_bound(GArray *bounds, int64_t at_ns) {
    if (bounds->len == 0 || at_ns > g_array_index(bounds, int64_t, bounds->len - 1)) {
        g_array_append_val(bounds, at_ns);
    }
}

static const char *annotation_name(const Profile *profile, const ProfileAnnotation *annotation) {
    return profile->names->pdata[annotation->name];
}

static void from_profiler(const Profile *profile, GArray *bounds) {
    const ProfileAnnotation *last = NULL;
    for (guint i = 0; i < profile->annotations->len; i++) {
        const ProfileAnnotation *annotation =
            &g_array_index(profile->annotations, ProfileAnnotation, i);
        const char *name = annotation_name(profile, annotation);
        if (steps_is_profiler(name, (guint)strlen(name))) {
            add_bound(bounds, annotation->start_ns);
            last = annotation;
        }
    }
    if (last != NULL) {
        add_bound(bounds, last->end_ns);
    }
}

static void from_optimizer(const Profile *profile, GArray *bounds) {
    for (guint i = 0; i < profile->annotations->len; i++) {
        const ProfileAnnotation *annotation =
            &g_array_index(profile->annotations, ProfileAnnotation, i);
        const char *name = annotation_name(profile, annotation);
        if (steps_is_optimizer(name, (guint)strlen(name))) {
            add_bound(bounds, annotation->end_ns);
        }
    }
}

/* The same kernels in the order in which they were launched. */
static void from_repetition(const Profile *profile, GArray *bounds) {
    g_autoptr(GArray) names = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = 0; i < profile->kernels->len; i++) {
        if (computes(kernel_at(profile, i))) {
            g_array_append_val(names, kernel_at(profile, i)->name);
            g_array_append_val(places, i);
        }
    }
    TraceRepeats repeats;
    if (!trace_repeats_find((const uint32_t *)(gpointer)names->data, NULL, names->len, &repeats)) {
        return;
    }
    for (guint i = 0; i <= repeats.n; i++) {
        guint token = repeats.begin + i * repeats.period;
        guint last = g_array_index(places, guint, places->len - 1);
        add_bound(bounds, token < places->len
                              ? kernel_at(profile, g_array_index(places, guint, token))->launched_ns
                              : kernel_at(profile, last)->launched_ns + 1);
    }
}

/* ---- what a step is made of ------------------------------------------------------------------ */

static int64_t covered(GArray *intervals) {
    trace_intervals_unite(intervals);
    return trace_intervals_covered(intervals, INT64_MIN / 4, INT64_MAX / 4);
}

static int64_t exposed_of(const GArray *nccl, const GArray *compute) {
    int64_t exposed_ns = 0;
    for (guint i = 0; i < nccl->len; i++) {
        const TraceInterval *interval = &g_array_index(nccl, TraceInterval, i);
        exposed_ns += interval->end_ns - interval->start_ns -
                      trace_intervals_covered(compute, interval->start_ns, interval->end_ns);
    }
    return exposed_ns;
}

/* The first kernel that is launched at a time or later; they are in that order. */
static guint first_kernel(const Profile *profile, int64_t at_ns) {
    guint low = 0, high = profile->kernels->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (kernel_at(profile, middle)->launched_ns < at_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The latest end of what computes, of kernels begin to end; INT64_MIN: nothing does. */
static int64_t last_end(const Profile *profile, guint begin, guint end) {
    int64_t last_ns = INT64_MIN;
    for (guint i = begin; i < end; i++) {
        const ProfileKernel *kernel = kernel_at(profile, i);
        last_ns = computes(kernel) ? MAX(last_ns, kernel->end_ns) : last_ns;
    }
    return last_ns;
}

static void add_kernels(const Profile *profile, const GArray *compute, guint begin, guint end,
                        ProfileStep *step) {
    g_autoptr(GArray) own = trace_intervals_new();
    g_autoptr(GArray) nccl = trace_intervals_new();
    for (guint i = begin; i < end; i++) {
        const ProfileKernel *kernel = kernel_at(profile, i);
        step->class_ns[kernel->what] += kernel->end_ns - kernel->start_ns;
        step->n_kernels += computes(kernel);
        if (kernel->what != PROFILE_COPY) {
            trace_intervals_add(kernel->what == PROFILE_NCCL ? nccl : own, kernel->start_ns,
                                kernel->end_ns);
        }
    }
    step->compute_ns = covered(own);
    step->communication_ns = covered(nccl);
    step->exposed_ns = exposed_of(nccl, compute);
}

/* Those that begin within a step. *next: the first that begins later; they are in that order. */
static void add_calls(const Profile *profile, int64_t begin_ns, int64_t end_ns, guint *next,
                      ProfileStep *step) {
    for (; *next < profile->calls->len; (*next)++) {
        const ProfileCall *call = &g_array_index(profile->calls, ProfileCall, *next);
        if (call->start_ns >= end_ns) {
            return;
        }
        if (call->start_ns >= begin_ns) {
            *(call->waits ? &step->waits_ns : &step->calls_ns) += call->end_ns - call->start_ns;
            step->n_calls += !call->waits;
        }
    }
}

static GArray *compute_of(const Profile *profile) {
    GArray *compute = trace_intervals_new();
    for (guint i = 0; i < profile->kernels->len; i++) {
        const ProfileKernel *kernel = kernel_at(profile, i);
        if (computes(kernel)) {
            trace_intervals_add(compute, kernel->start_ns, kernel->end_ns);
        }
    }
    trace_intervals_unite(compute);
    return compute;
}

static int64_t first_start(const Profile *profile, guint begin, guint end) {
    int64_t first_ns = INT64_MAX;
    for (guint i = begin; i < end; i++) {
        first_ns = MIN(first_ns, kernel_at(profile, i)->start_ns);
    }
    return first_ns;
}

static GArray *steps_between(const Profile *profile, const GArray *bounds) {
    GArray *steps = g_array_new(FALSE, FALSE, sizeof(ProfileStep));
    g_autoptr(GArray) compute = compute_of(profile);
    guint end = bounds->len > 0 ? first_kernel(profile, g_array_index(bounds, int64_t, 0)) : 0;
    guint next_call = 0;
    int64_t before_ns = last_end(profile, 0, end); /* of all steps before */
    for (guint i = 0; i + 1 < bounds->len; i++) {
        int64_t begin_ns = g_array_index(bounds, int64_t, i);
        int64_t end_ns = g_array_index(bounds, int64_t, i + 1);
        guint begin = end;
        end = first_kernel(profile, end_ns);
        ProfileStep step = {.time_ns = -1};
        add_kernels(profile, compute, begin, end, &step);
        add_calls(profile, begin_ns, end_ns, &next_call, &step);
        int64_t own_ns = last_end(profile, begin, end);
        if (own_ns == INT64_MIN) {
            step.time_ns = profile->kernels->len > 0 ? -1 : end_ns - begin_ns; /* the host's */
        } else if (before_ns != INT64_MIN) {
            step.time_ns = MAX(0, own_ns - before_ns);
        } else if (bounds->len == 2) {
            step.time_ns = own_ns - first_start(profile, begin, end);
        }
        before_ns = MAX(before_ns, own_ns);
        g_array_append_val(steps, step);
    }
    return steps;
}

GArray *profile_steps(const Profile *profile, StepsFrom *ret_from) {
    static const struct {
        StepsFrom from;
        void (*find)(const Profile *profile, GArray *bounds);
    } ways[] = {{STEPS_OF_PROFILER, from_profiler},
                {STEPS_OF_OPTIMIZER, from_optimizer},
                {STEPS_REPEATED, from_repetition}};
    g_autoptr(GArray) bounds = g_array_new(FALSE, FALSE, sizeof(int64_t));
    *ret_from = STEPS_UNKNOWN;
    for (guint i = 0; i < G_N_ELEMENTS(ways) && *ret_from == STEPS_UNKNOWN; i++) {
        g_array_set_size(bounds, 0);
        ways[i].find(profile, bounds);
        *ret_from = bounds->len >= 2 ? ways[i].from : STEPS_UNKNOWN;
    }
    if (*ret_from == STEPS_UNKNOWN) {
        g_array_set_size(bounds, 0);
    }
    return steps_between(profile, bounds);
}
