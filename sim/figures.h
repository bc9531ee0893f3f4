/* sim/figures.h - figures that follow from a prediction.
 *
 * Owns: nothing. Threads: any number.
 */
#pragma once

#include "sim/prediction.h"

/* The mean time of a steady step: the sum of what each cause takes of it. */
double sim_mean_step_ns(const SimPrediction *prediction);
/* The host issues for nearly all of a step, and longer than the compute lane works. So nothing but
 * a quicker host, or less to issue, makes the step shorter: while the compute lane waits for a
 * collective, it waits for one that was issued late. */
bool sim_is_host_bound(const SimPrediction *prediction);
/* Nearest rank: the smallest time that at least 95 % of the steady steps do not exceed. */
SimTime sim_p95_step_ns(const SimPrediction *prediction);
/* The rate, a second, of something of which a step has `amount`. */
double sim_a_second(const SimPrediction *prediction, double amount);
/* A category's share of bytes by subcategory. */
uint64_t sim_category_bytes(const uint64_t *by_sub, unsigned category);
/* The time in a step for which a pipeline stage rests while the pipeline fills and drains, if all
 * stages have equally much to do and links take no time: places - 1 turns, where a rank has (its
 * stages x microbatches) turns in a step. */
double sim_schedule_bubble_ns(const Plan *plan, const SimPrediction *prediction);
