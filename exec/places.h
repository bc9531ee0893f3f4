/* exec/places.h - which elements of a parameter lie where on this rank.
 *
 * An init op says so for the buffer it fills first; the buffer holds them as long as it lives. What
 * the host initializes, or is sent to its memory at once and let go, lies in a slot there.
 */
#pragma once

#include "plan/plan.h"

typedef struct {
    uint32_t parameter, buffer; /* buffer PLAN_NONE: the host initializes it */
    uint32_t slot;              /* that it is in, as floats; PLAN_NONE: in the buffer */
    uint64_t first;             /* element of the buffer */
    uint64_t from;              /* which is this element of the parameter, or of the rank's share */
    uint64_t count;             /* and so many follow; may be 0 */
} ExecPlace;

ExecPlace exec_place_of(const Plan *plan, const PlanRole *role, const PlanOp *init, uint32_t rank);
/* Of n elements (1 at least) from one on of the share that a rank of the tensor axis has: how many,
 * from the first on, lie together in the whole parameter, and in *ret_from where they begin. */
uint64_t exec_place_run(const Plan *plan, uint32_t parameter, uint32_t rank, uint64_t from,
                        uint64_t n, uint64_t *ret_from);

/* The places of each parameter, in order, that a rank alone is to save, so that ranks together save
 * each element once, after at least one step. Of several buffers with one parameter, the last that
 * was made. Transfer full. */
GArray *exec_places_to_save(const Plan *plan, const PlanRole *role, uint32_t rank); /* ExecPlace */
