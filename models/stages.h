/* models/stages.h - which blocks a stage has of a network whose layers stages share. */
#pragma once

#include "models/network.h"

uint64_t model_stage_layers(uint64_t layers, uint32_t stages, PlanPipelineSplit split,
                            uint32_t stage);
/* Whether each has one at least. */
bool model_stages_have_layers(const ModelNetwork *network, const PlanStrategy *strategy,
                              GError **error);
