/* plan/autograd/tape.c - a tape's lists emptied, and freed: a rank has one tape, and each
 * microbatch of its stages. */
#include "plan/autograd/tape.h"

void plan_tape_empty(PlanTape *tape) {
    tape->nodes.len = 0;
    tape->edges.len = 0;
    tape->slots.len = 0;
    tape->saved.len = 0;
    tape->hooks.len = 0;
    tape->checkpoints.len = 0;
    tape->kept.len = 0;
    tape->largest.len = 0;
    tape->addends.len = 0;
}

void plan_tape_free(PlanTape *tape) {
    plan_vector_clear(&tape->nodes);
    plan_vector_clear(&tape->edges);
    plan_vector_clear(&tape->slots);
    plan_vector_clear(&tape->saved);
    plan_vector_clear(&tape->hooks);
    plan_vector_clear(&tape->checkpoints);
    plan_vector_clear(&tape->kept);
    plan_vector_clear(&tape->largest);
    plan_vector_clear(&tape->addends);
    g_free(tape->storage_of_value);
    g_free(tape->producer_of_value);
    g_free(tape->node_of_op);
    g_free(tape->n_contributions);
}
