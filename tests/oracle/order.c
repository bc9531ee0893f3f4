#include "tests/oracle/order.h"

void oracle_order_init(OracleOrder *order) {
    *order =
        (OracleOrder){.events = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free)};
}

void oracle_order_clear(OracleOrder *order) {
    g_hash_table_unref(order->events);
}

static OracleBefore all_of(const OracleOrder *order, unsigned lane) {
    OracleBefore before = order->lanes[lane];
    before.of[lane] = order->done[lane];
    return before;
}

static void come_after(OracleBefore *before, const OracleBefore *other) {
    for (unsigned i = 0; i < PLAN_MAX_LANES; i++) {
        before->of[i] = MAX(before->of[i], other->of[i]);
    }
}

OracleBefore oracle_order_work(OracleOrder *order, unsigned lane) {
    OracleBefore before = all_of(order, lane);
    order->done[lane]++;
    return before;
}

void oracle_order_record(OracleOrder *order, unsigned lane, gint64 event) {
    OracleBefore before = all_of(order, lane);
    g_hash_table_replace(order->events, g_memdup2(&event, sizeof event),
                         g_memdup2(&before, sizeof before));
}

void oracle_order_wait(OracleOrder *order, unsigned lane, gint64 event) {
    const OracleBefore *before = g_hash_table_lookup(order->events, &event);
    if (before) {
        come_after(&order->lanes[lane], before);
    }
}

void oracle_order_wait_lane(OracleOrder *order, unsigned lane, unsigned other) {
    OracleBefore before = all_of(order, other);
    come_after(&order->lanes[lane], &before);
}

void oracle_order_host_wait(OracleOrder *order, gint64 event) {
    for (unsigned lane = 0; lane < PLAN_MAX_LANES; lane++) {
        oracle_order_wait(order, lane, event);
    }
}

void oracle_order_host_wait_lane(OracleOrder *order, unsigned lane) {
    OracleBefore before = all_of(order, lane);
    for (unsigned i = 0; i < PLAN_MAX_LANES; i++) {
        come_after(&order->lanes[i], &before);
    }
}
