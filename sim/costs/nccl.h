/* sim/costs/nccl.h - which algorithm and protocol NCCL chooses for a collective, and what it
 * expects of each.
 *
 * Constants (nccl-constants.h), formula (sim_nccl_expect) and choice (sim_nccl_choose) stand apart.
 * All three are NCCL's own cost model, src/graph/tuning.cc and src/enqueue.cc of 2.28.9 and 2.30.7.
 * It is made for choosing: what a collective really takes is predicted by network.h, which
 * takes the choice and its two terms from here and corrects them by what was measured.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "plan/op/op.h"

typedef enum {
    SIM_NCCL_RING,
    SIM_NCCL_TREE,
    SIM_NCCL_NVLS,      /* the switch adds and copies; one node */
    SIM_NCCL_NVLS_TREE, /* and a tree between nodes */
    SIM_NCCL_PAT,       /* one rank a node */
    SIM_NCCL_N_ALGOS
} SimNcclAlgo;

typedef enum {
    SIM_NCCL_LL,
    SIM_NCCL_LL128,
    SIM_NCCL_SIMPLE,
    SIM_NCCL_N_PROTOS
} SimNcclProto;

typedef enum {
    SIM_NCCL_VOLTA,
    SIM_NCCL_AMPERE,
    SIM_NCCL_HOPPER,
    SIM_NCCL_BLACKWELL,
    SIM_NCCL_N_GENERATIONS
} SimNcclGeneration;

/* A group of ranks, as NCCL sees it once its search has found rings: within a node or, if the group
 * is on several nodes, between them. */
typedef struct {
    SimNcclGeneration generation;
    uint32_t ranks, nodes;
    uint32_t ranks_a_node;          /* on the node that has most of them */
    uint32_t least_a_node;          /* on the node that has fewest */
    double channels;                /* rings, or trees, at once */
    double channel_gb_per_s;        /* of each */
    double near_gb_per_s;           /* of all of them together, within a node */
    bool pcie;                      /* PCIe joins the GPUs of a node, and not NVLink */
    bool before_2_23;               /* NCCL's version */
    double nvls_heads;              /* 0: there is no NVLS */
    double nvls_head_gb_per_s;      /* of each */
    bool barred[SIM_NCCL_N_PROTOS]; /* protocols that are used only if forced, because the links may
                                     * deliver out of order */
} SimNcclGroup;

/* What NCCL expects a collective to take: latency_us + bytes / (1000 gb_per_s). */
typedef struct {
    double latency_us;
    double gb_per_s;  /* 0: NCCL does not allow this combination */
    double sooner_us; /* how much less its steps take than NCCL expects */
} SimNcclTerms;

typedef struct {
    SimNcclAlgo algo;
    SimNcclProto proto;
    SimNcclTerms terms;
} SimNcclChoice;

SimNcclGeneration sim_nccl_generation(uint64_t compute_capability);
/* bytes: of the whole tensor. */
SimNcclTerms sim_nccl_expect(const SimNcclGroup *group, PlanOpKind kind, SimNcclAlgo algo,
                             SimNcclProto proto, double bytes);
/* NCCL's choice: the combination with the shortest expected time among those that are not barred.
 * algo and proto force one even if it is barred, as NCCL_ALGO and NCCL_PROTO do (SIM_NCCL_N_ALGOS,
 * SIM_NCCL_N_PROTOS: not forced). If no combination is left, the forcing is ignored. */
SimNcclChoice sim_nccl_choose(const SimNcclGroup *group, PlanOpKind kind, double bytes,
                              SimNcclAlgo algo, SimNcclProto proto);

const char *sim_nccl_algo_name(SimNcclAlgo algo); /* as NCCL_ALGO spells it, in lower case */
const char *sim_nccl_proto_name(SimNcclProto proto);
bool sim_nccl_algo_parse(const char *name, SimNcclAlgo *ret_algo);
bool sim_nccl_proto_parse(const char *name, SimNcclProto *ret_proto);
