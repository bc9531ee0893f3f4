/* exec/slices.h - which slice of each parameter a rank has, and where it keeps it.
 *
 * A slice is a run of a parameter's elements. The op that initializes a buffer says which slice the
 * buffer gets, and the buffer keeps it as long as it lives. If the host initializes the parameter,
 * or the buffer is copied to the host at once and freed, the slice lies in a slot of the host's
 * memory instead (offload/slots.h).
 */
#pragma once

#include "plan/plan.h"

typedef struct {
    uint32_t parameter;
    uint32_t buffer; /* PLAN_NONE: the host initializes it */
    uint32_t slot;   /* of the host's memory, as floats; PLAN_NONE: it lies in the buffer */
    uint64_t first;  /* element of the buffer or slot at which it begins */
    uint64_t from;   /* element of the parameter (split: of the rank's piece) at which it begins */
    uint64_t count;  /* elements; may be 0 */
} ExecSlice;

ExecSlice exec_slice_of(const Plan *plan, const PlanRole *role, const PlanOp *init, uint32_t rank);
/* A parameter that is split among ranks: of the n elements (at least 1) of the rank's piece that
 * begin at `from`, how many lie together in the whole parameter too, and in *ret_from where. */
uint64_t exec_slice_run(const Plan *plan, uint32_t parameter, uint32_t rank, uint64_t from,
                        uint64_t n, uint64_t *ret_from);

/* The slices (ExecSlice) that this rank is to save, in the order of the parameters, so that all
 * ranks together save each element once. To be asked after at least one step. If several buffers
 * have had a parameter, the last one counts. Transfer full. */
GArray *exec_slices_to_save(const Plan *plan, const PlanRole *role, uint32_t rank); /* ExecSlice */
