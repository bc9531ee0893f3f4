/* plan/flavours/flat.h - where a unit's parameters lie in its flat parameter, and which
 * part is whose.
 *
 * Inside plan/ only. FSDP1 lays a unit's parameters one after the other in one tensor and deals
 * that out in equal shards, so a rank owns parts of a few parameters. With use_orig_params, each
 * parameter starts on a multiple of 16 bytes in the dtype it is computed in, and the tensor is
 * padded until it divides by the ranks; without, nothing is aligned and only the last shards are
 * padded.
 */
#pragma once

#include "plan/autograd/tensor.h"

typedef struct {
    uint64_t elements; /* of the flat parameter, with the padding that is part of it */
    uint64_t shard;    /* of one rank */
} PlanFlatUnit;

typedef struct {
    uint64_t ranks;
    bool aligned;
    PlanFlatUnit *units;
    uint64_t *start; /* of each parameter, elements from its flat parameter's start */
} PlanFlat;

typedef struct {
    uint64_t offset, elements; /* within the rank's shard; elements 0: nothing */
} PlanFlatPart;

void plan_flat_init(PlanFlat *flat, const PlanRun *run, uint64_t ranks, bool aligned);
void plan_flat_clear(PlanFlat *flat);
/* What of a parameter is a rank's. */
PlanFlatPart plan_flat_part(const PlanFlat *flat, const PlanRun *run, uint32_t parameter,
                            uint64_t rank);
/* Padding before parameter number i of the unit; i may be the number of parameters. */
uint64_t plan_flat_padding(const PlanFlat *flat, const PlanRun *run, uint32_t unit, uint32_t i);
