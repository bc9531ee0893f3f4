/* tests/oracle/check-peaks.c - predicted peaks against PyTorch's own caching allocator.
 *
 * check-peaks RECORD.jsonl EARLY [LATE]: RECORD has events. EARLY and LATE hold a line a step, of
 * what PyTorch's allocator made of the recorded stream of allocations: `= stats`, and names with
 * the bytes at the step's end and at most within it. In LATE a block used on a second stream
 * came back only where the step ended, in EARLY at once: what a GPU does lies between. Without
 * LATE the streams are the same and so must the peaks be, to the byte. What is predicted is the
 * program that was replayed: shards alone to begin with, a synchronized device where a step ends.
 * Memory is predicted of the rank that was recorded.
 * Exits 0 when they agree, 1 with what differs, 2 when a file cannot be read or expressed.
 */
#include <stdio.h>
#include <string.h>

#include "tests/oracle/predicted.h"
#include "tests/oracle/recording.h"

enum {
    ALLOCATED,
    ACTIVE,
    RESERVED,
    N_COUNTERS
};

static const char *const names[N_COUNTERS] = {"allocated", "active", "reserved"};

typedef struct {
    uint64_t most[N_COUNTERS];
} Peaks;

static bool read_line(const char *line, Peaks *ret_peaks) {
    for (unsigned c = 0; c < N_COUNTERS; c++) {
        const char *at = strstr(line, names[c]);
        if (!at ||
            sscanf(at + strlen(names[c]), " %*u %" G_GUINT64_FORMAT, &ret_peaks->most[c]) != 1) {
            return false;
        }
    }
    return true;
}

/* NULL unless the file has a line for each step. */
static Peaks *read_stats(const char *path, uint32_t steps) {
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(path, &text, NULL, &error)) {
        fprintf(stderr, "check-peaks: %s\n", error->message);
        return NULL;
    }
    g_autofree Peaks *peaks = g_new0(Peaks, steps);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    uint32_t n = 0;
    for (unsigned i = 0; lines[i] && n < steps; i++) {
        if (g_str_has_prefix(lines[i], "= stats ") && read_line(lines[i], &peaks[n])) {
            n++;
        }
    }
    if (n < steps) {
        fprintf(stderr, "check-peaks: %s: %u lines of stats, one a step is needed: %u\n", path, n,
                steps);
        return NULL;
    }
    return g_steal_pointer(&peaks);
}

static Peaks after(const TraceMemoryRow *row) {
    return (Peaks){{row->allocated, row->active, row->reserved}};
}

/* Of one rank, for a trace has a rank of each stage. Construction counts by what it leaves, as in
 * the recordings. */
static Peaks *peaks_of(const Trace *trace, uint32_t rank, uint32_t steps) {
    Peaks *peaks = g_new0(Peaks, steps);
    Peaks now = {0};
    uint32_t begun = 0;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank != rank || row->step >= (int32_t)steps) {
            continue;
        }
        while ((int32_t)begun <= row->step) {
            peaks[begun++] = now; /* what lives at its start */
        }
        now = after(row);
        for (unsigned c = 0; begun > 0 && c < N_COUNTERS; c++) {
            peaks[begun - 1].most[c] = MAX(peaks[begun - 1].most[c], now.most[c]);
        }
    }
    while (begun < steps) {
        peaks[begun++] = now;
    }
    return peaks;
}

static int compare(const char *path, uint32_t steps, const Peaks *ours, const Peaks *early,
                   const Peaks *late) {
    int differ = 0;
    for (uint32_t step = 0; step < steps; step++) {
        for (unsigned c = 0; c < N_COUNTERS; c++) {
            uint64_t plan = ours[step].most[c], low = early[step].most[c],
                     high = late[step].most[c];
            if (plan < MIN(low, high) || plan > MAX(low, high)) {
                printf("%s: step %u: %s: PyTorch's allocator at most %" G_GUINT64_FORMAT
                       " to %" G_GUINT64_FORMAT " bytes, predicted %" G_GUINT64_FORMAT "\n",
                       path, step, names[c], low, high, plan);
                differ = 1;
            }
        }
    }
    return differ;
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: check-peaks RECORD.jsonl EARLY [LATE]\n");
        return 2;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(Recording) recording = recording_read(argv[1], &error);
    g_autoptr(Plan) plan =
        recording ? recording_plan(recording, RECORDING_OF_ALLOCATOR, &error) : NULL;
    uint32_t steps = recording ? recording->summaries->len : 0;
    uint32_t rank = plan ? recording_rank(recording, plan) : 0;
    g_autoptr(Trace) trace =
        plan ? oracle_predicted(plan, rank, steps, ORACLE_MEMORY_BYTES, NULL, &error) : NULL;
    if (!trace) {
        fprintf(stderr, "check-peaks: %s\n", error->message);
        return 2;
    }
    g_autofree Peaks *early = read_stats(argv[2], steps);
    g_autofree Peaks *late = argc > 3 ? read_stats(argv[3], steps) : NULL;
    if (!early || (argc > 3 && !late)) {
        return 2;
    }
    g_autofree Peaks *ours = peaks_of(trace, rank, steps);
    int differ = compare(argv[1], steps, ours, early, late ? late : early);
    if (!differ) {
        printf("%s: peaks agree in %u steps\n", argv[1], steps);
    }
    return differ;
}
