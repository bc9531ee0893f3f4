/* exec/comm/rehearse.h - one process that plays rank R of W: stand-ins for the other ranks.
 *
 * Compute and memory are real; what the other ranks would send is made up. The other ranks' slices
 * of a gather, the result of a reduce-scatter and what neighbouring stages send come from a table
 * of small random numbers: not zeros, which some processors handle faster, nor numbers that
 * overflow. Each call begins elsewhere in the table. An all-reduce behaves as if all ranks had this
 * one's numbers, since some sums must not be negative (squared norms). Losses mean nothing. On a
 * GPU exec/cuda/comm/standin.c does the same.
 *
 * The device makes a collective last as long as a pace says (exec/pace.h); the stand-in itself only
 * writes the buffer.
 *
 * Borrows: the plan. Threads: any, one call an axis at a time.
 */
#pragma once

#include "exec/comm/comm.h"

#define EXEC_REHEARSE_NUMBERS ((uint64_t)1 << 18)

/* The table: uniform between -2^-5 and 2^-5, about as wide as weights begin (a standard deviation
 * of 0.018), by Philox, rounded to the dtype, bytes as e4m3; NULL for integers. Transfer full:
 * g_free(). */
gpointer exec_rehearse_numbers(PlanDtype dtype);
/* The place in the table where call number `call` of an axis begins; a multiple of 8. */
static inline uint64_t exec_rehearse_from(PlanAxis axis, uint64_t call) {
    return (call * PLAN_N_AXES + axis) * 8 * 4099 % EXEC_REHEARSE_NUMBERS; /* 4099: a prime */
}

/* Fails if the plan has no such rank. ret_comm->close() frees everything. */
bool exec_rehearse_open(const Plan *plan, uint32_t rank, ExecComm *ret_comm, GError **error);
