/* tests/oracle/events.h - a step's events, of a recording and of a plan, in one form.
 *
 * What can be compared one by one: allocations, frees, marks (record_stream) and collectives in
 * host order, where the host waits, and what each lane's work comes after. Steps are asked for in
 * order, for a wait may be for what was recorded in a step before.
 *
 * Owns: what it remembers of the steps before. Borrows: recording and role. Threads: one.
 */
#pragma once

#include "tests/oracle/order.h"
#include "tests/oracle/recording.h"

typedef struct {
    char what; /* alloc, free, mark, collective, host waits */
    uint64_t bytes;
    /* A free or mark: which allocation of this step it is of, NONE for an older one. A wait: how
     * many of its step's events had been issued when that was recorded which is waited for. */
    uint32_t which;
    unsigned before; /* a wait: how many steps ago that was recorded */
    /* Of an allocation, a mark and a collective; as FSDP numbers its lanes, compute is 0. */
    unsigned lane;
    OracleBefore after; /* an allocation, a collective: the work of each lane that it comes after */
    unsigned ranks;     /* of a collective */
    const char *mantissa; /* of a collective: bf16, fp16 or another; NULL: none */
} OracleEvent;

typedef struct _OracleRecorded OracleRecorded;
typedef struct _OraclePlanned OraclePlanned;

OracleRecorded *oracle_recorded_new(const Recording *recording);
void oracle_recorded_free(OracleRecorded *recorded);
GArray *oracle_recorded_events(OracleRecorded *recorded, const Recording *recording, unsigned step);
/* What lives where the first step begins, as allocations in the order in which it was made. */
GArray *oracle_recorded_alive(const Recording *recording);
/* What the model takes on its way to the device: the batch, which recorder/ cuts out of more random
 * numbers, is left out of both. */
GArray *oracle_recorded_construction(OracleRecorded *recorded, const Recording *recording);

OraclePlanned *oracle_planned_new(const Plan *plan, const PlanRole *role);
void oracle_planned_free(OraclePlanned *planned);
GArray *oracle_planned_events(OraclePlanned *planned, const PlanRole *role, PlanSection section);
GArray *oracle_planned_alive(const PlanRole *role);
GArray *oracle_planned_construction(const PlanRole *role);

/* Of two events of one kind: what differs in where they are, in what of each lane's work they come
 * after (both only if asked to), in how many ranks take part (if asked to) and in what dtype. NULL:
 * nothing. Transfer full. */
char *oracle_event_difference(const OracleEvent *theirs, const OracleEvent *ours, bool of_lanes,
                              bool of_ranks);

/* A launch of a collective, or what the hosts do together. */
bool oracle_is_collective(const PlanRole *role, const PlanInstr *instr);
/* What a collective leaves on each rank. */
uint64_t oracle_output_bytes(const PlanRole *role, const PlanOp *op);

/* Puts frees between two other events into the order of their blocks, for recordings that do not
 * know theirs. */
void oracle_sort_frees(GArray *events);
