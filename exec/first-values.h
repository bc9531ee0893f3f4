/* exec/first-values.h - what a parameter begins with, in the host's memory.
 *
 * Element i of a parameter is the same on whichever rank it lies: read from a file of weights, a
 * constant, or a function of the seed, the parameter and i. So are the bytes of what is in 4 bits.
 * What an init op writes is its rank's part of one parameter; the elements around it stay as they
 * are. Threads: any.
 */
#pragma once

#include "exec/task.h"

void exec_first_values(const ExecTask *task, gpointer to, PlanDtype dtype);
/* So many bytes, from one on, of the op's parameter in 4 bits. */
void exec_first_nibbles(const ExecTask *task, uint64_t from, uint64_t n_bytes, gpointer to);
/* An init op of the host's own, into its slot. */
bool exec_first_values_on_host(const ExecTask *task, GError **error);
