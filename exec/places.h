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
    uint64_t from;              /* which is this element of the parameter */
    uint64_t count;             /* and so many follow; may be 0 */
} ExecPlace;

ExecPlace exec_place_of(const Plan *plan, const PlanRole *role, const PlanOp *init, uint32_t rank);

/* The places of each parameter, in order, that a rank alone is to save, so that ranks together save
 * each element once, after at least one step. Of several buffers with one parameter, the last that
 * was made. Transfer full. */
GArray *exec_places_to_save(const Plan *plan, const PlanRole *role, uint32_t rank); /* ExecPlace */
