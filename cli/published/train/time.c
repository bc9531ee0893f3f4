#include "cli/published/train/time.h"

#include <math.h>
#include <string.h>

typedef enum {
    TIME_NONE,
    TIME_TOKENS,
    TIME_ALL_TOKENS,
    TIME_STEP,
    TIME_STEP_DERIVED,
    TIME_SAMPLES,
    TIME_FLOPS,
    TIME_MFU,
    TIME_HFU,
} TimeFrom;

static const struct {
    TimeFrom from;
    const char *column, *name;
} times[] = {
    {TIME_TOKENS, "tokens_per_s_per_gpu", "tokens/s"},
    {TIME_ALL_TOKENS, "tokens_per_s", "tokens/s of all GPUs"},
    {TIME_STEP, "step_ms", "step time"},
    {TIME_STEP_DERIVED, "step_ms_derived", "step time"},
    {TIME_SAMPLES, "samples_per_s", "samples/s"},
    {TIME_FLOPS, "tflops_per_gpu", "FLOP/s of the model"},
    {TIME_MFU, "mfu_pct", "MFU"},
    {TIME_HFU, "hfu_pct", "HFU"},
};

static TimeFrom time_of(const CliCsv *csv, const CliCsvRow *row, double *ret_value,
                        const char **ret_name) {
    for (unsigned i = 0; i < G_N_ELEMENTS(times); i++) {
        double value = cli_csv_known(csv, row, times[i].column);
        if (value > 0) {
            *ret_value = value;
            *ret_name = times[i].name;
            return times[i].from;
        }
    }
    *ret_name = "none";
    return TIME_NONE;
}

/* A step, by what one column has. */
static double step_ms(const CliCsv *csv, const CliCsvRow *row, const CliTrainWork *work,
                      TimeFrom from, double value) {
    double gpus = cli_csv_known(csv, row, "gpus");
    switch (from) {
    case TIME_TOKENS:
        return work->tokens / value * 1e3;
    case TIME_ALL_TOKENS:
        return work->tokens * gpus / value * 1e3;
    case TIME_STEP:
    case TIME_STEP_DERIVED:
        return value;
    case TIME_SAMPLES:
        return work->tokens * gpus / cli_csv_known(csv, row, "seq_len") / value * 1e3;
    case TIME_FLOPS:
        return (work->tflops_are_all ? work->all_flops : work->model_flops) / (value * 1e9);
    case TIME_MFU:
        return work->model_flops / (value / 100 * work->peak_flops) * 1e3;
    case TIME_HFU:
        return work->all_flops / (value / 100 * work->peak_flops) * 1e3;
    case TIME_NONE:
        break;
    }
    return NAN;
}

double cli_train_time_ms(const CliCsv *csv, const CliCsvRow *row, const CliTrainWork *work) {
    double value = NAN;
    const char *name;
    TimeFrom from = time_of(csv, row, &value, &name);
    return step_ms(csv, row, work, from, value);
}

/* Half of the last digit that is written behind the point, as a share of the figure. */
static double rounding(const char *text) {
    const char *point = strchr(text, '.');
    return 0.5 * pow(10, point != NULL ? -(double)strspn(point + 1, "0123456789") : 0) /
           g_ascii_strtod(text, NULL);
}

char *cli_train_time_contradicted(const CliCsv *csv, const CliCsvRow *row,
                                  const CliTrainWork *work) {
    const double far = 1.05; /* further apart than a step's jitter and a mean of them */
    const TimeFrom last_counted =
        TIME_SAMPLES; /* the others count operations, by rules of their own */
    double first = NAN;
    unsigned taken = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(times) && times[i].from <= last_counted; i++) {
        double value = cli_csv_known(csv, row, times[i].column);
        double ms = value > 0 ? step_ms(csv, row, work, times[i].from, value) : NAN;
        if (isnan(first)) {
            first = ms;
            taken = i;
        } else if (!isnan(ms)) {
            double apart = ms > first ? ms / first : first / ms;
            double slack = (1 + rounding(cli_csv_text(csv, row, times[i].column))) *
                           (1 + rounding(cli_csv_text(csv, row, times[taken].column)));
            if (apart > far * slack) {
                return g_strdup_printf("%s makes a step of %.*f ms and is taken, %s one of %.*f",
                                       times[taken].column, first < 1000, first, times[i].column,
                                       ms < 1000, ms);
            }
        }
    }
    return NULL;
}

const char *cli_train_time_from(const CliCsv *csv, const CliCsvRow *row, bool tflops_are_all) {
    double value;
    const char *name;
    TimeFrom from = time_of(csv, row, &value, &name);
    return from == TIME_FLOPS && tflops_are_all ? "FLOP/s with recomputation" : name;
}
