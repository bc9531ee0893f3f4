/* sim/ranks/every.h - a play in which each rank has its own cursor, lanes, host and allocator.
 *
 * All ranks run in one thread, each in a fiber. They affect each other only in collectives
 * (meeting.h), so each runs ahead as long as nothing from others can reach it. When none can go on,
 * the earliest thing of all ranks happens: at equal times first collectives, then lanes, then
 * hosts. So each rank sees its events in order of time, and the result does not depend on who was
 * played first. Ranks of one role on one kind of node whose groups lie alike share a table of
 * costs. Each has its own allocator, since its own lanes decide when blocks come back.
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
/* The same of a rank on each kind of node, of each stage: where nodes are of several kinds, or
 * share a spine that is too narrow for them. They stand for the others of their kind, and those
 * come with them. Each is as slow as the slowest of its kind, for whom all wait. Left out is what
 * else tells ranks of a kind apart: jitter of kernels, hosts and links, and other groups on the
 * same uplinks. */
bool sim_play_one_of_each(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                          SimPrediction *prediction, Trace *trace, GError **error);
