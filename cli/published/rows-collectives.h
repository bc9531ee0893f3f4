/* cli/published/rows-collectives.h - published times of collectives, and ours. */
#pragma once

#include "cli/published/published.h"
#include "sim/costs/network.h"

extern const CliRuleWords cli_collective_words;

typedef struct {
    unsigned line;
    const char *skipped; /* why; then nothing else is set */
    const ModelCluster *cluster;
    uint32_t nodes, ranks;
    PlanOpKind kind;
    SimNcclAlgo algo; /* that the source says it was; SIM_NCCL_N_ALGOS: it does not */
    double bytes, time_us;
    double nic_gb_per_s; /* that the source says; 0: as the cluster file */
    bool held_out;
    char *label, *group; /* kind and size; hardware and nodes */
} CliCollectiveRow;

/* CliCollectiveRow; clears them when freed. The rows' clusters are published's. */
GArray *cli_collective_rows(const CliCsv *csv, CliPublished *published, GError **error);
SimNcclChoice cli_collective_choice(const CliCollectiveRow *row, const ModelCluster *cluster);
double cli_collective_predict_us(const CliCollectiveRow *row, const ModelCluster *cluster);
