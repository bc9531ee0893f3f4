/* bench/fit-gemm.c - a GPU's numbers for matrix products and attention, from published times.
 *
 * fit-gemm CLUSTER ROWS.csv products|attention: hill climbing from a fixed seed over the rows of
 * that GPU that are not held out, least mean |log(predicted / measured)|. Prints the keys for the
 * cluster's file and the error of the rows held out. What is fitted is physics
 * (sim/costs/product.h, attention.h): a few numbers for all shapes of a GPU. Of 16-bit products
 * alone, which is what plans compute in; the slowdown of long products is fitted where the
 * cluster's file has one. Starts are at most 6 us, below which the shortest kernels of every source
 * stay; more would be its own measuring.
 */
#include <math.h>
#include <stdio.h>

#include "cli/calibrate/climb.h"
#include "cli/published/rows-gemm.h"
#include "cli/source/data-dir.h"

enum {
    TRIES = 3000
};

typedef struct {
    const GArray *rows;
    const ModelCluster *cluster;
    bool attention;
} Asked;

static bool is_asked(const CliGemmRow *row, const Asked *asked) {
    return !row->skipped && row->is_attention == asked->attention &&
           g_str_equal(row->cluster->name, asked->cluster->name) &&
           (asked->attention || row->product.element_bytes == 2);
}

static double misfit(gpointer data) {
    const Asked *asked = data;
    double sum = 0;
    unsigned n = 0;
    for (guint i = 0; i < asked->rows->len; i++) {
        const CliGemmRow *row = &g_array_index(asked->rows, CliGemmRow, i);
        if (is_asked(row, asked) && !row->held_out) {
            sum += climb_miss(cli_gemm_predict_us(row, asked->cluster), row->time_us);
            n++;
        }
    }
    return n ? sum / n : INFINITY;
}

static void print_error(const Asked *asked, bool held_out) {
    g_autofree double *errors = g_new(double, asked->rows->len + 1);
    unsigned n = 0;
    for (guint i = 0; i < asked->rows->len; i++) {
        const CliGemmRow *row = &g_array_index(asked->rows, CliGemmRow, i);
        if (is_asked(row, asked) && row->held_out == held_out) {
            errors[n++] = fabs(cli_gemm_predict_us(row, asked->cluster) / row->time_us - 1);
        }
    }
    g_autofree char *what = g_strdup_printf("%s: %u rows", held_out ? "held out" : "fitted", n);
    climb_print_errors(what, errors, n);
}

static void fit(const Asked *asked, ModelCluster *cluster) {
    ClimbKnob products[] = {
        {"matmul_efficiency", &cluster->device_matmul_efficiency, 0.8, 0.05, 0.1, 1},
        {"start_us", &cluster->matmul_start_us, 4, 1, 0, 6},
        {"tile_us", &cluster->matmul_tile_us, 1, 0.3, 0, INFINITY},
        {"split_us", &cluster->matmul_split_us, 2, 0.5, 0, INFINITY},
        {"feed_gb_per_s", &cluster->matmul_feed_gb_per_s, 200, 50, 60, INFINITY},
        {"hot_slowdown", &cluster->matmul_hot_slowdown, 0.1, 0.1, 0, 2},
        {"hot_after_us", &cluster->matmul_hot_after_us, 200, 50, 10, 1000},
    };
    ClimbKnob attention[] = {
        {"attention_efficiency", &cluster->device_attention_efficiency, 0.5, 0.05, 0.1, 1},
        {"attention_backward_efficiency", &cluster->device_attention_backward_efficiency, 0.5, 0.05,
         0.1, 1},
        {"start_us", &cluster->attention_start_us, 10, 5, 0, INFINITY},
        {"tail_share", &cluster->attention_tail_share, 0.4, 0.2, 0, 1},
    };
    ClimbKnob *knobs = asked->attention ? attention : products;
    unsigned n_products = G_N_ELEMENTS(products) - (cluster->matmul_hot_slowdown > 0 ? 0 : 2);
    unsigned n = asked->attention ? G_N_ELEMENTS(attention) : n_products;
    climb(knobs, n, TRIES, misfit, (gpointer)asked);
    climb_print(knobs, n, "");
}

int main(int argc, char **argv) {
    g_autoptr(GError) error = NULL;
    if (argc != 4 || (!g_str_equal(argv[3], "products") && !g_str_equal(argv[3], "attention"))) {
        fprintf(stderr, "usage: fit-gemm CLUSTER ROWS.csv products|attention\n");
        return 2;
    }
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, argv[1], &error);
    g_autoptr(ModelCluster) cluster = path ? model_cluster_read_file(path, &error) : NULL;
    g_autoptr(CliPublished) published =
        cluster ? cli_published_open("gemm", &cli_gemm_words, &error) : NULL;
    g_autoptr(CliCsv) csv = published ? cli_csv_read(argv[2], &error) : NULL;
    g_autoptr(GArray) rows = csv ? cli_gemm_rows(csv, published, &error) : NULL;
    if (!rows) {
        fprintf(stderr, "fit-gemm: %s\n", error->message);
        return 2;
    }
    Asked asked = {rows, cluster, g_str_equal(argv[3], "attention")};
    fit(&asked, cluster);
    print_error(&asked, false);
    print_error(&asked, true);
    return 0;
}
