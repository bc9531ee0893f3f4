#include "plan/flavours/flat.h"

enum {
    ALIGNMENT_BYTES = 16 /* torch/distributed/fsdp/_flat_param.py, _get_aligned_numel */
};

static uint64_t elements_of(const PlanRun *run, uint32_t p) {
    return plan_run_parameter(run, p)->elements;
}

static uint64_t round_up(uint64_t n, uint64_t to) {
    return (n + to - 1) / to * to;
}

static void lay_out(PlanFlat *flat, const PlanRun *run, uint32_t u, uint64_t alignment) {
    const GArray *parameters = run->units[u].parameters;
    uint64_t end = 0;
    for (uint32_t i = 0; i < parameters->len; i++) {
        uint32_t p = g_array_index(parameters, uint32_t, i);
        flat->start[p] = round_up(end, alignment);
        end = flat->start[p] + elements_of(run, p);
    }
    /* What is not sharded is padded for all ranks, too; replicas of unsharded copies (hybrid shards
     * of one rank, which PyTorch turns into NO_SHARD in a group of one) are not. */
    bool is_whole = run->strategy->sharding == PLAN_SHARDING_NONE;
    uint64_t group = is_whole ? run->strategy->ranks : flat->ranks;
    flat->units[u].elements = flat->aligned ? round_up(end, group) : end;
    flat->units[u].shard = (flat->units[u].elements + flat->ranks - 1) / flat->ranks;
}

void plan_flat_init(PlanFlat *flat, const PlanRun *run, uint64_t ranks, bool aligned) {
    uint64_t size = plan_dtype_bytes(plan_strategy_param_dtype(run->strategy));
    *flat = (PlanFlat){.ranks = ranks, .aligned = aligned};
    flat->units = g_new0(PlanFlatUnit, run->n_units);
    flat->start = g_new0(uint64_t, run->graph->parameters.len);
    for (uint32_t u = 0; u < run->n_units; u++) {
        lay_out(flat, run, u, aligned ? ALIGNMENT_BYTES / size : 1);
    }
}

void plan_flat_clear(PlanFlat *flat) {
    g_clear_pointer(&flat->units, g_free);
    g_clear_pointer(&flat->start, g_free);
}

PlanFlatPart plan_flat_part(const PlanFlat *flat, const PlanRun *run, uint32_t parameter,
                            uint64_t rank) {
    uint64_t shard = flat->units[run->unit_of_parameter[parameter]].shard;
    uint64_t first = MAX(flat->start[parameter], rank * shard);
    uint64_t end = MIN(flat->start[parameter] + elements_of(run, parameter), (rank + 1) * shard);
    return first < end ? (PlanFlatPart){first - rank * shard, end - first} : (PlanFlatPart){0};
}

uint64_t plan_flat_padding(const PlanFlat *flat, const PlanRun *run, uint32_t unit, uint32_t i) {
    const GArray *parameters = run->units[unit].parameters;
    uint64_t before = 0, next = flat->units[unit].elements;
    if (i > 0) {
        uint32_t p = g_array_index(parameters, uint32_t, i - 1);
        before = flat->start[p] + elements_of(run, p);
    }
    if (i < parameters->len) {
        next = flat->start[g_array_index(parameters, uint32_t, i)];
    }
    return next - before;
}
