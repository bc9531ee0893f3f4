/* tests/validation/collectives.h - published collective times, and whose clusters they are of. */
#pragma once

#include "models/cluster.h"
#include "sim/cost-network.h"

typedef struct {
    char *hardware;
    const char *cluster; /* name of a file in models/clusters */
    uint32_t nodes, ranks;
    PlanOpKind kind;
    SimNcclAlgo algo; /* that the source says it was; SIM_NCCL_N_ALGOS: it does not */
    double bytes, time_us;
    bool held_out; /* of fitting: every third row, by a hash of what it is */
} CollectiveRow;

GArray *collective_rows_read(const char *path); /* CollectiveRow; of hardware that has a file */
SimNcclChoice collective_row_choice(const CollectiveRow *row, const ModelCluster *cluster);
double collective_row_predict(const CollectiveRow *row, const ModelCluster *cluster); /* us */
