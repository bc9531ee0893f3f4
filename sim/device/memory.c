#include "sim/device/memory.h"

#include "memory/caching.h"
#include "memory/rounding.h"
#include "sim/device/lifetimes.h"

struct _SimMemory {
    const PlanRole *role;
    uint32_t n_units;
    MemoryVirtual *segments;
    MemoryCaching *caching; /* NULL: an arena, of so many bytes: */
    uint64_t arena_bytes, arena_used, capacity_bytes;
    const uint64_t *allocated, *active, *reserved; /* as they stand, in whole blocks */
    MemoryLedger *ledger;
    SimMemoryEvaluation evaluation;
    MemoryBlock **blocks; /* by buffer; NULL while it is not allocated */
    const SimTime *now_ns;
};

/* A position as one number, as the ledger wants it: 30 bits of step, 2 of section, 32 of index. */
static uint64_t pack(const PlanPosition *at) {
    G_STATIC_ASSERT(PLAN_N_SECTIONS <= 4);
    return (uint64_t)(at->step + 1) << 34 | (uint64_t)at->section << 32 | at->index;
}

static SimMemoryPosition unpack(uint64_t packed) {
    return (SimMemoryPosition){
        .step = (int32_t)(packed >> 34) - 1,
        .section = (PlanSection)(packed >> 32 & 3),
        .index = (uint32_t)packed,
    };
}

/* ---- the arena ------------------------------------------------------------------------------ */

/* As the caching allocator does, so that policies can be compared. */
static uint64_t rounded(uint64_t bytes) {
    return (bytes + MEMORY_BLOCK_LEAST - 1) / MEMORY_BLOCK_LEAST * MEMORY_BLOCK_LEAST;
}

static uint64_t arena_of(const PlanRole *role) {
    g_autoptr(GArray) lifetimes = sim_lifetimes(role);
    MemoryTenant *tenants = (MemoryTenant *)(gpointer)lifetimes->data;
    for (guint i = 0; i < lifetimes->len; i++) {
        tenants[i].bytes = rounded(tenants[i].bytes);
    }
    return memory_arena_layout(tenants, lifetimes->len);
}

/* ---- either policy -------------------------------------------------------------------------- */

SimMemory *sim_memory_new(const SimMemorySetup *setup, GError **error) {
    g_autoptr(SimMemory) memory = g_new0(SimMemory, 1);
    memory->role = setup->role;
    memory->n_units = setup->plan->n_units;
    memory->now_ns = setup->now_ns;
    memory->segments =
        memory_virtual_new(setup->total_bytes, setup->capacity_bytes, setup->hooks, setup->self);
    memory->capacity_bytes = setup->capacity_bytes;
    if (setup->arena) {
        memory->arena_bytes = arena_of(setup->role);
        memory->allocated = memory->active = &memory->arena_used;
        memory->reserved = &memory->arena_bytes;
    } else {
        memory->caching =
            memory_caching_new(setup->options, &memory_virtual_source, memory->segments, error);
        if (!memory->caching) {
            return NULL;
        }
        const MemoryPoolStats *all = &memory_caching_stats(memory->caching)->pools[MEMORY_POOL_ALL];
        memory->allocated = &all->allocated_bytes.current;
        memory->active = &all->active_bytes.current;
        memory->reserved = &all->reserved_bytes.current;
    }
    memory->ledger = memory_ledger_new(PLAN_N_SUBCATEGORIES, memory->n_units + 1);
    memory->blocks = g_new0(MemoryBlock *, setup->role->n_buffers);
    return g_steal_pointer(&memory);
}

void sim_memory_free(SimMemory *memory) {
    if (memory) {
        memory_virtual_end(memory->segments);
        g_clear_pointer(&memory->caching, memory_caching_free);
        memory_virtual_free(memory->segments);
        memory_ledger_free(memory->ledger);
        g_free(memory->blocks);
        g_free(memory);
    }
}

/* Tells the ledger of a block that came or went, with all three totals as they stand after it. */
static void book(SimMemory *memory, uint32_t buffer, uint64_t bytes, const PlanPosition *at,
                 void (*book_change)(MemoryLedger *, MemoryChange, uint64_t, uint64_t,
                                     MemoryMoment)) {
    const PlanBuffer *row = &memory->role->buffers[buffer];
    MemoryMoment moment = {pack(at), *memory->now_ns};
    MemoryChange change = {row->sub, row->unit == PLAN_NONE ? memory->n_units : row->unit, bytes};
    book_change(memory->ledger, change, *memory->active, *memory->reserved, moment);
    if (at->instr->phase == PLAN_PHASE_EVALUATION) {
        SimMemoryEvaluation *evaluation = &memory->evaluation;
        evaluation->last = memory->ledger->now;
        evaluation->most_allocated_bytes =
            MAX(evaluation->most_allocated_bytes, evaluation->last.allocated_bytes);
    }
}

SimMemoryEvaluation sim_memory_evaluation(const SimMemory *memory) {
    return memory->evaluation;
}

bool sim_memory_alloc(SimMemory *memory, uint32_t buffer, uint32_t lane, const PlanPosition *at) {
    uint64_t asked = memory->role->buffers[buffer].bytes, before = *memory->allocated;
    if (!memory->caching) {
        if (memory->arena_bytes > memory->capacity_bytes) {
            return false;
        }
        memory->arena_used += rounded(asked);
    } else if (!memory_caching_alloc(memory->caching, lane, asked, &memory->blocks[buffer])) {
        return false;
    }
    book(memory, buffer, *memory->allocated - before, at, memory_ledger_add);
    return true;
}

void sim_memory_release(SimMemory *memory, uint32_t buffer, const PlanPosition *at) {
    uint64_t before = *memory->allocated;
    if (memory->caching) {
        memory_caching_drop(memory->caching, memory->blocks[buffer]);
        memory->blocks[buffer] = NULL;
    } else {
        memory->arena_used -= rounded(memory->role->buffers[buffer].bytes);
    }
    book(memory, buffer, before - *memory->allocated, at, memory_ledger_sub);
}

void sim_memory_mark(SimMemory *memory, uint32_t buffer, uint32_t lane) {
    if (memory->caching) {
        memory_caching_mark(memory->caching, memory->blocks[buffer], lane);
    }
}

void sim_memory_keep_answers(SimMemory *memory, MemoryAnswers *answers) {
    if (memory->caching) {
        memory_caching_keep_answers(memory->caching, answers);
    }
}

void sim_memory_append_position(const SimMemory *memory, uint32_t buffer, MemoryWords *state) {
    const MemoryBlock *block = memory->blocks[buffer];
    if (block) {
        memory_words_add(state, memory_block_address(block));
    }
}

enum {
    FINEST = 512 /* bytes: addresses are multiples of so many */
};

/* An address says by how much the buffer's number is above the last one, or 0 if that is too much
 * for it; then it is the next word. */
static void append_buffer(MemoryWords *state, uint32_t behind, const MemoryBlock *block) {
    uint64_t address = memory_block_address(block);
    if (behind < FINEST) {
        memory_words_add(state, address | behind);
        return;
    }
    memory_words_add(state, address);
    memory_words_add(state, behind);
}

/* Where an arena puts buffers is fixed, and which of them live at a section's end the plan says. */
bool sim_memory_append_state(const SimMemory *memory, const bool *left_out, MemoryWords *state) {
    if (!memory->caching) {
        return true;
    }
    MemoryBlock *const *blocks = memory->blocks;
    uint32_t n_buffers = memory->role->n_buffers, last = 0; /* numbers from 1 */
    for (uint32_t b = 0; b < n_buffers; b++) {
        if (blocks[b] && !(left_out && left_out[b])) {
            append_buffer(state, b + 1 - last, blocks[b]);
            last = b + 1;
        }
    }
    return memory_caching_append_state(memory->caching, state);
}

void sim_memory_append_waits(const SimMemory *memory, MemoryEvent newest, MemoryWords *state) {
    if (memory->caching) {
        memory_caching_append_waits(memory->caching, newest, state);
    }
}

void sim_memory_rename(SimMemory *memory, const uint32_t *from, const uint32_t *to, uint32_t n) {
    g_autofree MemoryBlock **blocks = g_new(MemoryBlock *, n);
    for (uint32_t i = 0; i < n; i++) {
        blocks[i] = memory->blocks[from[i]];
        memory->blocks[from[i]] = NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        memory->blocks[to[i]] = blocks[i];
    }
}

const MemoryTotals *sim_memory_now(const SimMemory *memory) {
    return memory_ledger_now(memory->ledger);
}

const uint64_t *sim_memory_held(const SimMemory *memory) {
    return memory_ledger_by_tag(memory->ledger);
}

SimMemoryPeak sim_memory_peak(SimMemory *memory) {
    const MemoryPeak *peak = memory_ledger_peak_allocated(memory->ledger);
    return (SimMemoryPeak){
        .position = unpack(peak->moment.place),
        .host_ns = peak->moment.time_ns,
        .then = peak->totals,
        .by_sub = memory_ledger_peak_by_tag(memory->ledger),
        .by_unit = memory_ledger_peak_by_unit(memory->ledger),
    };
}

/* The allocator's own maxima: its counts see the moments between two changes of the ledger too. */
SimMemoryStats sim_memory_stats(const SimMemory *memory) {
    if (!memory->caching) {
        const MemoryPeak *peak = memory_ledger_peak_active(memory->ledger);
        return (SimMemoryStats){.peak_active_bytes = peak->totals.active_bytes,
                                .peak_reserved_bytes = memory->arena_bytes,
                                .segment_allocs = 1};
    }
    const MemoryStats *stats = memory_caching_stats(memory->caching);
    const MemoryPoolStats *all = &stats->pools[MEMORY_POOL_ALL];
    return (SimMemoryStats){
        .peak_active_bytes = all->active_bytes.peak,
        .peak_reserved_bytes = all->reserved_bytes.peak,
        .alloc_retries = stats->n_alloc_retries,
        .segment_allocs = stats->n_device_allocs,
        .segment_frees = stats->n_device_frees,
    };
}
