/* bench/fit-machine.c - a machine whose network nobody has measured, by the training runs on it.
 *
 * fit-machine GPU TABLE.csv...: GPU is how the model in the machine's cluster file begins. Finds
 * what its GPUs keep up in a long run and what its collectives over nodes take, relative to NCCL's
 * own expectation, by the least mean |log(predicted / measured)| of two runs in three; the others
 * are held out and their errors printed beside. Every try predicts all runs: some minutes.
 */
#include <math.h>
#include <stdio.h>

#include "bench/fit-runs.h"
#include "cli/calibrate/climb.h"

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
    FitRuns all;
    double errors[MOST_RUNS]; /* first predicted over measured */
    unsigned n;
    bool is_held_out; /* which runs are asked for */
    GError *error;
} Fit;

static bool asks(gpointer self, const CliCsvRow *row) {
    const Fit *fit = self;
    return cli_published_held_out(row) == fit->is_held_out;
}

/* A run whose memory is short says little of the rest. */
static void take(gpointer self, guint table, const CliTrainRow *run) {
    Fit *fit = self;
    if (run->retries == 0 && fit->n < MOST_RUNS) {
        fit->errors[fit->n++] = run->predicted_ms / run->measured_ms;
    }
}

static bool predict(Fit *fit) {
    fit->n = 0;
    for (unsigned k = 0; k < G_N_ELEMENTS(numbers); k++) {
        cli_published_tune(fit->all.published, fit->all.gpu, numbers[k].key, numbers[k].value);
    }
    return fit_runs_predict(&fit->all, asks, take, fit, &fit->error);
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

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: fit-machine GPU TABLE.csv...\n");
        return 2;
    }
    Fit fit = {0};
    bool good = fit_runs_open(&fit.all, argv[1], argv + 2, argc - 2, &fit.error) && run(&fit);
    if (!good) {
        fprintf(stderr, "fit-machine: %s\n", fit.error->message);
        g_error_free(fit.error);
    }
    fit_runs_clear(&fit.all);
    return good ? 0 : 2;
}
