#include "cli/published/rows-gemm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const table_columns[] = {"source",
                                            "source_ref",
                                            "measured_date",
                                            "hardware",
                                            "kind",
                                            "dtype",
                                            "out_dtype",
                                            "batch",
                                            "m",
                                            "n",
                                            "k",
                                            "layout",
                                            "accumulate",
                                            "extra_shape",
                                            "time_us",
                                            "tflops",
                                            "stat",
                                            "pct_of_peak",
                                            "peak_tflops_used",
                                            "software",
                                            "value_origin",
                                            "notes",
                                            NULL};
static const char *const rule_settings[] = {
    "cluster", "skip", "fp32", "peak_share", "element_bytes", "output_bytes", "rate_share", NULL};
const CliRuleWords cli_gemm_words = {table_columns, rule_settings};

typedef struct {
    const CliCsv *csv;
    const CliCsvRow *row;
    CliPublished *published;
    GPtrArray *settings;
} Source;

static bool number(const Source *source, const char *column, double *ret_value, GError **error) {
    return cli_csv_number(source->csv, source->row, column, ret_value, error);
}

static bool setting(const Source *source, const char *key, double fallback, double *ret_value,
                    GError **error) {
    return cli_published_number(source->published, source->settings, key, fallback, ret_value,
                                error);
}

/* Takes a constant; the row is skipped for it. Returns true: no error of the table's. */
static bool skip(CliGemmRow *row, const char *why) {
    row->skipped = why;
    return true;
}

/* ---- products ------------------------------------------------------------------------------- */

static bool read_product(const Source *source, CliGemmRow *row, GError **error) {
    SimProduct *product = &row->product;
    if (!number(source, "m", &product->m, error) || !number(source, "n", &product->n, error) ||
        !number(source, "k", &product->k, error) ||
        !number(source, "batch", &product->batch, error) ||
        !setting(source, "element_bytes", 2, &product->element_bytes, error) ||
        !setting(source, "output_bytes", 2, &product->output_bytes, error)) {
        return false;
    }
    if (isnan(product->batch)) {
        product->batch = 1;
    }
    bool whole = product->batch >= 1 && product->m >= 1 && product->n >= 1 && product->k >= 1;
    return whole || skip(row, "the source does not say m, n and k");
}

/* ---- attention ------------------------------------------------------------------------------ */

/* "batch=1, seq_len=4096, ...": the number behind "name="; 0 when it is not there. */
static double shape_number(const char *shape, const char *name) {
    g_auto(GStrv) parts = g_strsplit(shape, ",", -1);
    for (char **part = parts; *part; part++) {
        char *at = g_strstrip(*part);
        if (g_str_has_prefix(at, name) && at[strlen(name)] == '=') {
            return g_ascii_strtod(at + strlen(name) + 1, NULL);
        }
    }
    return 0;
}

static bool read_attention(const Source *source, CliGemmRow *row) {
    const char *text = cli_csv_text(source->csv, source->row, "extra_shape");
    SimAttentionShape shape = {
        .batch = shape_number(text, "batch"),
        .heads = shape_number(text, "head_num"),
        .kv_heads = shape_number(text, "kv_head_num"),
        .seq = shape_number(text, "seq_len"),
        .head_dim = shape_number(text, "v_head_dim"),
        .causal = true,
        .backward = g_str_has_suffix(cli_csv_text(source->csv, source->row, "kind"), "bwd"),
    };
    row->attention = sim_attention_of(&shape);
    return (shape.batch >= 1 && shape.heads >= 1 && shape.seq >= 1 && shape.head_dim >= 1) ||
           skip(row, "the source does not say batch, seq_len, head_num and v_head_dim");
}

/* ---- rows ----------------------------------------------------------------------------------- */

static double flops_of(const CliGemmRow *row) {
    const SimProduct *p = &row->product;
    return row->is_attention ? row->attention.flops : 2 * p->batch * p->m * p->n * p->k;
}

/* The time, or what it was to be by the rate. */
static bool read_time(const Source *source, CliGemmRow *row, GError **error) {
    double tflops, share;
    if (!number(source, "time_us", &row->time_us, error) ||
        !number(source, "tflops", &tflops, error) ||
        !setting(source, "rate_share", 1, &share, error)) {
        return false;
    }
    if (isnan(row->time_us)) {
        row->time_us = flops_of(row) / (tflops * share * 1e6);
    }
    return row->time_us > 0 || skip(row, "neither a time nor a rate is given");
}

static char *label_of(const Source *source, const CliGemmRow *row) {
    const SimProduct *p = &row->product;
    return row->is_attention
               ? g_strdup_printf("batch %.0f heads %.0f seq %.0f", row->attention.batch,
                                 row->attention.heads, row->attention.seq)
               : g_strdup_printf("%.0f x %.0f x %.0f x %.0f %s", p->batch, p->m, p->n, p->k,
                                 cli_csv_text(source->csv, source->row, "layout"));
}

/* But for fp32 of 16 bits: GPUs before Ampere know fp16 alone. */
static double peak_of(const ModelCluster *cluster, bool is_fp32) {
    if (is_fp32) {
        return model_cluster_peak_flops(cluster, PLAN_FP32);
    }
    double bf16 = model_cluster_peak_flops(cluster, PLAN_BF16);
    return bf16 > 0 ? bf16 : model_cluster_peak_flops(cluster, PLAN_FP16);
}

static bool read_row(const Source *source, CliGemmRow *row, GError **error) {
    const char *kind = cli_csv_text(source->csv, source->row, "kind");
    row->line = source->row->line;
    row->skipped = cli_published_skip(source->settings);
    if (row->skipped) {
        return true;
    }
    row->cluster = cli_published_cluster(source->published, source->settings, error);
    row->is_attention = g_ascii_strncasecmp(kind, "attention", 9) == 0;
    double share, fp32;
    if (!row->cluster || !setting(source, "peak_share", 1, &share, error) ||
        !setting(source, "fp32", 0, &fp32, error) ||
        !(row->is_attention ? read_attention(source, row) : read_product(source, row, error)) ||
        !(row->skipped || read_time(source, row, error))) {
        return false;
    }
    row->is_fp32 = fp32 != 0;
    row->product.peak_flops = row->attention.peak_flops =
        peak_of(row->cluster, row->is_fp32) * share;
    if (!row->skipped && !(row->product.peak_flops > 0)) {
        return skip(row, "no cluster file says how fast this GPU is in this dtype");
    }
    row->held_out = cli_published_held_out(source->row);
    row->label = label_of(source, row);
    row->group = g_strdup_printf("%s, %s %s", cli_csv_text(source->csv, source->row, "hardware"),
                                 kind, cli_csv_text(source->csv, source->row, "dtype"));
    return true;
}

static void clear_row(gpointer data) {
    CliGemmRow *row = data;
    g_free(row->label);
    g_free(row->group);
}

GArray *cli_gemm_rows(const CliCsv *csv, CliPublished *published, GError **error) {
    g_autoptr(GArray) rows = g_array_new(FALSE, TRUE, sizeof(CliGemmRow));
    g_array_set_clear_func(rows, clear_row);
    for (unsigned i = 0; i < csv->n_rows; i++) {
        CliGemmRow row = {0};
        g_autoptr(GPtrArray) settings =
            cli_rules_apply(cli_published_rules(published), csv, &csv->rows[i], NULL, 0);
        Source source = {csv, &csv->rows[i], published, settings};
        bool good = read_row(&source, &row, error);
        g_array_append_val(rows, row);
        if (!good) {
            return NULL;
        }
    }
    return g_steal_pointer(&rows);
}

double cli_gemm_predict_us(const CliGemmRow *row, const ModelCluster *cluster) {
    if (row->is_attention) {
        return sim_attention_ns(cluster, &row->attention) / 1e3;
    }
    SimProduct product = row->product;
    product.efficiency = row->is_fp32 ? cluster->matmul_fp32_efficiency : 0;
    return sim_product_ns(cluster, &product) / 1e3;
}
