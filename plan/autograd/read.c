#include "plan/autograd/read.h"

#include "plan/autograd/offload.h"

enum {
    LANE_COMPUTE
};

/* Slots of the host's memory, behind those that offloading has. */
enum {
    LOSS = PLAN_N_OFFLOAD_SLOTS,
    NORM,
    COUNT
};

static void read_number(PlanRun *run, unsigned which, PlanOperand number) {
    uint32_t slot = plan_offload_slots_end(run) + which;
    plan_offload_move(run, PLAN_OP_TO_HOST, slot, number, LANE_COMPUTE);
    plan_builder_host_wait(&run->builder, plan_builder_record(&run->builder, LANE_COMPUTE), 0);
}

void plan_run_read_loss(PlanRun *run, PlanTensor loss) {
    unsigned reads = run->strategy->host_reads;
    if (reads == PLAN_READS_LOSS || reads == PLAN_READS_BOTH) {
        read_number(run, LOSS, plan_run_operand_of(run, loss));
    }
}

bool plan_run_reads_norm(const PlanRun *run) {
    unsigned reads = run->strategy->host_reads;
    return reads == PLAN_READS_NORM || reads == PLAN_READS_BOTH;
}

void plan_run_read_norm(PlanRun *run, PlanTensor norm) {
    if (plan_run_reads_norm(run)) {
        read_number(run, NORM, plan_run_operand_of(run, norm));
    }
}

void plan_run_read_count(PlanRun *run, uint32_t buffer) {
    read_number(run, COUNT, (PlanOperand){.buffer = buffer, .elements = 1});
}
