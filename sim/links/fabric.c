#include "sim/links/fabric.h"

/* The links of a rank, in this order; then those of the leaves, up and down; then those of pairs,
 * of each rank to each place of its node. */
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
    fabric->first_pair = fabric->first_uplink + 2 * n_leaves(shape);
    fabric->n_links = fabric->first_pair + (shape->pairs ? shape->ranks * shape->ranks_a_node : 0);
    fabric->capacities = g_new(double, fabric->n_links);
    for (uint32_t link = 0; link < fabric->first_uplink; link++) {
        bool is_nic = link % LINKS_A_RANK == NIC_OUT || link % LINKS_A_RANK == NIC_IN;
        fabric->capacities[link] = is_nic ? shape->nic : shape->nvlink;
    }
    for (uint32_t link = fabric->first_uplink; link < fabric->first_pair; link++) {
        fabric->capacities[link] = shape->uplink;
    }
    for (uint32_t link = fabric->first_pair; link < fabric->n_links; link++) {
        fabric->capacities[link] = shape->nvlink;
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

static uint32_t pair_link(const SimFabric *fabric, uint32_t from, uint32_t to) {
    uint32_t a_node = fabric->shape.ranks_a_node;
    return fabric->first_pair + from * a_node + to % a_node;
}

void sim_fabric_scale_nvlink(SimFabric *fabric, uint32_t rank, double factor) {
    uint32_t a_node = fabric->shape.ranks_a_node, first = rank / a_node * a_node;
    uint32_t end = fabric->shape.pairs ? MIN(first + a_node, fabric->shape.ranks) : first;
    scale(fabric, rank, NVLINK_OUT, NVLINK_IN, factor);
    for (uint32_t other = first; other < end; other++) {
        if (other != rank) {
            fabric->capacities[pair_link(fabric, rank, other)] *= factor;
            fabric->capacities[pair_link(fabric, other, rank)] *= factor;
        }
    }
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

/* Among GPUs that are joined pair by pair rings lie over all pairs, both ways. */
void sim_fabric_ring(const SimFabric *fabric, const uint32_t *ranks, uint32_t n, GArray *links) {
    const ModelCluster *pairs = fabric->shape.pairs;
    uint32_t gpus = 0, a_node = fabric->shape.ranks_a_node;
    for (uint32_t i = 0; i < n; i++) {
        gpus |= model_gpu_bit(ranks[i] % a_node);
    }
    bool over_pairs = pairs && model_cluster_links_share(pairs, gpus) > 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; over_pairs && k < n; k++) {
            if (pairs->nvlinks[ranks[i] % a_node][ranks[k] % a_node]) {
                uint32_t link = pair_link(fabric, ranks[i], ranks[k]);
                g_array_append_val(links, link);
            }
        }
        if (!over_pairs) {
            uint32_t path[SIM_FABRIC_LONGEST];
            uint32_t length = sim_fabric_hop(fabric, ranks[i], ranks[(i + 1) % n], path);
            g_array_append_vals(links, path, length);
        }
    }
}
