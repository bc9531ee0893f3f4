/* models/stages.h - which blocks each pipeline stage has. */
#pragma once

#include "models/network.h"
#include "plan/graph/graph.h"

/* How many of the network's blocks stage number STAGE has, counted from 0. */
uint64_t model_stage_layers(uint64_t layers, uint32_t stages, PlanPipelineSplit split,
                            uint32_t stage);
/* So many of them from the first one on: those of the stage that is walked. */
typedef struct {
    uint64_t first, n;
} ModelBlocks;
ModelBlocks model_stage_blocks(uint64_t layers, const PlanGraph *graph);
/* Whether each stage has at least one block; PLAN_ERROR_VALUE names the keys to change. */
bool model_stages_have_layers(const ModelNetwork *network, const PlanStrategy *strategy,
                              GError **error);
