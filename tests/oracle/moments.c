/* tests/oracle/moments.c - a predicted play as a script for PyTorch's own caching allocator.
 *
 * moments RECORD.jsonl: for the plan of the recording's settings, everything that the allocator is
 * asked in the play that check-peaks predicts, and before each request which events have passed
 * since the one before, as the simulated machine has it. What made ../memory/allocator plays the
 * script and so says what PyTorch's allocator does at the same moments: its lines of statistics
 * must equal the prediction to the byte (`check-peaks RECORD STATS`), whatever the two extremes of
 * events are. That the requests themselves are PyTorch's is what `check` says.
 * Exits 0, or 2 when the file cannot be read or expressed.
 */
#include <stdio.h>

#include "memory/caching.h"
#include "memory/virtual.h"
#include "plan/player.h"
#include "tests/oracle/predicted.h"
#include "tests/oracle/recording.h"

/* Plays the plan's requests again over an allocator that is given the answers, so that it is known
 * which stream each was of. */
typedef struct {
    MemoryAnswers *answers;
    MemoryCaching *caching;
    MemoryBlock **blocks; /* by buffer */
} Moments;

static MemoryEvent event_record(gpointer self, uint32_t stream) {
    return stream;
}

static bool event_query(gpointer self, MemoryEvent stream) {
    Moments *moments = self;
    bool passed = false;
    memory_answers_next(moments->answers, &passed);
    if (passed) {
        printf("complete %" G_GUINT64_FORMAT " 1\n", stream);
    }
    return passed;
}

/* The allocator that plays the script waits of its own accord. */
static void event_sync(gpointer self, MemoryEvent event) {
}

static void stream_sync(gpointer self, uint32_t stream) {
}

static const MemoryVirtualHooks hooks = {event_record, event_query, event_sync, stream_sync, NULL};

static PlanAnswer alloc(gpointer self, const PlanPosition *at, uint32_t buffer, GError **error) {
    Moments *moments = self;
    const PlanBuffer *b = &at->role->buffers[buffer];
    bool fits = memory_caching_alloc(moments->caching, b->lane, b->bytes, &moments->blocks[buffer]);
    printf("malloc %u %" G_GUINT64_FORMAT " %u\n", buffer, b->bytes, b->lane);
    return fits ? PLAN_DONE : PLAN_STOPPED;
}

static PlanAnswer release(gpointer self, const PlanPosition *at, uint32_t buffer, GError **error) {
    Moments *moments = self;
    memory_caching_drop(moments->caching, moments->blocks[buffer]);
    moments->blocks[buffer] = NULL;
    printf("free %u\n", buffer);
    return PLAN_DONE;
}

static PlanAnswer mark(gpointer self, const PlanPosition *at, uint32_t buffer, uint32_t lane,
                       GError **error) {
    Moments *moments = self;
    memory_caching_mark(moments->caching, moments->blocks[buffer], lane);
    printf("record %u %u\n", buffer, lane);
    return PLAN_DONE;
}

/* Construction counts by what it leaves. */
static PlanAnswer section_ends(gpointer self, const PlanPosition *at, GError **error) {
    printf(at->step < 0 ? "reset_peak\n" : "stats\nreset_peak\n");
    return PLAN_DONE;
}

static bool write_script(const Plan *plan, uint32_t rank, uint32_t steps, MemoryAnswers *answers,
                         GError **error) {
    const PlanDevice device = {.name = "moments",
                               .section_ends = section_ends,
                               .alloc = alloc,
                               .free = release,
                               .mark = mark};
    Moments moments = {.answers = answers};
    g_autoptr(MemoryVirtual) segments =
        memory_virtual_new(ORACLE_MEMORY_BYTES, ORACLE_MEMORY_BYTES, &hooks, &moments);
    moments.caching = memory_caching_new(NULL, &memory_virtual_source, segments, error);
    const PlanRole *role = &plan->roles[plan_role_of_rank(plan, rank)];
    g_autofree MemoryBlock **blocks = g_new0(MemoryBlock *, role->n_buffers);
    moments.blocks = blocks;
    g_autoptr(PlanPlayer) player =
        plan_player_new(plan, plan_role_of_rank(plan, rank), steps, &device, &moments);
    printf("set memory %" G_GUINT64_FORMAT "\n", ORACLE_MEMORY_BYTES);
    bool played = moments.caching && plan_player_run(player, error) != PLAN_FAILED;
    memory_caching_free(moments.caching);
    return played;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: moments RECORD.jsonl\n");
        return 2;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(Recording) recording = recording_read(argv[1], &error);
    g_autoptr(Plan) plan =
        recording ? recording_plan(recording, RECORDING_OF_ALLOCATOR, &error) : NULL;
    uint32_t steps = recording ? recording->summaries->len : 0;
    g_autoptr(MemoryAnswers) answers = memory_answers_new();
    uint32_t rank = plan ? recording_rank(recording, plan) : 0;
    g_autoptr(Trace) trace =
        plan ? oracle_predicted(plan, rank, steps, ORACLE_MEMORY_BYTES, answers, &error) : NULL;
    if (!trace || !write_script(plan, rank, steps, answers, &error)) {
        fprintf(stderr, "moments: %s\n", error->message);
        return 2;
    }
    return 0;
}
