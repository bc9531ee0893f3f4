/* tests/oracle/order.h - how much of each lane's work comes before what, by events and waits.
 *
 * Work is an allocation from a lane's pool or a collective on it: what a recording knows of lanes.
 * Each lane's is counted from the first step on.
 *
 * Owns: the count at each recorded event. Threads: one.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "plan/plan.h"

typedef struct {
    uint32_t of[PLAN_MAX_LANES];
} OracleBefore;

typedef struct {
    OracleBefore lanes[PLAN_MAX_LANES]; /* what each lane's next work comes after */
    uint32_t done[PLAN_MAX_LANES];
    GHashTable *events; /* number: OracleBefore */
} OracleOrder;

void oracle_order_init(OracleOrder *order);
void oracle_order_clear(OracleOrder *order);

/* Work on the lane; what it comes after, its lane's own too. */
OracleBefore oracle_order_work(OracleOrder *order, unsigned lane);
void oracle_order_record(OracleOrder *order, unsigned lane, gint64 event);
/* An event that was never recorded is passed. */
void oracle_order_wait(OracleOrder *order, unsigned lane, gint64 event);
void oracle_order_wait_lane(OracleOrder *order, unsigned lane, unsigned other);
/* All that is issued from now on comes after the event, or after all of the lane. */
void oracle_order_host_wait(OracleOrder *order, gint64 event);
void oracle_order_host_wait_lane(OracleOrder *order, unsigned lane);
