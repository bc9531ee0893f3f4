#include "sim/fabric.h"

/* The links of a rank, in this order; then those of the leaves, up and down. */
enum {
    NVLINK_OUT,
    NVLINK_IN,
    NIC_OUT,
    NIC_IN,
    LINKS_A_RANK
};

static uint32_t node_of(const SimFabric *fabric, uint32_t rank) {
    return rank / fabric->shape.ranks_a_node;
}

static uint32_t leaf_of(const SimFabric *fabric, uint32_t rank) {
    uint32_t block = node_of(fabric, rank) / fabric->shape.nodes_a_leaf;
    return block * fabric->shape.ranks_a_node + rank % fabric->shape.ranks_a_node;
}

static uint32_t n_leaves(const SimFabricShape *shape) {
    if (!shape->nodes_a_leaf) {
        return 0;
    }
    uint32_t nodes = (shape->ranks + shape->ranks_a_node - 1) / shape->ranks_a_node;
    return (nodes + shape->nodes_a_leaf - 1) / shape->nodes_a_leaf * shape->ranks_a_node;
}

SimFabric *sim_fabric_new(const SimFabricShape *shape) {
    SimFabric *fabric = g_new0(SimFabric, 1);
    fabric->shape = *shape;
    fabric->first_uplink = shape->ranks * LINKS_A_RANK;
    fabric->n_links = fabric->first_uplink + 2 * n_leaves(shape);
    fabric->capacities = g_new(double, fabric->n_links);
    for (uint32_t link = 0; link < fabric->first_uplink; link++) {
        bool is_nic = link % LINKS_A_RANK == NIC_OUT || link % LINKS_A_RANK == NIC_IN;
        fabric->capacities[link] = is_nic ? shape->nic : shape->nvlink;
    }
    for (uint32_t link = fabric->first_uplink; link < fabric->n_links; link++) {
        fabric->capacities[link] = shape->uplink;
    }
    return fabric;
}

void sim_fabric_free(SimFabric *fabric) {
    if (fabric) {
        g_free(fabric->capacities);
        g_free(fabric);
    }
}

static void scale(SimFabric *fabric, uint32_t rank, unsigned out, unsigned in, double factor) {
    g_assert(rank < fabric->shape.ranks && factor > 0);
    fabric->capacities[rank * LINKS_A_RANK + out] *= factor;
    fabric->capacities[rank * LINKS_A_RANK + in] *= factor;
}

void sim_fabric_scale_nvlink(SimFabric *fabric, uint32_t rank, double factor) {
    scale(fabric, rank, NVLINK_OUT, NVLINK_IN, factor);
}

void sim_fabric_scale_nic(SimFabric *fabric, uint32_t rank, double factor) {
    scale(fabric, rank, NIC_OUT, NIC_IN, factor);
}

uint32_t sim_fabric_hop(const SimFabric *fabric, uint32_t from, uint32_t to,
                        uint32_t ret_path[SIM_FABRIC_LONGEST]) {
    g_assert(from < fabric->shape.ranks && to < fabric->shape.ranks);
    bool near = node_of(fabric, from) == node_of(fabric, to);
    uint32_t n = 0;
    ret_path[n++] = from * LINKS_A_RANK + (near ? NVLINK_OUT : NIC_OUT);
    if (!near && fabric->shape.nodes_a_leaf && leaf_of(fabric, from) != leaf_of(fabric, to)) {
        ret_path[n++] = fabric->first_uplink + 2 * leaf_of(fabric, from);
        ret_path[n++] = fabric->first_uplink + 2 * leaf_of(fabric, to) + 1;
    }
    ret_path[n++] = to * LINKS_A_RANK + (near ? NVLINK_IN : NIC_IN);
    return n;
}
