/* cli/published/rows-gemm.h - published times of matrix products and attention, and ours. */
#pragma once

#include "cli/published/published.h"
#include "sim/costs/attention.h"
#include "sim/costs/product.h"

extern const CliRuleWords cli_gemm_words;

typedef struct {
    unsigned line;
    const char *skipped; /* why; then nothing else is set */
    const ModelCluster *cluster;
    bool is_attention;
    bool is_fp32;           /* a product on the ordinary cores */
    SimProduct product;     /* its peak: */
    SimAttention attention; /* of the cluster when it was read */
    double time_us;
    bool held_out;
    char *label, *group; /* the shape; GPU, kind and dtype */
} CliGemmRow;

/* CliGemmRow; clears them when freed. The rows' clusters are published's. */
GArray *cli_gemm_rows(const CliCsv *csv, CliPublished *published, GError **error);
double cli_gemm_predict_us(const CliGemmRow *row, const ModelCluster *cluster);
