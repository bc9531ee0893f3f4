/* bench/fit-train.c - the number of a GPU that only training runs tell: how fast products are in a
 * long run.
 *
 * fit-train GPU TABLE.csv...: GPU is how the model in the cluster files begins ("A100"). A step's
 * time is close to linear in the inverse of each number, so each round takes the slopes of all runs
 * by moving one number at a time, and climbs over that plane for the least mean |log(predicted /
 * measured)|, in which each table counts alike, however many runs it has. Prints keys and the
 * errors with them. To leave a table out, do not name it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/fit-runs.h"
#include "cli/calibrate/climb.h"

enum {
    ROUNDS = 3,
    TRIES = 20000,
    MOST_RUNS = 1000,
    MOST_TABLES = 20,
};

#define STEP 0.98 /* of a number, to take its slope */

typedef struct {
    const char *key;
    double start, most, value;
} Number;

static Number numbers[] = {
    {"matmul.sustained", 0.8, 1, 0},
};

enum {
    N_NUMBERS = G_N_ELEMENTS(numbers)
};

typedef struct {
    double measured, base, slope[N_NUMBERS]; /* over the inverse, relative to its value */
    guint table;
    bool is_out; /* memory is short there: its time says little of these numbers */
} Run;

typedef struct {
    FitRuns all;
    Run runs[MOST_RUNS];
    unsigned n_runs, moved;
    double factors[N_NUMBERS]; /* of the inverses */
} Fit;

static void take(gpointer self, guint table, const CliTrainRow *row) {
    Fit *fit = self;
    if (fit->n_runs == MOST_RUNS) {
        return;
    }
    Run *run = &fit->runs[fit->n_runs++];
    run->measured = row->measured_ms;
    run->table = table;
    run->is_out |= row->retries > 0;
    if (fit->moved == N_NUMBERS) {
        run->base = row->predicted_ms;
    } else {
        run->slope[fit->moved] = (row->predicted_ms - run->base) / (1 / STEP - 1);
    }
}

/* Predicts all runs of the GPU; moved: N_NUMBERS for none. */
static bool predict(Fit *fit, unsigned moved, GError **error) {
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        double value = numbers[i].value * (i == moved ? STEP : 1);
        cli_published_tune(fit->all.published, fit->all.gpu, numbers[i].key, value);
    }
    fit->n_runs = 0;
    fit->moved = moved;
    return fit_runs_predict(&fit->all, NULL, take, fit, error);
}

static double misfit(gpointer data) {
    const Fit *fit = data;
    double sums[MOST_TABLES] = {0}, mean = 0;
    unsigned runs[MOST_TABLES] = {0}, n_tables = 0;
    for (unsigned i = 0; i < fit->n_runs; i++) {
        const Run *run = &fit->runs[i];
        if (run->is_out) {
            continue;
        }
        double ms = run->base;
        for (unsigned k = 0; k < N_NUMBERS; k++) {
            ms += run->slope[k] * (fit->factors[k] - 1);
        }
        sums[run->table] += climb_miss(fmax(ms, 1e-9), run->measured);
        runs[run->table]++;
    }
    for (guint t = 0; t < fit->all.tables->len; t++) {
        mean += runs[t] ? sums[t] / runs[t] : 0;
        n_tables += runs[t] > 0;
    }
    return n_tables ? mean / n_tables : INFINITY;
}

static bool round_of(Fit *fit, GError **error) {
    ClimbKnob knobs[N_NUMBERS];
    if (!predict(fit, N_NUMBERS, error)) {
        return false;
    }
    for (unsigned k = 0; k < N_NUMBERS; k++) {
        if (!predict(fit, k, error)) {
            return false;
        }
        knobs[k] = (ClimbKnob){
            numbers[k].key, &fit->factors[k], 1, 0.1, numbers[k].value / numbers[k].most, 10};
    }
    climb(knobs, N_NUMBERS, TRIES, misfit, fit);
    for (unsigned k = 0; k < N_NUMBERS; k++) {
        numbers[k].value /= fit->factors[k];
    }
    return true;
}

static void print_result(const Fit *fit) {
    double errors[MOST_RUNS];
    unsigned n = 0;
    for (unsigned k = 0; k < N_NUMBERS; k++) {
        printf("%s = %.3g\n", numbers[k].key, numbers[k].value);
    }
    for (unsigned i = 0; i < fit->n_runs; i++) {
        if (!fit->runs[i].is_out) {
            errors[n++] = fabs(fit->runs[i].base / fit->runs[i].measured - 1);
        }
    }
    g_autofree char *what = g_strdup_printf("%u runs", n);
    climb_print_errors(what, errors, n);
}

static bool run(Fit *fit, GError **error) {
    for (unsigned k = 0; k < N_NUMBERS; k++) {
        numbers[k].value = numbers[k].start;
        fit->factors[k] = 1;
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (!round_of(fit, error)) {
            return false;
        }
    }
    return predict(fit, N_NUMBERS, error);
}

int main(int argc, char **argv) {
    if (argc < 3 || argc - 2 > MOST_TABLES) {
        fprintf(stderr, "usage: fit-train GPU TABLE.csv...\n");
        return 2;
    }
    g_autoptr(GError) error = NULL;
    g_autofree Fit *fit = g_new0(Fit, 1);
    bool good = fit_runs_open(&fit->all, argv[1], argv + 2, argc - 2, &error) && run(fit, &error);
    if (good) {
        print_result(fit);
    } else {
        fprintf(stderr, "fit-train: %s\n", error->message);
    }
    fit_runs_clear(&fit->all);
    return good ? 0 : 2;
}
