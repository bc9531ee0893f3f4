/* sim/links/fair.h - who gets how much of links that several use: max-min fairness.
 *
 * A user goes over a path of links and has one rate on all of them; a link that stands twice in its
 * path carries it twice. The rates are such that no link carries more than its capacity and no
 * user's rate can grow without shrinking that of one that has no more. Rates are in the unit of the
 * capacities, whatever that is.
 *
 * Changes are gathered: users are added and removed, and sim_fair_solve() then works rates out
 * anew, for the users that a change can reach over shared links and for no others.
 *
 * Owns: links, users. Threads: one. Cost: O(path) to add and remove; a solve is O(n log n) in the
 * links and paths of the users reached. Determinism: rates are a function of the calls made.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct _SimFair SimFair;

SimFair *sim_fair_new(const double *capacities, uint32_t n_links); /* each more than 0 */
void sim_fair_free(SimFair *fair);                                 /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimFair, sim_fair_free)

/* Returns the user's number, which is reused once the user is removed. Its rate is 0 until the next
 * solve. path: at least one link. */
uint32_t sim_fair_add(SimFair *fair, const uint32_t *path, uint32_t n);
void sim_fair_remove(SimFair *fair, uint32_t user);
/* Works out rates. Returns how many have changed, and whose (valid until the next solve). */
uint32_t sim_fair_solve(SimFair *fair, const uint32_t **ret_changed);
double sim_fair_rate(const SimFair *fair, uint32_t user);
