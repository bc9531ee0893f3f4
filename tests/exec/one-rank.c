#include "tests/exec/one-rank.h"

OneRank one_rank_begin(Plan *plan, uint32_t steps) {
    g_autoptr(GError) error = NULL;
    ExecOptions options = {.seed = 1, .memory_limit_bytes = 1 << 30};
    OneRank play = {.plan = plan};
    play.host = exec_host.open(plan, &exec_comm_alone, steps, &options, &error);
    g_assert_no_error(error);
    play.player = plan_player_new(plan, 0, steps, exec_host.instructions, play.host);
    return play;
}

void one_rank_end(OneRank *play) {
    plan_player_free(play->player);
    exec_play_free(play->host);
}

/* Of fills, the loss's gradient's: of one number. */
static bool is_meant(const PlanRole *role, const PlanOp *op, PlanOpKind kind) {
    return op->kind == kind && (kind != PLAN_OP_FILL || plan_op_dims(role, op)[0] == 1);
}

const PlanOp *one_rank_until(OneRank *play, PlanSection section, PlanOpKind kind) {
    g_autoptr(GError) error = NULL;
    const PlanPosition *at = plan_player_position(play->player);
    for (;;) {
        if (at->section == section && at->index < at->role->n_instrs[section]) {
            const PlanInstr *instr = &at->role->sections[section][at->index];
            const PlanOp *op = &at->role->ops[instr->arg];
            if (instr->kind == PLAN_LAUNCH && is_meant(at->role, op, kind)) {
                g_assert_true(exec_host.drain(play->host, &error));
                return op;
            }
        }
        g_assert_cmpint(plan_player_step(play->player, &error), ==, PLAN_DONE);
        g_assert_false(plan_player_at_end(play->player));
    }
}

float *one_rank_pointer(const OneRank *play, PlanOperand operand) {
    return (float *)(gpointer)((char *)exec_play_pointer(play->host, operand.buffer) +
                               operand.offset_bytes);
}
