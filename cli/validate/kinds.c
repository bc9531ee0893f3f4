#include "cli/validate/kinds.h"

#include <math.h>

enum {
    FEWEST = 20 /* runs: the worst tenth of fewer is one run, or none */
};

typedef struct {
    const char *gpu; /* interned */
    CliScore of[CLI_N_RUN_KINDS];
} Gpu;

static void clear_gpu(gpointer data) {
    for (unsigned kind = 0; kind < CLI_N_RUN_KINDS; kind++) {
        cli_score_clear(&((Gpu *)data)->of[kind]);
    }
}

static Gpu *gpu_called(GArray *gpus, const char *name) {
    for (guint i = 0; i < gpus->len; i++) {
        Gpu *gpu = &g_array_index(gpus, Gpu, i);
        if (gpu->gpu == name) {
            return gpu;
        }
    }
    Gpu fresh = {.gpu = name};
    g_array_append_val(gpus, fresh);
    return &g_array_index(gpus, Gpu, gpus->len - 1);
}

static void add(CliScore *score, const CliValidatedRow *row) {
    cli_score_add(score, isnan(row->without) ? row->predicted : row->without, row->measured);
}

static void append(GString *text, const char *section, const char *gpu, const CliScore *score) {
    g_string_append_printf(text, "\n[%s%s%s]\nruns = %u\n", section, gpu ? " " : "", gpu ? gpu : "",
                           cli_score_count(score));
    g_string_append_printf(text, "median_percent = %.1f\np90_percent = %.1f\n",
                           100 * cli_score_quantile(score, 0.5),
                           100 * cli_score_quantile(score, 0.9));
}

static gint by_name(gconstpointer a, gconstpointer b) {
    return g_strcmp0(((const Gpu *)a)->gpu, ((const Gpu *)b)->gpu);
}

static char *text_of(GArray *gpus, const Gpu *all, const CliScore *memory) {
    GString *text = g_string_new("# Made by `foreshard validate --kinds "
                                 "tests/validation/train_*.csv`; a test holds it to that.\n");
    g_array_sort(gpus, by_name);
    for (unsigned kind = 0; kind < CLI_N_RUN_KINDS; kind++) {
        const char *name = cli_run_kind_name(kind);
        if (cli_score_count(&all->of[kind])) {
            append(text, name, NULL, &all->of[kind]);
        }
        for (guint i = 0; i < gpus->len; i++) {
            const Gpu *gpu = &g_array_index(gpus, Gpu, i);
            if (cli_score_count(&gpu->of[kind]) >= FEWEST) {
                append(text, name, gpu->gpu, &gpu->of[kind]);
            }
        }
    }
    if (cli_score_count(memory)) {
        append(text, "memory", NULL, memory);
    }
    return g_string_free(text, FALSE);
}

char *cli_validation_kinds(const CliValidation *validation) {
    g_autoptr(GArray) gpus = g_array_new(FALSE, FALSE, sizeof(Gpu));
    g_array_set_clear_func(gpus, clear_gpu);
    Gpu all = {0};
    CliScore memory = {0};
    for (guint t = 0; t < validation->tables->len; t++) {
        const GArray *rows = ((const CliValidatedTable *)validation->tables->pdata[t])->rows;
        for (guint i = 0; i < rows->len; i++) {
            const CliValidatedRow *row = &g_array_index(rows, CliValidatedRow, i);
            if (!row->skipped && row->gpu) {
                add(&all.of[row->kind], row);
                add(&gpu_called(gpus, row->gpu_kind)->of[row->kind], row);
                cli_score_add(&memory, row->predicted_gib, row->measured_gib);
            }
        }
    }
    char *text = text_of(gpus, &all, &memory);
    clear_gpu(&all);
    cli_score_clear(&memory);
    return text;
}
