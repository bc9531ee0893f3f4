/* bench/fit-collectives.c - the four measured factors of a cluster's collectives, from published
 * times.
 *
 * fit-collectives CLUSTER ROWS.csv near|far: hill climbing from a fixed seed over the rows
 * that are not held out, least mean |log(predicted / measured)|. Prints the keys for the file and
 * the error of the rows held out. A fit of physics: four numbers for all sizes, groups and
 * operations of a fabric; over a network no more bandwidth than the NICs have.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/calibrate/climb.h"
#include "cli/published/rows-collectives.h"
#include "cli/source/data-dir.h"

enum {
    TRIES = 20000
};

typedef struct {
    const GArray *rows;
    const ModelCluster *cluster;
    bool far;
} Asked;

static bool is_asked(const CliCollectiveRow *row, const ModelCluster *cluster, bool far) {
    return !row->skipped && g_str_equal(row->cluster->name, cluster->name) &&
           (row->nodes > 1) == far;
}

static double misfit(gpointer data) {
    const Asked *asked = data;
    double sum = 0;
    unsigned n = 0;
    for (guint i = 0; i < asked->rows->len; i++) {
        const CliCollectiveRow *row = &g_array_index(asked->rows, CliCollectiveRow, i);
        if (is_asked(row, asked->cluster, asked->far) && !row->held_out) {
            sum += climb_miss(cli_collective_predict_us(row, asked->cluster), row->time_us);
            n++;
        }
    }
    return n ? sum / n : INFINITY;
}

static void print_error(const GArray *rows, const ModelCluster *cluster, bool far, bool held_out,
                        const char *by) {
    g_autofree double *errors = g_new(double, rows->len + 1);
    unsigned n = 0;
    for (guint i = 0; i < rows->len; i++) {
        const CliCollectiveRow *row = &g_array_index(rows, CliCollectiveRow, i);
        if (is_asked(row, cluster, far) && row->held_out == held_out) {
            errors[n++] = fabs(cli_collective_predict_us(row, cluster) / row->time_us - 1);
        }
    }
    g_autofree char *what =
        g_strdup_printf("%s, %s: %u rows", by, held_out ? "held out" : "fitted", n);
    climb_print_errors(what, errors, n);
}

static void fit(const Asked *asked, ModelCluster *c) {
    bool far = asked->far;
    ClimbKnob knobs[] = {
        {"extra_us", far ? &c->collectives_far_extra_us : &c->collectives_extra_us, 10, 4, 0,
         INFINITY},
        {"latency_factor",
         far ? &c->collectives_far_latency_factor : &c->collectives_latency_factor, 1, 0.2, 0.1,
         INFINITY},
        {"bandwidth_factor",
         far ? &c->collectives_far_bandwidth_factor : &c->collectives_bandwidth_factor, 0.95, 0.05,
         0.1, far ? 1 : INFINITY},
        {"ramp_factor", far ? &c->collectives_far_ramp_factor : &c->collectives_ramp_factor, 0, 0.2,
         0, INFINITY},
    };
    climb(knobs, G_N_ELEMENTS(knobs), TRIES, misfit, (gpointer)asked);
    climb_print(knobs, G_N_ELEMENTS(knobs), far ? "far_" : "");
}

int main(int argc, char **argv) {
    g_autoptr(GError) error = NULL;
    if (argc != 4 || (!g_str_equal(argv[3], "near") && !g_str_equal(argv[3], "far"))) {
        fprintf(stderr, "usage: fit-collectives CLUSTER ROWS.csv near|far\n");
        return 2;
    }
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, argv[1], &error);
    g_autoptr(ModelCluster) cluster = path ? model_cluster_read_file(path, &error) : NULL;
    g_autoptr(CliPublished) published =
        cluster ? cli_published_open("collectives", &cli_collective_words, &error) : NULL;
    g_autoptr(CliCsv) csv = published ? cli_csv_read(argv[2], &error) : NULL;
    g_autoptr(GArray) rows = csv ? cli_collective_rows(csv, published, &error) : NULL;
    if (!rows) {
        fprintf(stderr, "fit-collectives: %s\n", error->message);
        return 2;
    }
    Asked asked = {rows, cluster, g_str_equal(argv[3], "far")};
    static const char *const by[] = {"as the file has it", "as fitted"};
    for (unsigned i = 0; i < G_N_ELEMENTS(by); i++) {
        if (i > 0) {
            fit(&asked, cluster);
        }
        print_error(rows, cluster, asked.far, false, by[i]);
        print_error(rows, cluster, asked.far, true, by[i]);
    }
    return 0;
}
