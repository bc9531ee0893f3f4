/* plan/autograd/traced-call.c - what a kernel of a traced network computes, as a text of the plan:
 * its pieces with counts of this many samples, and with operands' numbers for tensors' names. */
#include "plan/autograd/traced-call.h"

static void append_piece(const PlanGraph *graph, const PlanTracedPiece *piece,
                         PlanTracedOperandOf *operand_of, gconstpointer data, GString *text) {
    switch (piece->of) {
    case PLAN_TRACED_TEXT:
        g_string_append(text, piece->text);
        return;
    case PLAN_TRACED_NUMBER:
        g_string_append_printf(text, "%" G_GUINT64_FORMAT,
                               plan_traced_count(piece->count, graph->samples));
        return;
    case PLAN_TRACED_TENSOR: {
        uint32_t operand = operand_of(piece->ref, data);
        if (operand == PLAN_NONE) {
            g_string_append_c(text, '-');
        } else {
            g_string_append_printf(text, "%u", operand);
        }
        return;
    }
    }
    g_assert_not_reached();
}

int64_t plan_traced_call_number(PlanRun *run, PlanTracedCall call, PlanTracedOperandOf *operand_of,
                                gconstpointer data) {
    if (!call.n) {
        return 0;
    }
    g_autoptr(GString) text = g_string_sized_new(256);
    for (uint32_t i = 0; i < call.n; i++) {
        append_piece(run->graph,
                     plan_graph_at(run->graph->traced->pieces, PlanTracedPiece, call.first + i),
                     operand_of, data, text);
    }
    return plan_calls_number(run->calls, text->str);
}

/* The operands of a sum or a copy: inputs x0, x1, then the output y0. */
uint32_t plan_traced_sum_operand(PlanTracedRef ref, gconstpointer n_reads) {
    return ref.index + (ref.of == PLAN_TRACED_OUTPUT ? GPOINTER_TO_UINT(n_reads) : 0);
}
