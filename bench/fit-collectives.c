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

#include "tests/validation/collectives.h"

enum {
    TRIES = 20000
};

typedef struct {
    const char *key;
    double *near, *far, step, least, far_most;
} Factor;

static bool is_asked(const CollectiveRow *row, const ModelCluster *cluster, bool far) {
    return g_str_equal(row->cluster, cluster->name) && (row->nodes > 1) == far;
}

static double misfit(const GArray *rows, const ModelCluster *cluster, bool far) {
    double sum = 0;
    unsigned n = 0;
    for (guint i = 0; i < rows->len; i++) {
        const CollectiveRow *row = &g_array_index(rows, CollectiveRow, i);
        if (is_asked(row, cluster, far) && !row->held_out) {
            sum += MIN(1, fabs(log(collective_row_predict(row, cluster) / row->time_us)));
            n++;
        }
    }
    return n ? sum / n : INFINITY;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
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
    qsort(errors, n, sizeof *errors, by_value);
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
    Factor factors[] = {
        {"extra_us", &cluster->collectives_extra_us, &cluster->collectives_far_extra_us, 4, 0,
         INFINITY},
        {"latency_factor", &cluster->collectives_latency_factor,
         &cluster->collectives_far_latency_factor, 0.2, 0.1, INFINITY},
        {"bandwidth_factor", &cluster->collectives_bandwidth_factor,
         &cluster->collectives_far_bandwidth_factor, 0.05, 0.1, 1},
        {"ramp_factor", &cluster->collectives_ramp_factor, &cluster->collectives_far_ramp_factor,
         0.2, 0, INFINITY},
    };
    static const double start[] = {10, 1, 0.95, 0};
    for (unsigned k = 0; k < G_N_ELEMENTS(factors); k++) {
        *(far ? factors[k].far : factors[k].near) = start[k];
    }
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    double least = misfit(rows, cluster, far);
    for (unsigned i = 0; i < TRIES; i++) {
        double old[G_N_ELEMENTS(factors)];
        for (unsigned k = 0; k < G_N_ELEMENTS(factors); k++) {
            double *value = far ? factors[k].far : factors[k].near;
            old[k] = *value;
            double jump = factors[k].step * pow(0.1, g_rand_double_range(rand, 0, 2));
            double moved = *value + jump * g_rand_double_range(rand, -2, 2);
            *value = CLAMP(moved, factors[k].least, far ? factors[k].far_most : INFINITY);
        }
        double now = misfit(rows, cluster, far);
        for (unsigned k = 0; k < G_N_ELEMENTS(factors) && now >= least; k++) {
            *(far ? factors[k].far : factors[k].near) = old[k];
        }
        least = MIN(least, now);
    }
    for (unsigned k = 0; k < G_N_ELEMENTS(factors); k++) {
        printf("%s%s = %.3g\n", far ? "far_" : "", factors[k].key,
               *(far ? factors[k].far : factors[k].near));
    }
    print_error(rows, cluster, far, false);
    print_error(rows, cluster, far, true);
    return 0;
}
