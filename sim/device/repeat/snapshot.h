/* sim/device/repeat/snapshot.h - a device at one moment of its play: its state and its books.
 *
 * What a device does next follows from its state and its program. The state is written down with
 * times relative to the moment and recordings relative to the newest, so that equal states differ
 * only in when they are. The driver is not part of it; only how often it was asked for memory or
 * given some back is kept, and between two moments that count as equal it never was.
 *
 * Owns: the state. Borrows: the device's parts. Threads: one. Cost: O(buffers, and commands that
 * the lanes have been given).
 */
#pragma once

#include "sim/costs/ops.h"
#include "sim/device/account.h"
#include "sim/device/driver.h"
#include "sim/device/op-rows.h"
#include "sim/device/recordings.h"

/* Of a device. */
typedef struct {
    const PlanRole *role;
    const SimOpCosts *costs;
    SimHostClock *host;
    const SimDriver *driver;
    SimRecordings *recordings;
    SimAccount *account;
    SimMemory *memory;
    SimOpRows *ops;
} SimParts;

/* All zeros: no moment has been written down. */
typedef struct {
    bool is_known; /* false: none was taken, or its state cannot be written down */
    MemoryWords state;
    int32_t step;
    SimTime now_ns;   /* the host's clock */
    SimHostBook host; /* of the step at hand */
    SimAccountSnapshot account;
    uint64_t n_acts; /* what the driver was asked for until then */
} SimSnapshot;

/* Overwrites the snapshot. unnamed: buffers that are left out of the state, by buffer, so that two
 * passes can be compared; NULL: none, and it is compared with another step's. The caller may then
 * append words of its own to the state. */
void sim_snapshot_take(SimSnapshot *snapshot, const SimParts *parts, int32_t step,
                       const bool *unnamed);
bool sim_snapshot_equal(const SimSnapshot *a, const SimSnapshot *b);
void sim_snapshot_clear(SimSnapshot *snapshot);
