#include "sim/predict.h"

#include "plan/op/work.h"
#include "plan/strategy/strategy.h"
#include "sim/costs/ops.h"
#include "sim/error.h"
#include "sim/ranks/every.h"
#include "sim/ranks/representative.h"
#include "sim/settings.h"
#include "trace/ended.h"
#include "trace/from-plan.h"

/* ---- what may be asked for ------------------------------------------------------------------ */

const char *sim_told_apart(uint64_t ranks, const ModelCluster *cluster) {
    uint64_t a_node = cluster->topology_gpus_per_node;
    uint64_t nodes = (ranks + a_node - 1) / a_node;
    const char *what = NULL;
    for (uint64_t node = 0; node < nodes; node++) {
        what = model_cluster_node(cluster, node) != cluster ? "nodes of several kinds" : what;
    }
    bool is_narrow = cluster->inter_node_oversubscription > 1 &&
                     cluster->inter_node_nodes_per_leaf > 0 &&
                     nodes > cluster->inter_node_nodes_per_leaf;
    return is_narrow ? "an oversubscribed spine between these nodes" : what;
}

static bool check_alike(const Plan *plan, const ModelCluster *cluster, GError **error) {
    const char *what = sim_told_apart(plan->world, cluster);
    if (what) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_CLUSTER,
                    "cluster %s has %s, for which no one rank can stand; play each: add "
                    "--every-rank to foreshard predict",
                    cluster->name, what);
    }
    return !what;
}

/* Symmetric memory is of GPUs that can read each other's. */
static bool check_peers(const Plan *plan, const ModelCluster *cluster, GError **error) {
    SimNetworkPath path = sim_network_path(cluster, plan, PLAN_AXIS_TENSOR);
    if (path.nodes > 1 && plan_workspace_bytes(&plan->roles[0]) > 0) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_CLUSTER,
                    "async_tensor=yes copies within a node, and the %u ranks that share layers lie "
                    "on %u nodes of cluster %s; set tensor to what divides %" G_GUINT64_FORMAT
                    ", or async_tensor=no",
                    path.ranks, path.nodes, cluster->name, cluster->topology_gpus_per_node);
        return false;
    }
    return true;
}

/* A folded plan does not write out repeated passes. Only a play that skips repeated passes can play
 * it. */
static bool check_folded(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                         GError **error) {
    bool leaps = cluster->device_lane_wake_us == 0 && !options->arena;
    if (plan->roles[0].n_folded > 0 && !leaps) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_FOLDED,
                    "all passes are played on cluster %s, or all placed; build the plan whole",
                    cluster->name);
        return false;
    }
    return true;
}

static bool check_cluster(const Plan *plan, const ModelCluster *cluster, GError **error) {
    if (plan->world > model_cluster_ranks(cluster)) {
        uint64_t a_node = cluster->topology_gpus_per_node,
                 nodes = (plan->world + a_node - 1) / a_node;
        g_autofree char *remedy =
            model_cluster_can_grow(cluster)
                ? g_strdup_printf("name a larger cluster, or the same one with more nodes "
                                  "(NAME:%" G_GUINT64_FORMAT ")",
                                  (guint64)nodes)
                : g_strdup("or name a larger cluster: this one cannot have more nodes");
        g_set_error(
            error, SIM_ERROR, SIM_ERROR_CLUSTER,
            "the plan is for %u ranks, but cluster %s has place for %" G_GUINT64_FORMAT
            " (%" G_GUINT64_FORMAT " node%s of %" G_GUINT64_FORMAT "); plan for fewer ranks, %s",
            plan->world, cluster->name, model_cluster_ranks(cluster), cluster->topology_nodes,
            cluster->topology_nodes == 1 ? "" : "s", a_node, remedy);
        return false;
    }
    return true;
}

static bool check_every(const Plan *plan, const SimOptions *options, GError **error) {
    if (plan->world > SIM_MOST_RANKS) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN,
                    "%u ranks are too many to play each (%d at most); plan for fewer, or leave "
                    "--every-rank out: one rank then stands for all",
                    plan->world, SIM_MOST_RANKS);
        return false;
    }
    for (uint32_t i = 0; i < options->n_troubles; i++) {
        if (options->troubles[i].last_rank >= plan->world) {
            g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN,
                        "rank %u is to have a trouble, but the plan has %u ranks, counted from 0; "
                        "predict it anew with troubles of its own ranks",
                        options->troubles[i].last_rank, plan->world);
            return false;
        }
    }
    return true;
}

/* ---- the prediction's part in the trace ------------------------------------------------------ */

static void describe(Trace *trace, const Plan *plan, const ModelCluster *cluster,
                     const SimOptions *options, const SimPrediction *prediction) {
    trace_describe_plan(trace, plan);
    trace_set(trace, "side", "predicted");
    trace_set(trace, "device", "sim");
    trace_set(trace, "cluster", cluster->name);
    if (cluster->digest) { /* of a file */
        trace_set(trace, "cluster_digest", cluster->digest);
    }
    sim_settings_write(trace, cluster, options);
    trace_set_uint(trace, "allocator_bytes", prediction->allocator_bytes);
    trace_set_uint(trace, "outside_allocator_bytes", prediction->outside_allocator_bytes);
}

/* Where its rows end. */
static void describe_oom(Trace *trace, const Plan *plan, const SimPrediction *prediction) {
    const SimMoment *at = &prediction->oom.at;
    const PlanRole *role = &plan->roles[plan_role_of_rank(plan, prediction->oom.rank)];
    TraceOom oom = {.rank = prediction->oom.rank,
                    .step = at->step,
                    .instruction = trace_instruction_number(role, at->section, at->index),
                    .buffer = prediction->oom.buffer};
    trace_set_oom(trace, &oom);
}

/* ---- the play ------------------------------------------------------------------------------- */

typedef bool Play(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                  SimPrediction *prediction, Trace *trace, GError **error);

/* The allocator's options: what was asked for, or else what the strategy says, for which the caller
 * has the room. */
static bool choose_allocator(const Plan *plan, SimOptions *options, MemoryOptions *room,
                             GError **error) {
    const char *conf;
    if (options->allocator) {
        return true;
    }
    if (!plan_allocator_conf(plan->strategy, &conf, error) ||
        !memory_options_parse(conf, room, error)) {
        return false;
    }
    options->allocator = room;
    options->arena |= !conf;
    return true;
}

static bool check(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                  GError **error) {
    return check_cluster(plan, cluster, error) && check_peers(plan, cluster, error) &&
           check_folded(plan, cluster, options, error) &&
           (options->every_rank    ? check_every(plan, options, error)
            : options->one_of_each ? true
                                   : check_alike(plan, cluster, error));
}

SimPrediction *sim_predict(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                           Trace *trace, GError **error) {
    g_assert(options->steps >= 1 && options->steps <= SIM_MOST_STEPS);
    g_assert(options->rank < plan->world);
    g_assert(!plan->for_one || (!options->every_rank && options->rank == 0));
    g_assert((plan->roles[0].n_folded == 0 && !options->unplayed) || trace == NULL);
    g_autoptr(SimPrediction) prediction = sim_prediction_new(plan, cluster, options->steps);
    MemoryOptions by_strategy;
    SimOptions own = *options;
    if (!choose_allocator(plan, &own, &by_strategy, error) || !check(plan, cluster, &own, error)) {
        return NULL;
    }
    if (trace) {
        describe(trace, plan, cluster, &own, prediction);
    }
    own.one_of_each = own.one_of_each && sim_told_apart(plan->world, cluster) != NULL;
    Play *play = own.every_rank                       ? sim_play_every
                 : own.one_of_each                    ? sim_play_one_of_each
                 : plan->axes[PLAN_AXIS_PIPELINE] > 1 ? sim_play_stages
                                                      : sim_play_representative;
    bool done = play(plan, cluster, &own, prediction, trace, error);
    if (done && trace && !prediction->fits) {
        describe_oom(trace, plan, prediction);
    }
    return done ? g_steal_pointer(&prediction) : NULL;
}
