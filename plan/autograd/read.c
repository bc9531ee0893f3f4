#include "plan/autograd/read.h"

#include "plan/autograd/offload-slots.h"

/* The host's memory slots; those of offloading come first. */
enum {
    LOSS = PLAN_N_OFFLOAD_SLOTS,
    NORM,
    COUNT,
    FOUND,
    SENT,
    TAKEN
};

static void read_number(PlanRun *run, unsigned which, PlanOperand number) {
    plan_offload_fetch(run, plan_offload_slots_end(run) + which, number, PLAN_LANE_COMPUTE);
}

void plan_run_read_loss(PlanRun *run, PlanTensor loss) {
    unsigned reads = run->strategy->host_reads;
    if (reads == PLAN_READS_LOSS || reads == PLAN_READS_BOTH) {
        read_number(run, LOSS, plan_run_operand_of(run, loss));
    }
}

void plan_run_read_norm(PlanRun *run, PlanTensor norm) {
    if (plan_strategy_reads_norm(run->strategy)) {
        read_number(run, NORM, plan_run_operand_of(run, norm));
    }
}

void plan_run_read_count(PlanRun *run, uint32_t buffer) {
    read_number(run, COUNT, (PlanOperand){.buffer = buffer, .elements = 1});
}

void plan_run_read_splits(PlanRun *run, PlanOperand splits, bool waits) {
    uint32_t slot = plan_offload_slots_end(run) + (waits ? TAKEN : SENT);
    plan_offload_move(run, PLAN_OP_SPLITS_TO_HOST, slot, splits, PLAN_LANE_COMPUTE);
    if (waits) {
        plan_builder_host_wait_lane(&run->builder, PLAN_LANE_COMPUTE);
    }
}

void plan_run_ask_to_step(PlanRun *run, PlanTensor found) {
    read_number(run, FOUND, plan_run_operand_of(run, found));
    plan_builder_begin_op(&run->builder, PLAN_OP_STEP_IF_FINITE, PLAN_AXIS_NONE,
                          (int64_t[]){plan_offload_slots_end(run) + FOUND}, NULL);
    plan_builder_host_op(&run->builder);
}
