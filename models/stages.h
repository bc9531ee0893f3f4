/* models/stages.h - how many blocks each pipeline stage has. */
#pragma once

#include "models/network.h"

/* How many of the network's blocks stage number STAGE has, counted from 0. */
uint64_t model_stage_layers(uint64_t layers, uint32_t stages, PlanPipelineSplit split,
                            uint32_t stage);
/* Whether each stage has at least one block; PLAN_ERROR_VALUE names the keys to change. */
bool model_stages_have_layers(const ModelNetwork *network, const PlanStrategy *strategy,
                              GError **error);
