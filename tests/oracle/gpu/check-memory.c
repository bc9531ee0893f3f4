/* tests/oracle/gpu/check-memory.c - predicted memory against PyTorch's own counters on a GPU.
 *
 * check-memory RECORD.jsonl...: files of record_memory.py. For each, the plan for its settings is
 * predicted on an H200 whose collectives take no time, as those of a fake process group do, and
 * compared with what PyTorch's allocator said at the end of each phase and at most within it:
 * allocated bytes within 0.5 %, reserved bytes within 2 %. What cuBLAS held as workspaces, which a
 * plan leaves out, is taken off PyTorch's numbers; the first step, in which they come to be, is
 * then not compared.
 * Prints the last step as a table and the worst of all steps; exits 0 when all is within, 1 when
 * not, 2 when a file cannot be read or expressed.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/oracle/predicted.h"
#include "tests/oracle/recording.h"

/* What the allocator rounds segments and blocks to. */
#define SEGMENT_BYTES (2u << 20)
#define BLOCK_BYTES   512u

typedef enum {
    START,
    FORWARD,
    BACKWARD,
    OPTIMIZER,
    N_PHASES
} Phase;

typedef enum {
    REQUESTED, /* before the allocator rounds */
    ALLOCATED,
    ACTIVE,
    RESERVED,
    N_COUNTERS
} Counter;

static const char *const phase_names[N_PHASES] = {"start", "forward", "backward", "optimizer"};

static const struct {
    const char *name;
    double tolerance; /* share; issue: allocated within 0.5 %, reserved within 2 % */
} counters[N_COUNTERS] = {[REQUESTED] = {"requested", 0.005},
                          [ALLOCATED] = {"allocated", 0.005},
                          [ACTIVE] = {"active", 0.02},
                          [RESERVED] = {"reserved", 0.02}};

/* What a phase ends with, and its most. */
typedef struct {
    double end[N_COUNTERS], peak[N_COUNTERS];
} Reading;

typedef struct {
    double off; /* relative, signed */
    gint64 step;
    Phase phase;
    bool peak;
} Worst;

/* ---- the prediction ------------------------------------------------------------------------- */

static Phase phase_of(const Trace *trace, const TraceInstruction *instruction) {
    const char *name = trace_name(trace->phases, instruction->phase, "");
    return g_str_equal(name, "forward")     ? FORWARD
           : g_str_equal(name, "optimizer") ? OPTIMIZER
           : g_str_equal(name, "setup")     ? START
                                            : BACKWARD; /* recomputation is part of it */
}

/* A record made without a GPU has added up requests, each rounded; the allocator also counts what
 * it does not split off a large block. */
static double allocated_after(const Reading *at, const TraceMemoryRow *row, uint64_t bytes,
                              bool sums_only) {
    double rounded = (double)((bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
    return sums_only ? at->end[ALLOCATED] + (row->delta > 0 ? rounded : -rounded)
                     : (double)row->allocated;
}

static void take_row(Reading *at, const TraceMemoryRow *row, uint64_t bytes, bool sums_only) {
    double requested = (row->delta > 0 ? 1.0 : -1.0) * (double)bytes;
    double values[N_COUNTERS] = {[REQUESTED] = at->end[REQUESTED] + requested,
                                 [ALLOCATED] = allocated_after(at, row, bytes, sums_only),
                                 [ACTIVE] = (double)row->active,
                                 [RESERVED] = (double)row->reserved};
    for (unsigned c = 0; c < N_COUNTERS; c++) {
        at->end[c] = values[c];
        at->peak[c] = fmax(at->peak[c], values[c]);
    }
}

/* Phase by phase of each step, N_PHASES a step; what a phase begins with is what the one before it
 * ended with. */
static Reading *readings_of(const Trace *trace, uint32_t steps, bool sums_only) {
    Reading *readings = g_new0(Reading, (gsize)steps * N_PHASES);
    Reading now = {0};
    guint i = 0;
    for (uint32_t step = 0; step < steps; step++) {
        for (unsigned phase = START; phase < N_PHASES; phase++) {
            memcpy(now.peak, now.end, sizeof now.peak);
            for (; i < trace->memory->len; i++) {
                const TraceMemoryRow *row = trace_memory(trace, i);
                const TraceInstruction *instruction = trace_instruction(
                    trace, trace_role_of_rank(trace, row->rank), row->instruction);
                Phase of = row->step < 0 ? START : phase_of(trace, instruction);
                if (row->step > (int32_t)step || (row->step == (int32_t)step && of > phase)) {
                    break;
                }
                take_row(&now, row, instruction->bytes, sums_only);
            }
            readings[step * N_PHASES + phase] = now;
        }
    }
    return readings;
}

/* ---- PyTorch's ------------------------------------------------------------------------------ */

static bool has_counter(JsonObject *summary, Counter counter) {
    JsonObject *start = json_object_get_object_member(
        json_object_get_object_member(summary, "phases"), phase_names[START]);
    return json_object_has_member(start, counters[counter].name);
}

static double workspace_bytes(JsonObject *summary, Counter counter) {
    double bytes = json_object_get_double_member(summary, "workspace_bytes");
    return counter == RESERVED ? ceil(bytes / SEGMENT_BYTES) * SEGMENT_BYTES : bytes;
}

static double recorded(JsonObject *summary, Phase phase, Counter counter, bool peak) {
    JsonObject *phases = json_object_get_object_member(summary, "phases");
    JsonObject *reading = json_object_get_object_member(phases, phase_names[phase]);
    g_autofree char *key = g_strconcat(counters[counter].name, peak ? "_peak" : "", NULL);
    return json_object_get_double_member(reading, key) - workspace_bytes(summary, counter);
}

/* ---- comparing ------------------------------------------------------------------------------ */

static void print_step(JsonObject *summary, const Reading *readings) {
    printf("  step %" G_GINT64_FORMAT " (MB, 1e6 bytes)",
           json_object_get_int_member(summary, "step"));
    for (unsigned c = 0; c < N_COUNTERS; c++) {
        if (has_counter(summary, c)) {
            printf("  %9s      plan", counters[c].name);
        }
    }
    for (unsigned row = 0; row < 2 * N_PHASES; row++) {
        bool peak = row % 2;
        unsigned phase = row / 2;
        if (phase == START && peak) {
            continue;
        }
        printf("\n    %-9s %-13s", phase_names[phase], peak ? "at most" : "at its end");
        for (unsigned c = 0; c < N_COUNTERS; c++) {
            if (has_counter(summary, c)) {
                double ours = peak ? readings[phase].peak[c] : readings[phase].end[c];
                printf("  %9.3f %9.3f", recorded(summary, phase, c, peak) / 1e6, ours / 1e6);
            }
        }
    }
    printf("\n");
}

static void judge(Worst *worst, JsonObject *summary, const Reading *reading, Phase phase,
                  Counter counter, bool peak) {
    double theirs = recorded(summary, phase, counter, peak);
    double ours = peak ? reading->peak[counter] : reading->end[counter];
    double off = theirs > 0 ? ours / theirs - 1 : ours > 0 ? INFINITY : 0;
    if (fabs(off) > fabs(worst->off)) {
        *worst = (Worst){off, json_object_get_int_member(summary, "step"), phase, peak};
    }
}

/* 1 when the counter is further off than it may be. */
static int compare_counter(const Recording *recording, const Reading *readings, Counter counter) {
    Worst worst = {0};
    for (unsigned i = 0; i < recording->summaries->len; i++) {
        JsonObject *summary = recording->summaries->pdata[i];
        if (!has_counter(summary, counter) || (i == 0 && workspace_bytes(summary, counter) > 0)) {
            continue;
        }
        for (unsigned phase = START; phase < N_PHASES; phase++) {
            const Reading *reading = &readings[i * N_PHASES + phase];
            judge(&worst, summary, reading, phase, counter, false);
            if (phase != START) { /* which has no most of its own */
                judge(&worst, summary, reading, phase, counter, true);
            }
        }
    }
    bool within = fabs(worst.off) <= counters[counter].tolerance;
    printf("  %-9s %s: off by %+.3f %% at most (step %" G_GINT64_FORMAT ", %s%s); %.1f %% is "
           "allowed\n",
           counters[counter].name, within ? "holds" : "MISSES", worst.off * 100, worst.step,
           phase_names[worst.phase], worst.peak ? ", at most" : ", at its end",
           counters[counter].tolerance * 100);
    return !within;
}

/* What the driver counts as used beside the allocator's segments: context, libraries. */
static void print_outside(JsonObject *summary) {
    JsonObject *end = json_object_get_object_member(
        json_object_get_object_member(summary, "phases"), phase_names[OPTIMIZER]);
    if (json_object_has_member(end, "device_used")) {
        gint64 outside = json_object_get_int_member(end, "device_used") -
                         json_object_get_int_member(end, "reserved");
        printf("  beside the allocator the driver counts %.1f MB\n", (double)outside / 1e6);
    }
}

static const char *text_at(JsonObject *object, const char *key) {
    return json_object_has_member(object, key) ? json_object_get_string_member(object, key) : "";
}

static bool is_memory_record(const Recording *recording) {
    JsonObject *summary = recording->summaries->pdata[0];
    return json_object_has_member(summary, "phases") &&
           json_object_has_member(recording->header, "machine");
}

static int check_file(const char *path) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Recording) recording = recording_read(path, &error);
    if (recording && !is_memory_record(recording)) {
        fprintf(stderr,
                "check-memory: %s: no record of memory by phase; make one with "
                "record_memory.py\n",
                path);
        return 2;
    }
    g_autoptr(Plan) plan = recording ? recording_plan(recording, RECORDING_OF_GPU, &error) : NULL;
    uint32_t steps = recording ? recording->summaries->len : 0;
    g_autoptr(Trace) trace = plan ? oracle_predicted(plan, 0, steps, 0, NULL, &error) : NULL;
    if (!trace) {
        fprintf(stderr, "check-memory: %s\n", error->message);
        return 2;
    }
    JsonObject *machine = json_object_get_object_member(recording->header, "machine");
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    g_autofree Reading *readings =
        readings_of(trace, steps, g_str_equal(text_at(machine, "device"), "cpu"));
    printf("%s: %s %s on %u ranks (%s group); %s, torch %s, %s\n", path, text_at(options, "preset"),
           text_at(options, "mode"), plan->world, text_at(options, "group"),
           text_at(machine, "gpu"), text_at(machine, "torch"), text_at(machine, "date"));
    JsonObject *last = recording->summaries->pdata[steps - 1];
    print_step(last, &readings[(steps - 1) * N_PHASES]);
    print_outside(last);
    int misses = 0;
    for (unsigned c = 0; c < N_COUNTERS; c++) {
        if (has_counter(last, c)) {
            misses |= compare_counter(recording, readings, c);
        }
    }
    return misses;
}

int main(int argc, char **argv) {
    return recording_check_all("check-memory", argc, argv, check_file);
}
