/* sim/links/flows.h - bytes on their way over shared links.
 *
 * A flow sends so many bytes over a path of links at the rate that max-min fairness (fair.h) gives
 * it, which changes whenever another flow that it meets, or that one of those meets, comes or goes.
 * A lone flow takes its bytes over the least capacity of its path. Capacities are bytes a
 * nanosecond, which is GB/s.
 *
 * All that happens at one moment is one change: flows that start or end together cost one working
 * out of rates. Between changes nothing is done for a flow; what it has sent is reckoned when its
 * rate changes.
 *
 * Owns: links, flows. Threads: one. Cost: O(path + log flows) to start and end, and what a solve of
 * fair.h costs for those it reaches. Flows that end at one moment leave in the order in which their
 * ends were last set.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/time.h"

typedef struct _SimFlows SimFlows;

SimFlows *sim_flows_new(const double *capacities, uint32_t n_links); /* each more than 0 */
void sim_flows_free(SimFlows *flows);                                /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimFlows, sim_flows_free)

/* at: not before what was popped, and not after sim_flows_next(). */
void sim_flows_start(SimFlows *flows, const uint32_t *path, uint32_t n, double bytes, uint64_t tag,
                     SimTime at);
/* When the next flow ends; SIM_NEVER when none runs. */
SimTime sim_flows_next(SimFlows *flows);
/* Takes that flow out. False when none runs. */
bool sim_flows_pop(SimFlows *flows, uint64_t *ret_tag, SimTime *ret_at);
