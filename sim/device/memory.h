/* sim/device/memory.h - the memory of one simulated rank: PyTorch's allocator over virtual
 * segments, and the ledger of who holds what.
 *
 * The allocator is the one of memory/ that every device uses. What it asks of a machine (has this
 * event passed, wait for it) goes to the host's hooks, which answer as of host time, let time pass
 * where the real call would, and are told of segments that come and go.
 *
 * Owns: allocator, segments, ledger. Borrows: hooks, plan and role. Threads: one.
 */
#pragma once

#include "memory/answers.h"
#include "memory/ledger.h"
#include "memory/options.h"
#include "memory/virtual.h"
#include "memory/words.h"
#include "plan/player.h"
#include "sim/time.h"

/* A position in the program. */
typedef struct {
    int32_t step;
    PlanSection section;
    uint32_t index;
} SimMemoryPosition;

typedef struct _SimMemory SimMemory;

#define SIM_NO_LIMIT UINT64_MAX /* bytes: as many as are asked for */

/* arena: instead of the caching allocator a static layout worked out from lifetimes, taken as one
 * segment at the first allocation. It assumes that whoever frees memory has waited for other lanes
 * that use it. */
typedef struct {
    const Plan *plan;
    const PlanRole *role;
    uint64_t total_bytes;         /* the device's */
    uint64_t capacity_bytes;      /* what segments may take of it; no limit: both SIM_NO_LIMIT */
    const MemoryOptions *options; /* NULL: defaults */
    bool arena;
    const MemoryVirtualHooks *hooks;
    gpointer self;         /* the hooks' */
    const SimTime *now_ns; /* the host's clock */
} SimMemorySetup;

SimMemory *sim_memory_new(const SimMemorySetup *setup, GError **error);
void sim_memory_free(SimMemory *memory); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimMemory, sim_memory_free)

/* False: out of memory; nothing is held for the buffer. */
bool sim_memory_alloc(SimMemory *memory, uint32_t buffer, uint32_t lane, const PlanPosition *at);
void sim_memory_release(SimMemory *memory, uint32_t buffer, const PlanPosition *at);
void sim_memory_mark(SimMemory *memory, uint32_t buffer, uint32_t lane);
/* From now on the answers that the allocator gets about events are added to answers (borrowed). An
 * arena asks nothing. */
void sim_memory_keep_answers(SimMemory *memory, MemoryAnswers *answers);

const MemoryTotals *sim_memory_now(const SimMemory *memory);
/* Bytes as the allocator rounds them, PLAN_N_SUBCATEGORIES of them; the memory's own. */
const uint64_t *sim_memory_held(const SimMemory *memory);

/* The peak of allocated bytes: when it came, and the bytes of each category then. */
typedef struct {
    SimMemoryPosition position;
    SimTime host_ns;
    MemoryTotals then;
    const uint64_t *by_sub;  /* PLAN_N_SUBCATEGORIES */
    const uint64_t *by_unit; /* n_units + 1; the last is what serves no unit */
} SimMemoryPeak;

/* Appends the allocator's state (memory_caching_append_state()) and which block each buffer has,
 * but for those that are left out (by buffer; NULL: none). */
bool sim_memory_append_state(const SimMemory *memory, const bool *left_out, MemoryWords *state);
/* Appends which block one buffer has. */
void sim_memory_append_position(const SimMemory *memory, uint32_t buffer, MemoryWords *state);
/* Appends what waits for events (memory_caching_append_waits()). */
void sim_memory_append_waits(const SimMemory *memory, MemoryEvent newest, MemoryWords *state);
/* Gives the block of buffer from[i] to buffer to[i]. The two may be the same buffers in another
 * order. */
void sim_memory_rename(SimMemory *memory, const uint32_t *from, const uint32_t *to, uint32_t n);

/* Memory in an evaluation: the most that is allocated, and all three totals after its last change.
 * All 0: there is no evaluation. */
typedef struct {
    uint64_t most_allocated_bytes;
    MemoryTotals last;
} SimMemoryEvaluation;

SimMemoryEvaluation sim_memory_evaluation(const SimMemory *memory);

typedef struct {
    uint64_t peak_active_bytes, peak_reserved_bytes;
    uint64_t alloc_retries, segment_allocs, segment_frees;
} SimMemoryStats;

SimMemoryPeak sim_memory_peak(SimMemory *memory); /* its arrays are the memory's own */
SimMemoryStats sim_memory_stats(const SimMemory *memory);
