/* plan/flavours/fsdp1-gather.c - from a unit's shard to its flat parameter and back. */
#include "plan/autograd/offload.h"
#include "plan/autograd/passes/record.h"
#include "plan/flavours/fsdp1.h"

static void free_marked(PlanRun *run, uint32_t buffer, uint8_t lane) {
    plan_builder_mark(&run->builder, buffer, lane);
    plan_builder_free(&run->builder, buffer);
}

/* 1.13 forgot the mark; c10d's own made up for that. Without sharding nothing did, and the memory
 * could be given away while it was computed with; no plan may do that, so there it is marked. */
static void free_cast(PlanRun *run, const PlanFsdp1 *f, uint32_t u, uint8_t lane) {
    if (f->is_of_1_13) {
        plan_builder_free(&run->builder, f->units[u].b.cast);
    } else {
        free_marked(run, f->units[u].b.cast, lane);
    }
}

static void make_cast(PlanRun *run, const PlanFsdp1 *f, uint32_t u) {
    const PlanFsdp1Buffers *b = &f->units[u].b;
    if (!f->casts || f->units[u].gathered || plan_fsdp1_lives(run, b->cast)) {
        return;
    }
    plan_builder_alloc(&run->builder, b->cast);
    plan_run_into(run, PLAN_OP_CAST, PLAN_FSDP1_PRE_UNSHARD, b->local, b->cast,
                  plan_fsdp1_elements(run, b->cast));
    plan_builder_wait_lane(&run->builder, PLAN_FSDP1_UNSHARD, PLAN_FSDP1_PRE_UNSHARD);
}

void plan_fsdp1_collective(PlanRun *run, uint8_t lane, PlanOpKind kind, uint32_t reads,
                           uint32_t writes) {
    plan_builder_collective(&run->builder, kind, PLAN_AXIS_SHARD,
                            ((const PlanFsdp1 *)run->state)->flat.ranks, PLAN_REDUCTION_SUM,
                            all_of(run, reads), all_of(run, writes));
    if (plan_strategy_is_after(run->strategy, PLAN_PYTORCH_2_0)) {
        plan_builder_launch(&run->builder, lane);
        return;
    }
    plan_builder_wait_lane(&run->builder, PLAN_FSDP1_C10D, lane);
    plan_builder_launch(&run->builder, PLAN_FSDP1_C10D);
    plan_builder_mark(&run->builder, reads, PLAN_FSDP1_C10D);
    plan_builder_mark(&run->builder, writes, PLAN_FSDP1_C10D);
    plan_builder_wait_lane(&run->builder, lane, PLAN_FSDP1_C10D);
}

/* Offloaded. With use_orig_params the parameters are views of what was fetched last: it stays until
 * they are made views of something else. */

static void drop_fetched(PlanRun *run, PlanFsdp1Unit *unit) {
    plan_builder_drop(&run->builder, &unit->fetched);
}

static void fetch(PlanRun *run, const PlanFsdp1 *f, uint32_t u) {
    PlanFsdp1Unit *unit = &f->units[u];
    const uint32_t *fetched = unit->b.fetched;
    uint32_t next = fetched[unit->fetched == fetched[0]];
    plan_builder_alloc(&run->builder, next);
    plan_offload_get_shard(run, plan_run_parameter_of(run, u, 0), next, PLAN_FSDP1_PRE_UNSHARD);
    drop_fetched(run, unit);
    unit->fetched = next;
}

/* Unsharded, the fetched tensor is the parameter. Forward's lives until the next forward has its
 * own, because autograd holds views of it; where parameters are views, backward's lives as long. */
static void fetch_whole(PlanRun *run, PlanFsdp1Unit *unit, uint32_t u) {
    const uint32_t *fetched = unit->b.fetched;
    bool is_forward = run->builder.phase == plan_run_forward_phase(run);
    unit->b.full = is_forward ? fetched[unit->fetched == fetched[0]] : unit->b.fetched_again;
    plan_builder_alloc(&run->builder, unit->b.full);
    plan_offload_get_shard(run, plan_run_parameter_of(run, u, 0), unit->b.full,
                           PLAN_FSDP1_PRE_UNSHARD);
    if (is_forward) {
        drop_fetched(run, unit);
        unit->fetched = unit->b.full;
    }
    if (is_forward && unit->is_fetched_again) {
        plan_builder_free(&run->builder, unit->b.fetched_again);
    }
    unit->is_fetched_again = !is_forward;
}

/* The shard is asked for also where the parameter is whole, for FSDP1 does not look. */
static void fetch_or_cast(PlanRun *run, const PlanFsdp1 *f, uint32_t u) {
    const PlanFsdp1Buffers *b = &f->units[u].b;
    if (!f->casts && !f->shards) {
        fetch_whole(run, &f->units[u], u);
    } else if (!f->casts) {
        fetch(run, f, u);
    } else {
        plan_builder_alloc(&run->builder, b->cast);
        fetch(run, f, u);
        plan_run_into(run, PLAN_OP_CAST, PLAN_FSDP1_PRE_UNSHARD, f->units[u].fetched, b->cast,
                      plan_fsdp1_elements(run, b->cast));
        drop_fetched(run, &f->units[u]);
    }
    plan_builder_wait_lane(&run->builder, PLAN_FSDP1_UNSHARD, PLAN_FSDP1_PRE_UNSHARD);
}

static uint32_t gathers_from(const PlanFsdp1 *f, uint32_t u) {
    const PlanFsdp1Unit *unit = &f->units[u];
    return f->casts ? unit->b.cast : unit->fetched != PLAN_NONE ? unit->fetched : unit->b.local;
}

static void gather(PlanRun *run, const PlanFsdp1 *f, uint32_t u) {
    const PlanFsdp1Buffers *b = &f->units[u].b;
    plan_builder_alloc(&run->builder, b->full);
    plan_fsdp1_collective(run, PLAN_FSDP1_UNSHARD, PLAN_OP_ALL_GATHER, gathers_from(f, u), b->full);
    if (plan_offload_has_params(run)) {
        plan_builder_mark(&run->builder, gathers_from(f, u), PLAN_FSDP1_UNSHARD);
    }
}

static void wait_as_limited(PlanRun *run, PlanFsdp1 *f) {
    uint32_t number;
    uint8_t before;
    if (plan_limiter_gather(&f->limiter, &number, &before)) {
        plan_builder_host_wait(&run->builder, number, before);
    }
}

static void unshard(PlanRun *run, uint32_t u, bool is_used) {
    PlanFsdp1 *f = run->state;
    uint32_t context = run->builder.unit;
    bool offloads = plan_offload_has_params(run);
    plan_run_at_unit(run, u);
    if (f->is_of_1_13) {
        wait_as_limited(run, f);
    }
    if (offloads && (f->shards || !f->units[u].gathered)) {
        fetch_or_cast(run, f, u);
    } else if (!offloads) {
        make_cast(run, f, u);
    }
    if (!f->is_of_1_13) {
        wait_as_limited(run, f);
    }
    if (f->shards && !f->units[u].gathered) {
        gather(run, f, u);
    }
    if (offloads && plan_fsdp1_lives(run, f->units[u].b.local)) {
        plan_builder_free(&run->builder, f->units[u].b.local); /* nothing is a view of it now */
    }
    if (offloads && f->shards && !plan_fsdp1_has_views(run, u, true)) {
        drop_fetched(run, &f->units[u]);
    }
    if (f->shards && f->casts && plan_fsdp1_lives(run, f->units[u].b.cast)) {
        free_cast(run, f, u, PLAN_FSDP1_UNSHARD);
    }
    f->units[u].gathered = true;
    if (run->builder.phase == PLAN_PHASE_FORWARD && is_used) {
        plan_run_split_flat(run, u);
    }
    plan_run_at_unit(run, context);
}

void plan_fsdp1_unshard(PlanRun *run, uint32_t u) {
    unshard(run, u, true);
}

void plan_fsdp1_prefetch(PlanRun *run, uint32_t u) {
    PlanFsdp1 *f = run->state;
    if (!f->units[u].prefetched) {
        unshard(run, u, !f->is_of_2_0); /* where it is used it is unsharded again */
        f->units[u].prefetched = true;
    }
}

bool plan_fsdp1_reshards(const PlanStrategy *strategy) {
    return strategy->sharding == PLAN_SHARDING_FULL || strategy->sharding == PLAN_SHARDING_HYBRID;
}

/* 2.15 marks what an unsharded parameter was fetched to, or cast to, when that is put away. */
static void mark_fetched(PlanRun *run, const PlanFsdp1Unit *unit) {
    const PlanFsdp1 *f = run->state;
    bool marks = run->strategy->pytorch == PLAN_PYTORCH_2_15 && plan_offload_has_params(run);
    bool is_freed_marked = unit->is_fetched_again && !f->keeps_views;
    if (marks && unit->gathered && (f->casts || !is_freed_marked)) {
        plan_builder_mark(&run->builder, f->casts ? unit->b.cast : unit->b.full,
                          PLAN_FSDP1_COMPUTE);
    }
}

/* Without sharding there is only the cast parameter to drop, and it always goes. */
void plan_fsdp1_reshard(PlanRun *run, uint32_t u, bool is_free) {
    PlanFsdp1 *f = run->state;
    PlanFsdp1Unit *unit = &f->units[u];
    unit->prefetched = unit->prefetched && f->is_of_2_0 && !is_free;
    bool is_forward = run->builder.phase == plan_run_forward_phase(run) ||
                      run->builder.phase == PLAN_PHASE_RECOMPUTE;
    bool keeps_views = is_forward && !plan_fsdp1_reshards(run->strategy);
    if (f->shards && !keeps_views) {
        drop_fetched(run, unit);
    }
    if (!f->shards) {
        mark_fetched(run, unit);
        unit->gathered = false;
        if (unit->is_fetched_again && !f->keeps_views) {
            /* Before 2.15 PyTorch gives it away unmarked, while compute may still read it; no plan
             * may. */
            free_marked(run, unit->b.fetched_again, PLAN_FSDP1_COMPUTE);
            unit->is_fetched_again = false;
        }
        if (f->casts) {
            free_marked(run, unit->b.cast, PLAN_FSDP1_COMPUTE);
        }
        return;
    }
    if (!is_free || !unit->gathered) {
        return;
    }
    free_marked(run, unit->b.full, PLAN_FSDP1_COMPUTE);
    unit->gathered = false;
    if (f->limiter.limit) {
        plan_builder_record_reserved(&run->builder, PLAN_FSDP1_COMPUTE,
                                     plan_limiter_free(&f->limiter));
    }
}
