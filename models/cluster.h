/* models/cluster.h - a machine to predict on: its GPUs, hosts and links, and how good each really
 * is.
 *
 * Read from an ini file in which each number stands beside its source; models/cluster-keys.def
 * lists the keys. A cluster knows times and no plan.
 *
 * Owns: its strings. Threads: const after reading, so any number.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/dtype.h"
#include "plan/files/ini.h"
#include "plan/op/op.h"

typedef enum {
    MODEL_DEVICE_GPU,
    MODEL_DEVICE_CPU
} ModelDeviceKind;

enum {
    MODEL_MOST_LINKED = 8,  /* GPUs that NVLinks of their own join, without a switch */
    MODEL_MOST_BESIDE = 32, /* GPUs of a node that has such: a set of them is a uint32_t */
};

typedef struct _ModelCluster ModelCluster;
struct _ModelCluster {
    char *name;   /* of the file, without folder and ending; of a kind of node: the kind's */
    char *title;  /* one line for people */
    char *model;  /* of the device: "A100-SXM4-80GB" */
    char *digest; /* of its file and those it is like, "sha256:...", by which a trace knows it
                   * again; NULL: no file */
    ModelDeviceKind device_kind;
    char *nccl_algo, *nccl_proto; /* forced, as NCCL_ALGO and NCCL_PROTO; NULL: NCCL chooses */
#define COUNT(section, key, ...) uint64_t section##_##key;
#define REAL(section, key, ...)  double section##_##key;
#include "models/cluster-keys.def"
#undef COUNT
#undef REAL
    /* [kernels]: what an op kind's bytes go at where that was measured, in GB/s; 0: as any other */
    double kernel_gb_per_s[PLAN_N_OP_KINDS];
    /* [intra_node] nvlinks: how many join each two GPUs of a node; without them a switch does, or
     * PCIe. */
    bool has_nvlinks;
    uint8_t nvlinks[MODEL_MOST_LINKED][MODEL_MOST_LINKED];
    /* [nodes NAME]: nodes that differ, each kind a cluster of its own that has no kinds. */
    ModelCluster **kinds;
    uint32_t n_kinds;
    uint32_t
        *kind_of_node; /* topology_nodes, where there are kinds; 0: none of them, 1: kinds[0] */
};

/* Errors read "FILE:LINE: what is wrong; what to do". */
ModelCluster *model_cluster_read(const char *text, gsize length, const char *file_name,
                                 GError **error);
ModelCluster *model_cluster_read_file(const char *path, GError **error);
/* The path of the file that a cluster's name means; errors say which names are near. Transfer
 * full. */
typedef char *(*ModelClusterFind)(const char *name, GError **error);
/* The same where a file may be `like` a cluster that `find` has, not only like one beside it. */
ModelCluster *model_cluster_read_file_with(const char *path, ModelClusterFind find, GError **error);
/* A file's text, in which what others say that it is like is written out, sources and all. Transfer
 * full. */
char *model_cluster_whole_text(const char *path, ModelClusterFind find, GError **error);
ModelCluster *model_cluster_copy(const ModelCluster *cluster);
/* Gives the number that `name` says ("section.key") the entry's value; errors name the entry's
 * line. */
bool model_cluster_set(ModelCluster *cluster, const char *name, const PlanIni *ini,
                       const PlanIniEntry *entry, GError **error);
/* Whether there is such a number, and what it is; 0 of many means that another stands for it. */
bool model_cluster_number(const ModelCluster *cluster, const char *name, double *ret_number,
                          bool *ret_is_whole);
/* After numbers were set, whether all still go together. entries (PlanIniEntry const *) are those
 * that set them; an error names the last one that is part of what is wrong. */
bool model_cluster_check_set(const ModelCluster *cluster, const PlanIni *ini,
                             const GPtrArray *entries, GError **error);
/* As NCCL_ALGO and NCCL_PROTO would; NULL: NCCL chooses. */
void model_cluster_force_nccl(ModelCluster *cluster, const char *algo, const char *proto);
/* A number that differs, "host.record_us=2"; of a network's rate also in the bits that networks are
 * sold in. Transfer full. */
char *model_cluster_number_text(const char *name, const char *value);
void model_cluster_free(ModelCluster *cluster); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ModelCluster, model_cluster_free)

/* The machine that a node is: the cluster itself, or the kind that the node is of. */
const ModelCluster *model_cluster_node(const ModelCluster *cluster, uint64_t node);
/* One kind of its nodes: 0 as most of it is said, the cluster itself; 1 kinds[0]. What is asked or
 * changed of all its machines is of each from 0 to n_kinds. */
ModelCluster *model_cluster_kind(const ModelCluster *cluster, uint32_t kind);
/* A cluster whose nodes are all of that kind. Transfer full. */
ModelCluster *model_cluster_of_kind(const ModelCluster *cluster, uint32_t kind);
uint64_t model_cluster_ranks(const ModelCluster *cluster); /* how many it has place for */
/* Peak in operations a second; 0 when the device cannot compute in this dtype. */
double model_cluster_peak_flops(const ModelCluster *cluster, PlanDtype dtype);
/* The same of products in float8 with a scale for each 32 numbers. */
double model_cluster_mxfp8_flops(const ModelCluster *cluster);
/* Keys that are as another where a file does not say them (0): settled when asked, so that whoever
 * changes the other, a kind of node say, changes both. */
double model_cluster_attention_efficiency(const ModelCluster *cluster, bool backward);
double model_cluster_reduction_efficiency(const ModelCluster *cluster);
double model_cluster_bus_gb_per_s(const ModelCluster *cluster, bool adds);
double model_cluster_core_gb_per_s(const ModelCluster *cluster, bool adds);
/* The bit of a GPU, by its place in its node, in a set of them. On a switch, where nobody asks
 * which they are, the last ones share one. */
static inline uint32_t model_gpu_bit(uint64_t place) {
    return 1u << MIN(place, MODEL_MOST_BESIDE - 1);
}
/* Which share of a node's rings NCCL finds among some of its GPUs: 1 on a switch; 0 where NVLinks
 * leave some of them apart, so that rings take PCIe. */
double model_cluster_links_share(const ModelCluster *cluster, uint32_t gpus);
/* PyTorch 2.0 to 2.13, aten/src/ATen/cuda/CublasHandlePool.cpp: a workspace for each cuBLAS handle
 * and stream, of 4096 KiB twice and 16 KiB eight times, or since Hopper of 4096 KiB eight times. */
enum {
    MODEL_CUBLAS_BYTES = (2 * 4096 + 8 * 16) * 1024,
    MODEL_CUBLAS_BYTES_SINCE_HOPPER = 8 * 4096 * 1024
};
/* What matrix products hold of PyTorch's allocator all along, beside what a plan asks for. */
uint64_t model_cluster_workspace_bytes(const ModelCluster *cluster);
/* These, and what contexts and libraries take for themselves. */
uint64_t model_cluster_outside_bytes(const ModelCluster *cluster);
/* Whether it can have other numbers of nodes. */
bool model_cluster_can_grow(const ModelCluster *cluster);
/* What one of its ranks computes on, in words: "GPU", or where it has none "rank". */
const char *model_cluster_device_word(const ModelCluster *cluster);
/* What is left of the device's memory to what a plan asks for. */
uint64_t model_cluster_allocator_bytes(const ModelCluster *cluster);
