/* exec/first-values.h - what a parameter begins with, as fp32 in the host's memory.
 *
 * Element i of a parameter is the same on whichever rank it lies: read from a file of weights, a
 * constant, or a function of the seed, the parameter and i. So are the bytes of what is in 4 bits.
 * Threads: any.
 */
#pragma once

#include "exec/task.h"

/* This rank's elements of an init op, into memory that holds what the op writes to; the elements
 * that are not the parameter's stay as they are. */
void exec_first_values(const ExecTask *task, float *ret_values);

/* Of weights in 4 bits, the bytes that are this rank's, in elements of the operand's dtype. */
void exec_first_nibbles(const ExecTask *task, gpointer ret_elements);

/* An init op of the host's own, into its slot. */
bool exec_first_values_on_host(const ExecTask *task, GError **error);
