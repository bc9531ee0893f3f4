/* exec/play.h - the play of one rank, as far as it is the same on every device.
 *
 * It has the caching allocator over the device's segments, the ledger of who holds what, a row of
 * each change of memory, a row of each op, whose times the device fills in, losses, and when each
 * step ended.
 *
 * A device's own structure has an ExecPlay as its first member, so that exec_play_alloc(),
 * _release() and _mark() can stand in its table of instructions directly.
 *
 * Owns: allocator, ledger, rows. Borrows: plan, comm and what the options name. Threads: the
 * host's. A lane may write the times of its op's row, a loss and the end of a step.
 */
#pragma once

#include "exec/pace.h"
#include "exec/task.h"
#include "exec/watch/watchdog.h"
#include "memory/caching.h"
#include "memory/ledger.h"
#include "plan/player.h"
#include "trace/ended.h"

typedef struct _ExecDevice ExecDevice;

#define EXEC_PLAY_NO_LIMIT                                                                         \
    (G_MAXINT64 / 4) /* more bytes than there are, and sums do not overflow */

typedef struct {
    uint64_t seed;
    uint64_t memory_limit_bytes; /* of the device that is played, or EXEC_PLAY_NO_LIMIT */
    bool keep_rows;              /* for a trace */
    bool no_op_times;            /* on a GPU: ops are not timed, steps are */
    const char *comm;            /* between GPUs: auto (also NULL), nccl or local */
    const ExecWeights *weights;  /* borrowed; NULL: parameters begin at random */
    const ExecData *data;        /* borrowed; NULL: synthetic */
    const ExecPace *pace;        /* borrowed; NULL: collectives take what they take */
} ExecOptions;

typedef struct {
    const ExecDevice *device;
    ExecContext context;
    ExecOptions options;
    uint32_t role_id, steps;
    ExecStepping stepping;
    uint64_t pass; /* the current one, counted from 0 over all steps */
    /* Memory: */
    MemoryCaching *caching;
    MemoryAnswers *answers; /* to the allocator, kept for `replay`; NULL if no rows are kept */
    MemoryLedger *ledger;
    MemoryBlock **blocks; /* of each buffer */
    char *out_of_memory;  /* why the play stopped; NULL unless it ran out of memory */
    TraceOom oom;         /* and where */
    /* What a trace gets: */
    GPtrArray *op_rows;  /* TraceOpRow, as issued */
    GArray *memory_rows; /* TraceMemoryRow */
    /* Each step's result: */
    int64_t start_ns;     /* the barrier before the first step */
    int64_t *step_end_ns; /* of lane 0; 0 until then */
    double *losses;       /* of each step, this rank's; NaN where the plan names none */
} ExecPlay;

void exec_play_free(ExecPlay *play); /* closes the device; NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecPlay, exec_play_free)

/* ---- for devices ---------------------------------------------------------------------------- */

/* play: zeros. The plan must have passed exec_play_fits(). Ranks wait for each other here. */
bool exec_play_init(ExecPlay *play, const ExecDevice *device, const Plan *plan,
                    const ExecComm *comm, uint32_t steps, const ExecOptions *options,
                    GError **error);
/* The plan's allocator over the device's segments. */
bool exec_play_take_memory(ExecPlay *play, const MemorySource *source, gpointer self,
                           GError **error);
void exec_play_clear(ExecPlay *play); /* also after an init or take_memory that failed */

PlanAnswer exec_play_alloc(gpointer play, const PlanPosition *at, uint32_t buffer, GError **error);
PlanAnswer exec_play_release(gpointer play, const PlanPosition *at, uint32_t buffer,
                             GError **error);
PlanAnswer exec_play_mark(gpointer play, const PlanPosition *at, uint32_t buffer, uint32_t lane,
                          GError **error);

/* A device keeps the events of the last PLAN_MAX_BEFORE + 1 steps, in as many tables, each used
 * again by a later step. The number of the table that the step `steps_before` steps ago has used.
 * */
static inline unsigned exec_play_event_table(const PlanPosition *at, uint32_t steps_before) {
    unsigned tables = PLAN_MAX_BEFORE + 1;
    return ((unsigned)(at->step + 1) + tables - steps_before) % tables;
}

/* Makes the task of an op that is issued now, and writes where each of its operands lies to
 * pointers[], which has room for all. */
ExecTask exec_play_task(ExecPlay *play, const PlanPosition *at, const PlanOp *op,
                        gpointer *pointers);
/* NULL where no rows are kept. */
TraceOpRow *exec_play_op_row(ExecPlay *play, const PlanPosition *at, uint32_t lane);
/* The weight that the loss made by this op has in the loss of its step; 0: it makes none. */
double exec_play_loss_share(const ExecPlay *play, const PlanPosition *at, const PlanOp *op);
/* False with error if the loss is not a number. */
bool exec_play_note_loss(ExecPlay *play, int32_t step, double loss, double share, GError **error);
void exec_play_note_step_end(ExecPlay *play, int32_t step, int64_t now_ns);
/* Prefixes the error with step, op and unit. */
void exec_play_say_where(const ExecPlay *play, int32_t step, const PlanOp *op, uint32_t unit,
                         GError **error);

/* ---- for whoever plays ---------------------------------------------------------------------- */

/* To be called before a device is opened. The answer depends on the input alone, so all ranks find
 * the same. False with error: the plan is for another number of ranks, has an op that the device
 * cannot do or an unknown allocator, or the device cannot do what the options ask. */
bool exec_play_fits(const ExecDevice *device, const Plan *plan, const ExecComm *comm,
                    const ExecOptions *options, GError **error);
/* Where a live buffer lies, in the device's memory. */
gpointer exec_play_pointer(const ExecPlay *play, uint32_t buffer);
bool exec_play_step_has_ended(const ExecPlay *play, uint32_t step);
/* From the end of the step before (the start barrier for the first) to its own last op on lane
 * 0. */
double exec_play_step_ms(const ExecPlay *play, uint32_t step);
/* Writes this rank's part of the current weights; drain before. Ranks go from parameter to
 * parameter together, and each beats its watchdog at every one. */
bool exec_play_save(ExecPlay *play, ExecWeightsFile *file, ExecWatchdog *watchdog, GError **error);
/* Adds this rank's rows to a trace whose tables trace_describe_plan() has filled. After the last
 * drain. */
void exec_play_add_rows(const ExecPlay *play, Trace *trace);
