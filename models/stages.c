#include "models/stages.h"

/* What the ends count for beside the blocks, as torchtitan's generate_llm_fqn_per_model_part()
 * gives them out by default (torchtitan/distributed/pipeline_parallel.py): one each. */
static uint64_t weight_of_ends(PlanPipelineSplit split) {
    return split == PLAN_PIPELINE_SPLIT_TORCHTITAN ? 1 : 0;
}

uint64_t model_stage_layers(uint64_t layers, uint32_t stages, PlanPipelineSplit split,
                            uint32_t stage) {
    uint64_t end = weight_of_ends(split), whole = layers + 2 * end;
    uint64_t share = whole / stages + (stage < whole % stages);
    uint64_t of_ends = (stage == 0 ? end : 0) + (stage + 1 == stages ? end : 0);
    return share - MIN(share, of_ends);
}

ModelBlocks model_stage_blocks(uint64_t layers, const PlanGraph *graph) {
    ModelBlocks blocks = {0};
    for (uint32_t stage = 0; stage <= graph->pipeline.stage; stage++) {
        blocks.first += blocks.n;
        blocks.n =
            model_stage_layers(layers, graph->pipeline.n_stages, graph->pipeline.split, stage);
    }
    return blocks;
}

bool model_stages_have_layers(const ModelNetwork *network, const PlanStrategy *s, GError **error) {
    uint64_t end = weight_of_ends((PlanPipelineSplit)s->pipeline_split);
    bool several = s->pipeline_stages > 1;
    bool has = (network->layers + 2 * end) / s->pipeline / s->pipeline_stages > end;
    if (!has) {
        g_autofree char *each =
            several ? g_strdup_printf(" x pipeline_stages=%" G_GUINT64_FORMAT, s->pipeline_stages)
                    : g_strdup("");
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: %" G_GUINT64_FORMAT " blocks leave one of pipeline=%" G_GUINT64_FORMAT
                    "%s stages none; lower %s%s",
                    network->name, network->layers, s->pipeline, each,
                    several ? "one of them" : "pipeline",
                    end ? ", or set pipeline_split=even" : "");
    }
    return has;
}
