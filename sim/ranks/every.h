/* sim/ranks/every.h - a play in which each rank has its own cursor, lanes, host and allocator.
 *
 * One thread holds all ranks, each in a fiber. They touch each other in collectives alone
 * (meeting.h), so each runs ahead by itself for as long as nothing can come to it from others; when
 * none can go on, what is due first among all of them happens: a collective, then what lanes do,
 * then what hosts do. So each rank sees its events in the order of time, and the result does not
 * depend on who was played first. Ranks of one role on one kind of node whose groups lie alike
 * share their costs; each has its own allocator, for when blocks come back depends on its own
 * lanes.
 *
 * Cost: what a play of one rank costs, for each, and two or three switches of fibers a rank and
 * collective; some hundred kilobytes a rank, and its rows where it is traced.
 */
#pragma once

#include "sim/prediction.h"
#include "trace/trace.h"

/* Fills in the prediction (and trace, unless NULL) as sim_predict() says. */
bool sim_play_every(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                    SimPrediction *prediction, Trace *trace, GError **error);
/* The same of a rank of each stage, those of options->rank's pipeline. They stand for the others of
 * their stages, whose collectives begin when they come. */
bool sim_play_stages(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                     SimPrediction *prediction, Trace *trace, GError **error);
