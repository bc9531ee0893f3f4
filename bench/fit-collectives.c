/* bench/fit-collectives.c - the four measured factors of a cluster's collectives, from published
 * times.
 *
 * fit-collectives CLUSTER.ini ROWS.csv [near|far]: hill climbing from a fixed seed over the rows
 * that are not held out, least mean |log(predicted / measured)|. Prints the keys for the file and
 * the error of the rows held out. A fit of physics: four numbers for all sizes, groups and
 * operations of a fabric; over a network no more bandwidth than the NICs have.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/climb.h"
#include "tests/validation/collectives.h"

enum {
    TRIES = 20000
};

typedef struct {
    const GArray *rows;
    const ModelCluster *cluster;
    bool far;
} Asked;

static bool is_asked(const CollectiveRow *row, const ModelCluster *cluster, bool far) {
    return g_str_equal(row->cluster, cluster->name) && (row->nodes > 1) == far;
}

static double misfit(gpointer data) {
    const Asked *asked = data;
    double sum = 0;
    unsigned n = 0;
    for (guint i = 0; i < asked->rows->len; i++) {
        const CollectiveRow *row = &g_array_index(asked->rows, CollectiveRow, i);
        if (is_asked(row, asked->cluster, asked->far) && !row->held_out) {
            sum += MIN(1, fabs(log(collective_row_predict(row, asked->cluster) / row->time_us)));
            n++;
        }
    }
    return n ? sum / n : INFINITY;
}

static void print_error(const GArray *rows, const ModelCluster *cluster, bool far, bool held_out) {
    g_autofree double *errors = g_new(double, rows->len + 1);
    unsigned n = 0;
    for (guint i = 0; i < rows->len; i++) {
        const CollectiveRow *row = &g_array_index(rows, CollectiveRow, i);
        if (is_asked(row, cluster, far) && row->held_out == held_out) {
            errors[n++] = fabs(collective_row_predict(row, cluster) / row->time_us - 1);
        }
    }
    climb_sort(errors, n);
    printf("# %s: %u rows, median error %.1f %%, 90th percentile %.1f %%\n",
           held_out ? "held out" : "fitted", n, n ? errors[n / 2] * 100 : 0,
           n ? errors[n * 9 / 10] * 100 : 0);
}

int main(int argc, char **argv) {
    g_autoptr(GError) error = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: fit-collectives CLUSTER.ini ROWS.csv [near|far]\n");
        return 2;
    }
    g_autoptr(ModelCluster) cluster = model_cluster_read_file(argv[1], &error);
    if (!cluster) {
        fprintf(stderr, "fit-collectives: %s\n", error->message);
        return 2;
    }
    bool far = argc > 3 && g_str_equal(argv[3], "far");
    g_autoptr(GArray) rows = collective_rows_read(argv[2]);
    ModelCluster *c = cluster;
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
    Asked asked = {rows, cluster, far};
    climb(knobs, G_N_ELEMENTS(knobs), TRIES, misfit, &asked);
    climb_print(knobs, G_N_ELEMENTS(knobs), far ? "far_" : "");
    print_error(rows, cluster, far, false);
    print_error(rows, cluster, far, true);
    return 0;
}
