/* plan/fsdp1-gather.c - from a unit's shard to its flat parameter and back. */
#include "plan/fsdp1.h"

static void free_marked(PlanRun *run, uint32_t buffer, uint8_t lane) {
    plan_builder_mark(&run->builder, buffer, lane);
    plan_builder_free(&run->builder, buffer);
}

static void make_cast(PlanRun *run, const PlanFsdp1 *f, uint32_t u) {
    const PlanFsdp1Buffers *b = &f->units[u].b;
    if (!f->casts || f->units[u].gathered || plan_fsdp1_lives(run, b->cast)) {
        return;
    }
    plan_builder_alloc(&run->builder, b->cast);
    plan_run_copy(run, PLAN_OP_CAST, PLAN_FSDP1_PRE_UNSHARD, b->local, b->cast,
                  plan_fsdp1_elements(run, b->cast));
    plan_builder_wait_lane(&run->builder, PLAN_FSDP1_UNSHARD, PLAN_FSDP1_PRE_UNSHARD);
}

void plan_fsdp1_collective(PlanRun *run, uint8_t lane, uint32_t reads, uint32_t writes) {
    if (run->strategy->pytorch < PLAN_PYTORCH_2_0) {
        plan_builder_launch(&run->builder, lane);
        return;
    }
    plan_builder_wait_lane(&run->builder, PLAN_FSDP1_C10D, lane);
    plan_builder_launch(&run->builder, PLAN_FSDP1_C10D);
    plan_builder_mark(&run->builder, reads, PLAN_FSDP1_C10D);
    plan_builder_mark(&run->builder, writes, PLAN_FSDP1_C10D);
    plan_builder_wait_lane(&run->builder, lane, PLAN_FSDP1_C10D);
}

static void gather(PlanRun *run, const PlanFsdp1 *f, uint32_t u) {
    const PlanFsdp1Buffers *b = &f->units[u].b;
    plan_builder_alloc(&run->builder, b->full);
    plan_builder_begin_op(
        &run->builder, PLAN_OP_ALL_GATHER, PLAN_AXIS_SHARD,
        (int64_t[]){(int64_t)plan_fsdp1_elements(run, b->full), (int64_t)f->flat.ranks},
        (double[]){0});
    plan_builder_whole(&run->builder, f->casts ? b->cast : b->local);
    plan_builder_whole(&run->builder, b->full);
    plan_fsdp1_collective(run, PLAN_FSDP1_UNSHARD, f->casts ? b->cast : b->local, b->full);
    if (f->casts) {
        free_marked(run, b->cast, PLAN_FSDP1_UNSHARD);
    }
}

void plan_fsdp1_unshard(PlanRun *run, uint32_t u) {
    PlanFsdp1 *f = run->state;
    uint32_t context = run->builder.unit, number;
    uint8_t before;
    plan_run_at_unit(run, u);
    make_cast(run, f, u);
    if (plan_limiter_gather(&f->limiter, &number, &before)) {
        plan_builder_host_wait(&run->builder, number, before);
    }
    if (f->shards && !f->units[u].gathered) {
        gather(run, f, u);
    }
    f->units[u].gathered = true;
    if (run->builder.phase == PLAN_PHASE_FORWARD) {
        plan_run_split_flat(run, u);
    }
    plan_run_at_unit(run, context);
}

void plan_fsdp1_prefetch(PlanRun *run, uint32_t u) {
    PlanFsdp1 *f = run->state;
    if (!f->units[u].prefetched) {
        plan_fsdp1_unshard(run, u);
        f->units[u].prefetched = true;
    }
}

bool plan_fsdp1_reshards(const PlanStrategy *strategy) {
    return strategy->sharding == PLAN_SHARDING_FULL || strategy->sharding == PLAN_SHARDING_HYBRID;
}

/* Without sharding there is only the cast parameter to drop, and it always goes. */
void plan_fsdp1_reshard(PlanRun *run, uint32_t u, bool is_free) {
    PlanFsdp1 *f = run->state;
    PlanFsdp1Unit *unit = &f->units[u];
    unit->prefetched = false;
    if (!f->shards) {
        unit->gathered = false;
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
