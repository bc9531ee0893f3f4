/* exec/comm/rehearse.h - one process that plays rank R of W: stand-ins for the other ranks.
 *
 * Compute and memory are real; what the other ranks would send is made up. From a table of small
 * random numbers a gather takes the other ranks' slices, a reduce-scatter the slice it leaves, a
 * stage what its neighbours give it: neither zeros, which a processor may find easier, nor numbers
 * that overflow; each call begins elsewhere in the table. An all-reduce gives what it would if all
 * ranks had this one's numbers, since some of them must not fall below zero (squared norms). Losses
 * so mean nothing. A GPU's stand-ins (exec/cuda/standin.c) do the same.
 *
 * How long a collective lasts, the device takes from a pace (exec/pace.h); the stand-in itself
 * takes what writing the buffer takes.
 *
 * Borrows: the plan. Threads: any, one call an axis at a time.
 */
#pragma once

#include "exec/comm/comm.h"

#define EXEC_REHEARSE_NUMBERS ((uint64_t)1 << 18)

/* The table, of fp32, bf16 or fp16: uniform between -2^-5 and 2^-5, about as wide as weights begin
 * (a standard deviation of 0.018), by Philox, rounded to the dtype. Transfer full: g_free(). */
gpointer exec_rehearse_numbers(PlanDtype dtype);
/* Where in it call number `call` of an axis begins; a multiple of 8. */
static inline uint64_t exec_rehearse_from(PlanAxis axis, uint64_t call) {
    return (call * PLAN_N_AXES + axis) * 8 * 4099 % EXEC_REHEARSE_NUMBERS; /* 4099: a prime */
}

/* Fails when the plan has no such rank. The table's close() frees what is behind it. */
bool exec_rehearse_open(const Plan *plan, uint32_t rank, ExecComm *ret_comm, GError **error);
