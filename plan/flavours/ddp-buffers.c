/* plan/flavours/ddp-buffers.c - registered buffers, which DDP broadcasts before a pass. */
#include "plan/flavours/ddp.h"

/* Returns where the next one begins. */
static uint64_t copy_back(PlanRun *run, PlanTensor flat, uint64_t offset, uint32_t buffer) {
    PlanTensor to = plan_run_value(run, buffer);
    flat.offset += offset;
    flat.elements = to.elements;
    LAUNCH_ON(run, PLAN_DDP_LANE_COMPUTE, PLAN_OP_COPY, PLAN_AXIS_NONE, DIMS((int64_t)to.elements),
              NULL, plan_run_operand_of(run, flat), plan_run_operand_of(run, to));
    return offset + to.elements;
}

/* The buffers that DDP broadcasts. A family's: rotary tables, then what blocks count in and tables
 * are made of. A traced network's: those that are registered. */
static GArray *buffers_of(const PlanGraph *graph) {
    GArray *buffers = plan_ddp_new_list();
    for (unsigned i = 0; i < graph->n_ropes; i++) {
        g_array_append_val(buffers, graph->ropes[i].cosines);
        if (!plan_graph_rope_is_complex(&graph->ropes[i])) {
            g_array_append_val(buffers, graph->ropes[i].sines);
        }
    }
    for (uint32_t i = 0; i < graph->buffers->len; i++) {
        uint32_t buffer = g_array_index(graph->buffers, uint32_t, i);
        if (!plan_graph_value_at(graph, buffer)->is_kept) {
            g_array_append_val(buffers, buffer);
        }
    }
    return buffers;
}

static bool is_broadcast(const PlanGraph *graph) {
    return graph->traced || graph->n_ropes || graph->n_numbers;
}

static PlanDtype dtype_of_buffer(const PlanRun *run, uint32_t buffer) {
    return (PlanDtype)plan_graph_value_at(run->graph, buffer)->dtype;
}

/* One by itself is flat as it is. */
static PlanTensor flattened(PlanRun *run, const GArray *buffers) {
    int64_t n = 0;
    uint32_t first = g_array_index(buffers, uint32_t, 0);
    if (buffers->len == 1) {
        return plan_run_ref(run, plan_run_value(run, first));
    }
    for (uint32_t i = 0; i < buffers->len; i++) {
        n += (int64_t)plan_run_value(run, g_array_index(buffers, uint32_t, i)).elements;
    }
    PlanTensor flat = plan_run_new_tensor(run, (uint64_t)n, dtype_of_buffer(run, first), "buffers");
    plan_builder_begin_op(&run->builder, PLAN_OP_FLATTEN, PLAN_AXIS_NONE, &n, NULL);
    for (uint32_t i = 0; i < buffers->len; i++) {
        plan_run_operand(run, plan_run_value(run, g_array_index(buffers, uint32_t, i)));
    }
    plan_run_operand(run, flat);
    plan_builder_launch(&run->builder, PLAN_DDP_LANE_COMPUTE);
    return flat;
}

static PlanTensor begin_broadcast(PlanRun *run, const GArray *buffers) {
    PlanTensor flat = flattened(run, buffers);
    plan_builder_wait_lane(&run->builder, PLAN_DDP_LANE_REDUCE, PLAN_DDP_LANE_COMPUTE);
    plan_builder_collective(&run->builder, PLAN_OP_BROADCAST, PLAN_AXIS_REPLICATE,
                            plan_ddp_ranks(run), 0, NOTHING, plan_run_operand_of(run, flat));
    plan_builder_launch(&run->builder, PLAN_DDP_LANE_REDUCE);
    return flat;
}

static void end_broadcast(PlanRun *run, const GArray *buffers, PlanTensor flat) {
    uint64_t offset = 0;
    plan_builder_wait_lane(&run->builder, PLAN_DDP_LANE_COMPUTE, PLAN_DDP_LANE_REDUCE);
    for (uint32_t i = 0; i < buffers->len && buffers->len > 1; i++) {
        offset = copy_back(run, flat, offset, g_array_index(buffers, uint32_t, i));
    }
    plan_run_unref(run, flat);
}

/* A family's are in fp32, but for a table of complex numbers. */
static bool are_alike(const PlanRun *run, uint32_t a, uint32_t b) {
    return run->graph->traced
               ? dtype_of_buffer(run, a) == dtype_of_buffer(run, b)
               : plan_graph_is_complex(run->graph, a) == plan_graph_is_complex(run->graph, b);
}

/* Those of one dtype go together. */
static GPtrArray *grouped(const PlanRun *run, const GArray *buffers) {
    GPtrArray *groups = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    for (uint32_t i = 0; i < buffers->len; i++) {
        uint32_t buffer = g_array_index(buffers, uint32_t, i);
        uint32_t g = 0;
        while (g < groups->len &&
               !are_alike(run, g_array_index((GArray *)groups->pdata[g], uint32_t, 0), buffer)) {
            g++;
        }
        if (g == groups->len) {
            g_ptr_array_add(groups, plan_ddp_new_list());
        }
        g_array_append_val((GArray *)groups->pdata[g], buffer);
    }
    return groups;
}

/* Two groups are under way at most (broadcast_coalesced in c10d/comm.cpp). */
void plan_ddp_broadcast_buffers(PlanRun *run) {
    enum {
        UNDER_WAY = 2
    };
    g_autoptr(GArray) buffers = buffers_of(run->graph);
    if (!buffers->len || !is_broadcast(run->graph)) {
        return;
    }
    g_autoptr(GPtrArray) groups = grouped(run, buffers);
    g_autofree PlanTensor *flat = g_new(PlanTensor, groups->len);
    for (uint32_t g = 0; g < groups->len + UNDER_WAY; g++) {
        if (g >= UNDER_WAY) {
            end_broadcast(run, groups->pdata[g - UNDER_WAY], flat[g - UNDER_WAY]);
        }
        if (g < groups->len) {
            flat[g] = begin_broadcast(run, groups->pdata[g]);
        }
    }
}
