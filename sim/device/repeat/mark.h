/* sim/device/repeat/mark.h - a device at one moment of its play: its state, and what its books say.
 *
 * What a device does next is a function of its state and of its program. The state is written down
 * with times as so long after the moment and recordings as so many before the newest, so that two
 * moments of equal state differ in nothing but when they are. Not in it is the driver, of which is
 * known only how often it was asked for memory or given it back: never, between two moments that
 * are to be equal.
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

/* Zeros: of no moment. */
typedef struct {
    bool is_known; /* else nothing can be foretold */
    MemoryWords state;
    int32_t step;
    SimTime now_ns;   /* of the host */
    SimHostBook host; /* of the step at hand */
    SimAccountMark account;
    uint64_t n_acts; /* of the driver, until then */
} SimMark;

/* In place of what the mark was before. unnamed: buffers whose blocks the caller writes down; NULL:
 * none. It may add words of its own. */
void sim_mark_take(SimMark *mark, const SimParts *parts, int32_t step, const bool *unnamed);
bool sim_mark_equal(const SimMark *a, const SimMark *b);
void sim_mark_clear(SimMark *mark);
