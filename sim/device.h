/* sim/device.h - the device "sim": one rank's host thread, lanes and memory under a virtual clock.
 *
 * An instruction costs the host its issue time and takes effect at the end of that, after
 * everything that happens on the lanes up to and including that moment. So the allocator asks
 * events as they stand at host time, and reuse happens at lane time, as on a real machine. A wait
 * of the host for a lane answers PLAN_NOT_YET: the caller lets time pass (sim_device_resume) and
 * steps its player again. Where the allocator itself waits (it releases memory, or frees a
 * segment), and where a lane's queue is full, time passes inside the call: right for one cursor, to
 * be opened up for a play of every rank.
 *
 * Owns: engine, memory, books, rows. Borrows: plan and cluster. Threads: one.
 */
#pragma once

#include "memory/options.h"
#include "models/cluster.h"
#include "plan/player.h"
#include "sim/account.h"
#include "sim/memory.h"
#include "trace/trace.h"

extern const PlanDevice sim_device; /* self: SimDevice */

typedef struct _SimDevice SimDevice;

/* NULL and *ret_unsupported set to a dtype's name when the device cannot compute in it; NULL and
 * error set when plan and cluster do not go together. */
SimDevice *sim_device_new(const Plan *plan, uint32_t role, const ModelCluster *cluster,
                          uint32_t steps, uint64_t allocator_bytes, const MemoryOptions *allocator,
                          bool alone, bool arena, const char **ret_unsupported, GError **error);
void sim_device_free(SimDevice *device); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimDevice, sim_device_free)

/* After PLAN_NOT_YET: lets time pass until the host can go on. */
void sim_device_resume(SimDevice *device);
/* After the last instruction: lets everything that was issued run. */
void sim_device_drain(SimDevice *device);

/* What a play leaves. */
typedef struct {
    SimTime busy_ns, blocked_ns;
} SimHostBook;

uint32_t sim_device_compute_lane(const SimDevice *device);
SimTime sim_device_zero(const SimDevice *device); /* when the first step began */
const SimAccount *sim_device_account(const SimDevice *device);
SimMemory *sim_device_memory(SimDevice *device);
const SimHostBook *sim_device_host_book(const SimDevice *device, int32_t step);
const PlanPosition *sim_device_failed_at(const SimDevice *device, SimTime *ret_host_ns,
                                         uint32_t *ret_buffer); /* after PLAN_STOPPED */
/* What bounds collectives of an axis: "intra-node links" or "inter-node network". */
const char *sim_device_slowest_link(const SimDevice *device, PlanAxis axis);

/* From now on memory rows are kept too. Before the first instruction. */
void sim_device_keep_rows(SimDevice *device);
/* Appends the rows, as rank's, to a trace that describes the plan. */
void sim_device_write_rows(const SimDevice *device, uint32_t rank, Trace *trace);
