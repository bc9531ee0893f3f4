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

#include "cli/calibrate/climb.h"
#include "cli/validate/rows-train.h"

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
    CliPublished *published;
    const char *gpu;
    GPtrArray *tables; /* CliCsv */
    Run runs[MOST_RUNS];
    unsigned n_runs;
    double factors[N_NUMBERS]; /* of the inverses */
} Fit;

static void tune(Fit *fit, unsigned moved) {
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        double value = numbers[i].value * (i == moved ? STEP : 1);
        cli_published_tune(fit->published, fit->gpu, numbers[i].key, value);
    }
}

static bool is_asked(const CliTrainRow *row, const Fit *fit) {
    return !row->skipped && row->gpu && g_str_has_prefix(row->gpu, fit->gpu) &&
           !isnan(row->measured_ms);
}

/* Predicts all runs of the GPU; moved: N_NUMBERS for none. */
static bool predict(Fit *fit, unsigned moved, GError **error) {
    unsigned n = 0;
    tune(fit, moved);
    for (guint t = 0; t < fit->tables->len; t++) {
        const CliCsv *csv = fit->tables->pdata[t];
        for (unsigned i = 0; i < csv->n_rows; i++) {
            CliTrainRow row;
            if (!cli_train_predict(csv, &csv->rows[i], fit->published, false, &row, error)) {
                return false;
            }
            if (is_asked(&row, fit) && n < MOST_RUNS) {
                Run *run = &fit->runs[n++];
                run->measured = row.measured_ms;
                run->table = t;
                run->is_out |= row.retries > 0;
                if (moved == N_NUMBERS) {
                    run->base = row.predicted_ms;
                } else {
                    run->slope[moved] = (row.predicted_ms - run->base) / (1 / STEP - 1);
                }
            }
            cli_train_row_clear(&row);
        }
    }
    fit->n_runs = n;
    return true;
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
    for (guint t = 0; t < fit->tables->len; t++) {
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

static void free_csv(gpointer csv) {
    cli_csv_free(csv);
}

int main(int argc, char **argv) {
    if (argc < 3 || argc - 2 > MOST_TABLES) {
        fprintf(stderr, "usage: fit-train GPU TABLE.csv...\n");
        return 2;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(CliPublished) published = cli_published_open("train", &cli_train_words, &error);
    g_autoptr(GPtrArray) tables = g_ptr_array_new_with_free_func(free_csv);
    g_autofree Fit *fit = g_new0(Fit, 1);
    *fit = (Fit){.published = published, .gpu = argv[1], .tables = tables};
    bool good = published != NULL;
    for (int i = 2; good && i < argc; i++) {
        CliCsv *csv = cli_csv_read(argv[i], &error);
        good = csv && cli_train_check(csv, &error);
        g_ptr_array_add(tables, csv);
    }
    if (!good || !run(fit, &error)) {
        fprintf(stderr, "fit-train: %s\n", error->message);
        return 2;
    }
    print_result(fit);
    return 0;
}
