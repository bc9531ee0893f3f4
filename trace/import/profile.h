/* trace/import/profile.h - what a GPU and its host did, from torch.profiler's JSON of a real run.
 *
 * torch.profiler's export_chrome_trace() writes Chrome's JSON with, of CUDA: kernels by stream
 * (NCCL's among them), copies and fills, the host's calls into CUDA, whose "correlation" says which
 * of them launched what, annotations of the host (ProfilerStep#N, Optimizer.step#...), and if asked
 * the allocator's totals ("[memory]"). All else in it (operators, Python's functions) is passed
 * over.
 *
 * Steps are told as of a snapshot (trace/import/steps.h), on the host: a kernel belongs to the step
 * within which it was launched. Rules of a step's figures:
 *   time      from the end of the last computing kernel of the step before to the end of its own
 *             last, as trace/summary.h has it. Of the first recorded step nothing is before, so it
 *             is left out, unless it is the only one: then from the begin of its first kernel
 *   compute   the time in which any kernel runs that is neither NCCL's nor a copy or fill
 *   communication   the time in which a kernel of NCCL's runs, and the part of it in which nothing
 *             computes (exposed)
 *   copies    the time in which bytes move to or from the host, or between places of the device
 *   host      the sum of its calls into CUDA, and their number; those that wait for the device
 *             apart
 *
 * Owns: its events and names. Cost: O(n log n) in the events, and a walk over the text's bytes.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/import/steps.h"

typedef enum {
    PROFILE_MATMUL,
    PROFILE_ATTENTION,
    PROFILE_OTHER, /* kernels; these three compute */
    PROFILE_NCCL,
    PROFILE_COPY, /* and fills */
    PROFILE_N_CLASSES
} ProfileClass;

typedef struct {
    uint32_t name; /* index into names */
    uint8_t what;  /* ProfileClass */
    int64_t correlation;
    int64_t launched_ns; /* by the host; its own start where no call is recorded */
    int64_t start_ns, end_ns;
} ProfileKernel;

typedef struct {
    int64_t correlation, start_ns, end_ns;
    bool waits; /* for the device: its name has "Synchronize" in it */
} ProfileCall;

typedef struct {
    uint32_t name;
    int64_t start_ns, end_ns;
} ProfileAnnotation;

typedef struct {
    GPtrArray *names;    /* char * */
    GArray *kernels;     /* ProfileKernel, by launch */
    GArray *calls;       /* ProfileCall, by start */
    GArray *annotations; /* ProfileAnnotation, by start */
    guint n_events;      /* of the file */
    int64_t device;      /* whose kernels these are */
    int64_t rank, world; /* -1: not told */
    bool has_memory;
    uint64_t allocated, reserved; /* the most that was told */
} Profile;

/* The device that is asked for; -1: the one with most kernels. NULL with error: it is no such JSON.
 */
Profile *profile_read(const char *text, gsize length, int device, const char *file_name,
                      GError **error);
void profile_free(Profile *profile); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Profile, profile_free)

typedef struct {
    int64_t time_ns; /* -1: nothing says where it begins */
    int64_t compute_ns, communication_ns, exposed_ns;
    int64_t class_ns[PROFILE_N_CLASSES]; /* sums of durations */
    int64_t calls_ns, waits_ns;
    guint n_kernels, n_calls; /* kernels that compute; calls that do not wait */
} ProfileStep;

/* The whole steps: ProfileStep. Empty: the profile does not tell them. g_array_unref(). */
GArray *profile_steps(const Profile *profile, StepsFrom *ret_from);
