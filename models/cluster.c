#include "models/cluster.h"

ModelCluster *model_cluster_copy(const ModelCluster *cluster) {
    ModelCluster *copy = g_memdup2(cluster, sizeof *cluster);
    copy->name = g_strdup(cluster->name);
    copy->title = g_strdup(cluster->title);
    copy->model = g_strdup(cluster->model);
    copy->digest = g_strdup(cluster->digest);
    copy->nccl_algo = g_strdup(cluster->nccl_algo);
    copy->nccl_proto = g_strdup(cluster->nccl_proto);
    copy->kinds = g_new0(ModelCluster *, cluster->n_kinds);
    for (uint32_t i = 0; i < cluster->n_kinds; i++) {
        copy->kinds[i] = model_cluster_copy(cluster->kinds[i]);
    }
    copy->kind_of_node =
        g_memdup2(cluster->kind_of_node,
                  cluster->kind_of_node ? cluster->topology_nodes * sizeof(uint32_t) : 0);
    return copy;
}

static void forget_kinds(ModelCluster *cluster) {
    for (uint32_t i = 0; i < cluster->n_kinds; i++) {
        model_cluster_free(cluster->kinds[i]);
    }
    g_clear_pointer(&cluster->kinds, g_free);
    g_clear_pointer(&cluster->kind_of_node, g_free);
    cluster->n_kinds = 0;
}

ModelCluster *model_cluster_kind(const ModelCluster *cluster, uint32_t kind) {
    return kind ? cluster->kinds[kind - 1] : (ModelCluster *)cluster;
}

ModelCluster *model_cluster_of_kind(const ModelCluster *cluster, uint32_t kind) {
    ModelCluster *one = model_cluster_copy(model_cluster_kind(cluster, kind));
    forget_kinds(one);
    return one;
}

void model_cluster_force_nccl(ModelCluster *cluster, const char *algo, const char *proto) {
    for (uint32_t kind = 0; kind <= cluster->n_kinds; kind++) {
        ModelCluster *machine = model_cluster_kind(cluster, kind);
        g_free(machine->nccl_algo);
        g_free(machine->nccl_proto);
        machine->nccl_algo = g_strdup(algo);
        machine->nccl_proto = g_strdup(proto);
    }
}

void model_cluster_free(ModelCluster *cluster) {
    if (cluster) {
        g_free(cluster->name);
        g_free(cluster->title);
        g_free(cluster->model);
        g_free(cluster->digest);
        g_free(cluster->nccl_algo);
        g_free(cluster->nccl_proto);
        forget_kinds(cluster);
        g_free(cluster);
    }
}

double model_cluster_attention_efficiency(const ModelCluster *cluster, bool backward) {
    double own = cluster->device_attention_backward_efficiency;
    return backward && own > 0 ? own : cluster->device_attention_efficiency;
}

double model_cluster_reduction_efficiency(const ModelCluster *cluster) {
    double own = cluster->device_reduction_efficiency;
    return own > 0 ? own : cluster->device_memory_efficiency;
}

double model_cluster_bus_gb_per_s(const ModelCluster *cluster, bool adds) {
    double own = cluster->intra_node_reduce_bus_gb_per_s;
    return adds && own > 0 ? own : cluster->intra_node_bus_gb_per_s;
}

double model_cluster_core_gb_per_s(const ModelCluster *cluster, bool adds) {
    double own = cluster->collectives_reduce_core_gb_per_s;
    return adds && own > 0 ? own : cluster->collectives_core_gb_per_s;
}

uint64_t model_cluster_ranks(const ModelCluster *cluster) {
    return cluster->topology_nodes * cluster->topology_gpus_per_node;
}

double model_cluster_peak_flops(const ModelCluster *cluster, PlanDtype dtype) {
    switch (dtype) {
    case PLAN_FP32:
        return cluster->device_matmul_fp32_tflops * 1e12;
    case PLAN_BF16:
        return cluster->device_matmul_bf16_tflops * 1e12;
    case PLAN_FP16:
        return cluster->device_matmul_fp16_tflops * 1e12;
    case PLAN_E4M3:
    case PLAN_E5M2: /* CPU ranks widen them, as they do 16 bits */
        return (cluster->device_matmul_fp8_tflops > 0 || cluster->device_kind == MODEL_DEVICE_GPU
                    ? cluster->device_matmul_fp8_tflops
                    : cluster->device_matmul_bf16_tflops) *
               1e12;
    case PLAN_FP64:
    case PLAN_INT64:
    case PLAN_INT32:
    case PLAN_UINT8:
    case PLAN_N_DTYPES:
        break;
    }
    return 0;
}

double model_cluster_mxfp8_flops(const ModelCluster *cluster) {
    return cluster->device_matmul_mxfp8_tflops > 0 || cluster->device_kind == MODEL_DEVICE_GPU
               ? cluster->device_matmul_mxfp8_tflops * 1e12
               : model_cluster_peak_flops(cluster, PLAN_BF16);
}

/* Forward's thread and backward's have a handle each; both compute on one stream. */
uint64_t model_cluster_workspace_bytes(const ModelCluster *cluster) {
    const uint64_t handles = 2;
    if (cluster->device_compute_capability == 0) {
        return 0;
    }
    return handles * (cluster->device_compute_capability < 90 ? MODEL_CUBLAS_BYTES
                                                              : MODEL_CUBLAS_BYTES_SINCE_HOPPER);
}

uint64_t model_cluster_outside_bytes(const ModelCluster *cluster) {
    return cluster->device_outside_allocator_bytes + model_cluster_workspace_bytes(cluster);
}

bool model_cluster_can_grow(const ModelCluster *cluster) {
    return cluster->n_kinds == 0 && cluster->inter_node_nic_gb_per_s > 0;
}

const char *model_cluster_device_word(const ModelCluster *cluster) {
    return cluster->device_kind == MODEL_DEVICE_GPU ? "GPU" : "rank";
}

uint64_t model_cluster_allocator_bytes(const ModelCluster *cluster) {
    uint64_t outside = model_cluster_outside_bytes(cluster);
    return cluster->device_memory_bytes > outside ? cluster->device_memory_bytes - outside : 0;
}
