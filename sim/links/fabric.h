/* sim/links/fabric.h - the links of a cluster, one by one.
 *
 * Each GPU has its way into and out of the node's NVLinks (or PCIe) and its own NIC, in and out.
 * The NICs that stand at one place in their nodes are a rail: those of nodes_a_leaf nodes meet in a
 * leaf switch, and leaves of all rails in the spine, by one link up and one down for each leaf.
 * Ranks fill nodes in order.
 *
 * Where NVLinks join the GPUs of a node pair by pair, without a switch, each pair has a link of its
 * own, each way, and a rank's own way in and out is PCIe's.
 *
 * A link's capacity is in whatever unit the maker gives: bytes a nanosecond, or shares of what an
 * undisturbed collective takes.
 *
 * Owns: its capacities. Borrows: the cluster of its shape. Threads: const once made, so any number.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "models/cluster.h"

typedef struct {
    uint32_t ranks, ranks_a_node;
    uint32_t nodes_a_leaf;     /* 0: one switch for all, in which nothing is short */
    double nvlink, nic;        /* of a GPU, each way */
    double uplink;             /* of a leaf to the spine, each way; with nodes_a_leaf */
    const ModelCluster *pairs; /* whose nvlinks join the ranks of a node; NULL: a switch */
} SimFabricShape;

typedef struct {
    SimFabricShape shape;
    double *capacities;
    uint32_t n_links, first_uplink, first_pair;
} SimFabric;

enum {
    SIM_FABRIC_LONGEST = 4 /* links of a hop */
};

SimFabric *sim_fabric_new(const SimFabricShape *shape);
void sim_fabric_free(SimFabric *fabric); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimFabric, sim_fabric_free)

/* Multiplies what a rank's NVLinks, or its NIC, carry, in and out. */
void sim_fabric_scale_nvlink(SimFabric *fabric, uint32_t rank, double factor);
void sim_fabric_scale_nic(SimFabric *fabric, uint32_t rank, double factor);

/* Appends the links (uint32_t) of a ring over ranks of one node, or of rings over all pairs of
 * them. */
void sim_fabric_ring(const SimFabric *fabric, const uint32_t *ranks, uint32_t n, GArray *links);
/* The links from one rank to another, in a node by its switch or PCIe; returns how many. */
uint32_t sim_fabric_hop(const SimFabric *fabric, uint32_t from, uint32_t to,
                        uint32_t ret_path[SIM_FABRIC_LONGEST]);
