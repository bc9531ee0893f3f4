/* exec/rehearse.h - one process that plays rank R of W: stand-ins for the other ranks.
 *
 * Compute and memory are real; what the others would send is made up here. A gathered slice of
 * another rank is this rank's own with signs drawn at random, and so is what a reduce-scatter
 * leaves: numbers of the right size, neither zeros (which a processor may find easier) nor ones
 * that overflow. An all-reduce gives what it would if all ranks had this one's numbers. Losses so
 * mean nothing.
 *
 * How long a collective lasts, the device takes from a pace (exec/pace.h); the stand-in itself
 * takes what writing the buffer takes.
 *
 * Borrows: the plan. Threads: any, one call an axis at a time.
 */
#pragma once

#include "exec/comm.h"

/* Fails when the plan has no such rank. The table's close() frees what is behind it. */
bool exec_rehearse_open(const Plan *plan, uint32_t rank, uint64_t seed, ExecComm *ret_comm,
                        GError **error);
