/* bench/fit-machine.c - a machine whose network nobody has measured, by the training runs on it.
 *
 * fit-machine GPU TABLE.csv...: GPU is how the model in the machine's cluster file begins. Finds
 * what its GPUs keep up in a long run and what its collectives over nodes take, relative to NCCL's
 * own expectation, by the least mean |log(predicted / measured)| of two runs in three; the others
 * are held out and their errors printed beside. Every try predicts all runs: some minutes.
 */
#include <math.h>
#include <stdio.h>

#include "cli/calibrate/climb.h"
#include "cli/validate/rows-train.h"

enum {
    TRIES = 150,
    MOST_RUNS = 1000
};

typedef struct {
    const char *key;
    double start, step, least, most, value;
} Number;

/* From where a switched fabric of Perlmutter's size stands (a100-perlmutter.ini). */
static Number numbers[] = {
    {"matmul.sustained", 0.8, 0.05, 0.3, 1, 0},
    {"collectives.far_latency_factor", 1.08, 1.5, 0.1, 20, 0},
    {"collectives.far_bandwidth_factor", 1, 0.2, 0.1, 3, 0},
    {"collectives.far_ramp_factor", 1.59, 1, 0, 20, 0},
};

typedef struct {
    CliPublished *published;
    const char *gpu;
    GPtrArray *tables;        /* CliCsv */
    double errors[MOST_RUNS]; /* first predicted over measured */
    unsigned n;
    bool is_held_out; /* which runs are asked for */
    GError *error;
} Fit;

/* The misses of the runs that are asked for; those whose memory is short say little of the rest. */
static bool predict(Fit *fit) {
    fit->n = 0;
    for (unsigned k = 0; k < G_N_ELEMENTS(numbers); k++) {
        cli_published_tune(fit->published, fit->gpu, numbers[k].key, numbers[k].value);
    }
    for (guint t = 0; t < fit->tables->len; t++) {
        const CliCsv *csv = fit->tables->pdata[t];
        for (unsigned i = 0; i < csv->n_rows && fit->n < MOST_RUNS; i++) {
            CliTrainRow row;
            if (cli_published_held_out(&csv->rows[i]) != fit->is_held_out) {
                continue;
            }
            if (!cli_train_predict(csv, &csv->rows[i], fit->published, false, &row, &fit->error)) {
                return false;
            }
            if (!row.skipped && g_str_has_prefix(row.gpu, fit->gpu) && !isnan(row.measured_ms) &&
                row.retries == 0) {
                fit->errors[fit->n++] = row.predicted_ms / row.measured_ms;
            }
            cli_train_row_clear(&row);
        }
    }
    return true;
}

static double misfit(gpointer data) {
    Fit *fit = data;
    double sum = 0;
    if (fit->error || !predict(fit)) {
        return INFINITY;
    }
    for (unsigned i = 0; i < fit->n; i++) {
        sum += climb_miss(fit->errors[i], 1);
    }
    return fit->n ? sum / fit->n : INFINITY;
}

static bool print_errors(Fit *fit, bool is_held_out) {
    fit->is_held_out = is_held_out;
    if (!predict(fit)) {
        return false;
    }
    for (unsigned i = 0; i < fit->n; i++) {
        fit->errors[i] = fabs(fit->errors[i] - 1);
    }
    g_autofree char *what = g_strdup_printf("%u runs%s", fit->n, is_held_out ? " held out" : "");
    climb_print_errors(what, fit->errors, fit->n);
    return true;
}

static bool run(Fit *fit) {
    ClimbKnob knobs[G_N_ELEMENTS(numbers)];
    for (unsigned k = 0; k < G_N_ELEMENTS(numbers); k++) {
        numbers[k].value = numbers[k].start;
        knobs[k] = (ClimbKnob){numbers[k].key,  &numbers[k].value, numbers[k].start,
                               numbers[k].step, numbers[k].least,  numbers[k].most};
    }
    climb(knobs, G_N_ELEMENTS(numbers), TRIES, misfit, fit);
    if (fit->error) {
        return false;
    }
    for (unsigned k = 0; k < G_N_ELEMENTS(numbers); k++) {
        printf("%s = %.3g\n", numbers[k].key, numbers[k].value);
    }
    return print_errors(fit, false) && print_errors(fit, true);
}

static void free_csv(gpointer csv) {
    cli_csv_free(csv);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: fit-machine GPU TABLE.csv...\n");
        return 2;
    }
    Fit fit = {.gpu = argv[1]};
    fit.tables = g_ptr_array_new_with_free_func(free_csv);
    fit.published = cli_published_open("train", &cli_train_words, &fit.error);
    for (int i = 2; !fit.error && i < argc; i++) {
        CliCsv *csv = cli_csv_read(argv[i], &fit.error);
        if (csv) {
            g_ptr_array_add(fit.tables, csv);
            cli_train_check(csv, &fit.error);
        }
    }
    bool good = !fit.error && run(&fit);
    if (!good) {
        fprintf(stderr, "fit-machine: %s\n", fit.error->message);
        g_error_free(fit.error);
    }
    g_clear_pointer(&fit.published, cli_published_free);
    g_ptr_array_unref(fit.tables);
    return good ? 0 : 2;
}
