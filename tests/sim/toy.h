/* tests/sim/toy.h - plans and clusters small enough to work out by hand.
 *
 * The cluster moves one byte a nanosecond, in memory and past each GPU of a ring, has no latencies
 * and a host that costs nothing: what a test wants otherwise, it sets. The plan is for 8 ranks
 * sharded, with the lanes compute, gather and reduce and four buffers that live from construction
 * on:
 *   b0  400 bytes, compute   `fill n=100 value=0 y=b0` takes 400 ns
 *   b1  800 bytes, gather    `all_gather ... gathered=b1` sends 7/8 of it: 700 ns
 *   b2  800 bytes, reduce    b3  400 bytes, reduce
 */
#pragma once

#include "models/cluster.h"
#include "plan/build/build.h"
#include "trace/trace.h"

extern const ModelCluster toy_cluster;

#define TOY_FILL "launch compute fill n=100 value=0 y=b0\n"
#define TOY_GATHER                                                                                 \
    "launch gather all_gather axis=shard elements=200 ranks=8 average=0 shard=- gathered=b1\n"
#define TOY_REDUCE "launch reduce all_reduce axis=shard elements=200 ranks=8 average=1 bucket=b2\n"
#define TOY_OTHER  "launch reduce fill n=100 value=0 y=b3\n"

/* Each step, the first two too, is this body: lines of plan/text/text.h's instructions. buffers:
 * more rows of buffers from b4 on, or "". */
Plan *toy_plan(const char *body, const char *buffers);
/* A network of models/networks under a strategy: "ranks=2 sharding=full ...". */
Plan *toy_network_plan(const char *network, const char *strategy);
/* The same; NULL where some of it is not known beside the rest. */
Plan *toy_plan_if_known(const char *network, const char *strategy);
/* The same in a form that is folded. */
Plan *toy_folded_plan(const char *network, const char *strategy, PlanForm form);
/* Of a network file's text. */
Plan *toy_written_plan(const char *ini, const char *strategy);
/* The same in PLAN_FORM_FOR_ONE. */
Plan *toy_written_plan_for_one(const char *ini, const char *strategy);

/* The ops of a step in the order of issue, "fill:0-400 all_gather:0-700"; times from when the step
 * before ended its compute lane (0 for the first). */
char *toy_timeline(const Trace *trace, int32_t step);
