/* sim/ranks/binding-links.h - which links of rings can hold a collective up.
 *
 * Links that the same communicators use, each equally often, are shared alike whatever runs, so
 * only the one that carries least can be short. Rings of thousands of ranks have as many links, and
 * a handful of such kinds.
 *
 * Cost: O(links of all rings).
 */
#pragma once

#include "sim/ranks/communicators.h"

/* Leaves out of each ring the links that cannot be short, and numbers the others anew, as
 * communicators->capacities has them. */
void sim_keep_binding_links(SimCommunicators *communicators, const SimFabric *fabric);
