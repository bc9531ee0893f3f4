#include "sim/costs/nccl.h"

#include <glib.h>
#include <math.h>

#include "sim/costs/nccl-constants.h"

SimNcclGeneration sim_nccl_generation(uint64_t compute_capability) {
    return compute_capability >= 100  ? SIM_NCCL_BLACKWELL
           : compute_capability >= 90 ? SIM_NCCL_HOPPER
           : compute_capability >= 80 ? SIM_NCCL_AMPERE
                                      : SIM_NCCL_VOLTA;
}

/* ---- the formula ---------------------------------------------------------------------------- */

typedef struct {
    const SimNcclGroup *group;
    PlanOpKind kind;
    SimNcclProto proto;
    double bytes;
} Asked;

static unsigned column(const SimNcclGroup *group) {
    return MIN(group->nodes, 3) - 1; /* of the tables: one node, two, more */
}

/* What goes whole to one other rank, or comes from it. */
static bool is_sent(PlanOpKind kind) {
    return kind == PLAN_OP_PASS_ON || plan_op_is_of_stages(kind);
}

/* How many steps a ring takes. */
static double steps_of(const Asked *a) {
    double n = a->group->ranks;
    return a->kind == PLAN_OP_ALL_REDUCE  ? 2 * (n - 1)
           : a->kind == PLAN_OP_BROADCAST ? n
           : is_sent(a->kind)             ? 1
                                          : n - 1;
}

static double ll_limit(const SimNcclGroup *group) {
    return group->nodes == 1 ? ll_cap[group->generation] : ll_host_cap[MIN(group->nodes, 3) - 2];
}

static double depth(uint32_t nodes) {
    return floor(log2(nodes));
}

static double near_step(const SimNcclGroup *group, SimNcclAlgo algo, SimNcclProto proto) {
    return group->pcie ? pcie_latency[algo][proto] : nvlink_latency[algo][proto];
}

/* To the next node. Where each node has one rank nothing hides what the network takes, and rings
 * are given a tree's step (from 2.23 on). */
static double far_step(const SimNcclGroup *group, SimNcclAlgo algo, SimNcclProto proto) {
    bool exposed = group->ranks == group->nodes && !group->before_2_23;
    return network_latency[exposed ? SIM_NCCL_TREE : algo][proto];
}

static SimNcclTerms ring(const Asked *a) {
    const SimNcclGroup *g = a->group;
    /* Sends to the next rank: within a node assumed to have the ring's channels, as there is no
     * published measurement here; to the next node one GPU sends, by its own NIC. */
    bool one_sends = is_sent(a->kind) && g->nodes > 1;
    double channels = one_sends ? 1 : g->channels;
    double bandwidth = channels * g->channel_gb_per_s, steps = steps_of(a);
    double far = fmin(steps, (a->kind == PLAN_OP_ALL_REDUCE ? 2.0 : 1.0) * (g->nodes - 1));
    double near = near_step(g, SIM_NCCL_RING, a->proto);
    if (a->proto == SIM_NCCL_LL) {
        bandwidth = MIN(bandwidth * ll_ring_share, ll_limit(g));
    } else if (a->proto == SIM_NCCL_LL128) {
        bandwidth =
            MIN(bandwidth * ll128_ring_share, channels * ll128_ring_cap[g->generation][column(g)]);
    }
    if (g->nodes > 1) {
        near = MAX(near, posting_us * (a->proto == SIM_NCCL_SIMPLE ? 3 : 1));
    }
    double latency = base_latency[SIM_NCCL_RING][a->proto] + (steps - far) * near +
                     far * far_step(g, SIM_NCCL_RING, a->proto);
    if (a->kind == PLAN_OP_ALL_REDUCE && a->proto == SIM_NCCL_SIMPLE && g->nodes > 1 &&
        a->bytes / (g->channels * g->ranks) >= far_ring_bytes) {
        latency *= far_ring_factor[g->generation];
    }
    bool by_nvlink = g->nodes == 1 && !g->pcie;
    double sooner = by_nvlink ? steps * (near - MIN(near, nvlink_ring_step_us)) : 0;
    double share = is_sent(a->kind) ? 1 : g->ranks / steps;
    return (SimNcclTerms){latency, bandwidth * share, sooner};
}

/* Sends to all ranks and receives from them, in one group (ncclGroupStart in PyTorch's
 * torch/csrc/cuda/nccl.cpp, all2all_single_equal_split): no ring, all pairs at once, by protocol
 * Simple (src/enqueue.cc of NCCL 2.28.9; LL to 16 KiB, which is left out). Within a node a rank
 * gives as much as rings do: 332 to 340 GB/s on 8 H100 (collectives.csv, OpenXLA's table). Between
 * nodes each GPU has its own NIC, whose rate is an all-to-all's (NVIDIA/nccl-tests issue 267): what
 * goes to other nodes takes longest, from where fewest ranks are most of all, and hides the
 * rest. */
static SimNcclTerms pairs(const Asked *a) {
    const SimNcclGroup *g = a->group;
    bool far = g->nodes > 1;
    double latency = base_latency[SIM_NCCL_RING][SIM_NCCL_SIMPLE] +
                     (far ? far_step(g, SIM_NCCL_RING, SIM_NCCL_SIMPLE)
                          : near_step(g, SIM_NCCL_RING, SIM_NCCL_SIMPLE));
    double bandwidth = far ? g->channel_gb_per_s : g->channels * g->channel_gb_per_s;
    double stays = far ? g->least_a_node : 1; /* of a rank's parts, those it does not send so */
    return (SimNcclTerms){latency, bandwidth * g->ranks / (g->ranks - stays), 0};
}

/* What all trees carry. Between two nodes all that is added up crosses once each way, half of what
 * any other link and any larger tree sees: NCCL's search then lets the links in a node carry up to
 * twice what the network does (src/graph/search.cc; NVIDIA/nccl issues 812 and 946). */
static double tree_links(const SimNcclGroup *group) {
    double links = group->channels * group->channel_gb_per_s;
    return group->nodes == 2 ? MAX(links, MIN(2 * links, group->near_gb_per_s)) : links;
}

static SimNcclTerms tree(const Asked *a) {
    const SimNcclGroup *g = a->group;
    if (a->kind != PLAN_OP_ALL_REDUCE) {
        return (SimNcclTerms){0};
    }
    double bandwidth =
        MIN(tree_links(g) * tree_share, g->channels * tree_cap[g->generation][column(g)]);
    if (a->proto == SIM_NCCL_LL) {
        bandwidth = MIN(bandwidth / ll_tree_divisor, ll_limit(g));
    } else if (a->proto == SIM_NCCL_LL128) {
        double share = g->nodes == 1 ? ll128_tree_near_share : ll128_tree_far_share;
        bandwidth = MIN(bandwidth * share, g->channels * ll128_tree_cap[g->generation][column(g)]);
    }
    double doublings = MAX(0, floor(log2(MAX(1, a->bytes / 64))));
    if (doublings < TREE_SIZES) {
        bandwidth *= tree_factor[a->proto][(unsigned)doublings];
    }
    double latency = base_latency[SIM_NCCL_TREE][a->proto] +
                     2 * ((g->ranks_a_node - 1) * near_step(g, SIM_NCCL_TREE, a->proto) +
                          depth(g->nodes) * far_step(g, SIM_NCCL_TREE, a->proto));
    return (SimNcclTerms){latency, bandwidth / 2, 0};
}

static SimNcclTerms nvls(const Asked *a) {
    const SimNcclGroup *g = a->group;
    bool reduces_all = a->kind == PLAN_OP_ALL_REDUCE;
    if (a->proto != SIM_NCCL_SIMPLE || g->nodes > 1 || g->nvls_heads < 2 ||
        g->least_a_node < least_by_switch || a->kind == PLAN_OP_BROADCAST || is_sent(a->kind) ||
        (!reduces_all && g->ranks_a_node > most_gathered_by_switch)) {
        return (SimNcclTerms){0};
    }
    double heads = MIN(g->nvls_heads, g->ranks);
    double p = g->ranks_a_node, share = reduces_all ? 2 : (p - 1) / p;
    double head =
        g->nvls_head_gb_per_s * nvls_efficiency[g->generation] * (heads - 1) / heads * share;
    return (SimNcclTerms){nvlink_latency[SIM_NCCL_NVLS][SIM_NCCL_SIMPLE],
                          heads * head * (reduces_all ? g->ranks / steps_of(a) : 1)};
}

static SimNcclTerms nvls_tree(const Asked *a) {
    const SimNcclGroup *g = a->group;
    if (a->proto != SIM_NCCL_SIMPLE || g->nodes < 2 || g->nvls_heads < 2 ||
        a->kind != PLAN_OP_ALL_REDUCE || g->least_a_node < least_by_switch) {
        return (SimNcclTerms){0};
    }
    double heads = MIN(g->nvls_heads, g->least_a_node);
    double inside =
        g->nvls_head_gb_per_s * nvls_efficiency[g->generation] * (heads - 1) / heads * 2;
    double between = g->channels * g->channel_gb_per_s / heads * (g->nodes == 2 ? 2 : 1);
    double head = MIN(MIN(inside, between), nvls_tree_cap[g->generation][column(g)]);
    double latency = nvlink_latency[SIM_NCCL_NVLS_TREE][SIM_NCCL_SIMPLE] +
                     2 * depth(g->nodes) * far_step(g, SIM_NCCL_NVLS_TREE, SIM_NCCL_SIMPLE);
    return (SimNcclTerms){latency, heads * head * g->ranks / steps_of(a)};
}

static SimNcclTerms pat(const Asked *a) {
    const SimNcclGroup *g = a->group;
    bool scatters = a->kind == PLAN_OP_ALL_GATHER || a->kind == PLAN_OP_REDUCE_SCATTER;
    if (a->proto != SIM_NCCL_SIMPLE || g->ranks_a_node > 1 || !scatters || g->before_2_23) {
        return (SimNcclTerms){0};
    }
    double latency =
        base_latency[SIM_NCCL_PAT][SIM_NCCL_SIMPLE] +
        depth(g->nodes) * far_step(g, SIM_NCCL_PAT, SIM_NCCL_SIMPLE) / pat_step_divisor +
        pat_rank_us * g->ranks;
    return (SimNcclTerms){latency, g->channels * g->channel_gb_per_s * pat_share};
}

SimNcclTerms sim_nccl_expect(const SimNcclGroup *group, PlanOpKind kind, SimNcclAlgo algo,
                             SimNcclProto proto, double bytes) {
    Asked a = {group, kind, proto, bytes};
    if (kind == PLAN_OP_ALL_TO_ALL || kind == PLAN_OP_UNEVEN_ALL_TO_ALL) {
        bool is_how = algo == SIM_NCCL_RING && proto == SIM_NCCL_SIMPLE;
        return is_how ? pairs(&a) : (SimNcclTerms){0};
    }
    switch (algo) {
    case SIM_NCCL_RING:
        return ring(&a);
    case SIM_NCCL_TREE:
        return tree(&a);
    case SIM_NCCL_NVLS:
        return nvls(&a);
    case SIM_NCCL_NVLS_TREE:
        return nvls_tree(&a);
    case SIM_NCCL_PAT:
        return pat(&a);
    case SIM_NCCL_N_ALGOS:
        break;
    }
    g_assert_not_reached();
}

/* ---- the choice ----------------------------------------------------------------------------- */

static bool is_forced_out(const SimNcclGroup *group, SimNcclAlgo asked_algo, SimNcclProto asked,
                          SimNcclAlgo algo, SimNcclProto proto) {
    bool out = asked == SIM_NCCL_N_PROTOS ? group->barred[proto] : asked != proto;
    return out || (asked_algo != SIM_NCCL_N_ALGOS && asked_algo != algo);
}

static bool choose(const SimNcclGroup *group, PlanOpKind kind, double bytes, SimNcclAlgo algo,
                   SimNcclProto proto, SimNcclChoice *ret_choice) {
    double best = INFINITY;
    for (SimNcclAlgo i = 0; i < SIM_NCCL_N_ALGOS; i++) {
        for (SimNcclProto j = 0; j < SIM_NCCL_N_PROTOS; j++) {
            SimNcclTerms terms = sim_nccl_expect(group, kind, i, j, bytes);
            double us = terms.latency_us + bytes / (1000 * terms.gb_per_s);
            if (terms.gb_per_s > 0 && !is_forced_out(group, algo, proto, i, j) && us < best) {
                best = us;
                *ret_choice = (SimNcclChoice){i, j, terms};
            }
        }
    }
    return isfinite(best);
}

SimNcclChoice sim_nccl_choose(const SimNcclGroup *group, PlanOpKind kind, double bytes,
                              SimNcclAlgo algo, SimNcclProto proto) {
    SimNcclChoice choice = {0};
    if (!choose(group, kind, bytes, algo, proto, &choice) &&
        !choose(group, kind, bytes, SIM_NCCL_N_ALGOS, proto, &choice)) {
        choose(group, kind, bytes, SIM_NCCL_N_ALGOS, SIM_NCCL_N_PROTOS, &choice);
    }
    return choice;
}

/* ---- names ---------------------------------------------------------------------------------- */

static const char *const algo_names[SIM_NCCL_N_ALGOS] = {"ring", "tree", "nvls", "nvlstree", "pat"};
static const char *const proto_names[SIM_NCCL_N_PROTOS] = {"ll", "ll128", "simple"};

const char *sim_nccl_algo_name(SimNcclAlgo algo) {
    return algo_names[algo];
}

const char *sim_nccl_proto_name(SimNcclProto proto) {
    return proto_names[proto];
}

static bool parse(const char *name, const char *const *names, unsigned n, unsigned *ret) {
    g_autofree char *lower = g_ascii_strdown(name, -1);
    for (*ret = 0; *ret < n; ++*ret) {
        if (g_str_equal(lower, names[*ret])) {
            return true;
        }
    }
    return false;
}

bool sim_nccl_algo_parse(const char *name, SimNcclAlgo *ret_algo) {
    unsigned i;
    bool known = parse(name, algo_names, SIM_NCCL_N_ALGOS, &i);
    *ret_algo = (SimNcclAlgo)i;
    return known;
}

bool sim_nccl_proto_parse(const char *name, SimNcclProto *ret_proto) {
    unsigned i;
    bool known = parse(name, proto_names, SIM_NCCL_N_PROTOS, &i);
    *ret_proto = (SimNcclProto)i;
    return known;
}
