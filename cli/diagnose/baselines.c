/* cli/diagnose/baselines.c - simple strategies beside the one at hand: each is tuned and predicted,
 * and the best of them found. */
#include "cli/diagnose/diagnose.h"
#include "cli/what-if/simple.h"

/* Keeps the better of two ways to tune a baseline: one that fits, the quicker one; of those that do
 * not, the smaller one. */
static void keep_better(CliBaseline *baseline, const char *name, const SimPrediction *with) {
    double step_ns = (double)with->median_step_ns;
    double reserved_bytes = (double)with->peak_reserved_bytes;
    bool better =
        baseline->name == NULL || (with->fits && !baseline->fits) ||
        (with->fits == baseline->fits &&
         (with->fits ? step_ns < baseline->step_ns : reserved_bytes < baseline->reserved_bytes));
    if (better) {
        g_free(baseline->name);
        baseline->name = g_strdup(name);
        baseline->fits = with->fits;
        baseline->retries = with->alloc_retries;
        baseline->n_steps = with->n_steps;
        baseline->step_ns = step_ns;
        baseline->reserved_bytes = reserved_bytes;
    }
}

static uint64_t number_of(const CliWhatIf *what_if, const char *key) {
    const char *value = cli_what_if_get(what_if, key);
    return value ? g_ascii_strtoull(value, NULL, 10) : 0;
}

/* As few passes as there is room for, each of as many more sequences: what went through stages one
 * by one need not without them. passes 0: the batch is settled. */
static SimPrediction *predict_simple(const CliDiagnosis *diagnosis, const char *changes,
                                     uint64_t passes, GError **error) {
    if (passes == 0) {
        return cli_what_if(diagnosis->what_if, changes, NULL, error);
    }
    uint64_t batch = number_of(diagnosis->what_if, "micro_batch"), few = 1;
    for (;; few = passes % (2 * few) == 0 ? 2 * few : passes) {
        g_autofree char *all =
            g_strdup_printf("%s micro_batch=%" G_GUINT64_FORMAT " accumulate=%" G_GUINT64_FORMAT,
                            changes, batch * passes / few, few);
        g_autoptr(GError) refusal = NULL;
        g_autoptr(SimPrediction) with = cli_what_if(diagnosis->what_if, all, NULL, &refusal);
        if ((with != NULL && with->fits) || few == passes) {
            if (with == NULL) {
                g_propagate_error(error, g_steal_pointer(&refusal));
            }
            return g_steal_pointer(&with);
        }
    }
}

static void tune_baseline(CliDiagnosis *diagnosis, CliBaseline *baseline, const char *name,
                          const char *changes, uint64_t passes) {
    static const char *const tunings[] = {"none", "full"};
    g_autoptr(GError) refusal = NULL;
    for (guint i = 0; i < G_N_ELEMENTS(tunings); i++) {
        g_autofree char *all = g_strdup_printf("%s checkpointing=%s", changes, tunings[i]);
        g_autofree char *tuned = g_strdup_printf("%s%s", name, i > 0 ? ", checkpointed" : "");
        cli_diagnosis_note_progress(diagnosis);
        g_clear_error(&refusal);
        g_autoptr(SimPrediction) with = predict_simple(diagnosis, all, passes, &refusal);
        if (with != NULL) {
            keep_better(baseline, tuned, with);
        }
    }
    if (baseline->name == NULL) {
        baseline->name = g_strdup(name);
        baseline->refusal = g_strdup(refusal->message);
    }
}

/* How a baseline gets 16 bits where the strategy at hand computes in them. DDP has no mixed
 * precision of its own: it trains under autocast; where no plan knows that, the network itself is
 * in that dtype. */
typedef struct {
    const char *name; /* what the baseline's is followed by */
    char *changes;
    bool less_precise;
} Precision;

/* What FSDP's own mixed precision computes in; NULL: it is not asked for. */
static const char *mixed_dtype(const CliWhatIf *what_if) {
    const char *dtype = cli_what_if_get(what_if, "param_dtype");
    bool is_mixed = dtype && !g_str_equal(dtype, "model") && !g_str_equal(dtype, "fp32");
    return is_mixed ? dtype : NULL;
}

static Precision precision_of_ddp(const CliWhatIf *what_if) {
    const char *dtype = mixed_dtype(what_if);
    bool eager = g_strcmp0(cli_what_if_get(what_if, "kernels"), "eager") == 0;
    if (!dtype) {
        return (Precision){"", g_strdup(""), false};
    }
    bool keeps_fp32 = g_strcmp0(cli_what_if_get(what_if, "model_dtype"), "fp32") == 0;
    if (g_str_equal(dtype, "bf16") && keeps_fp32 && eager) {
        return (Precision){", autocast",
                           g_strdup(" autocast=bf16 param_dtype=model reduce_dtype=param"), false};
    }
    return (Precision){
        g_str_equal(dtype, "bf16") ? ", all in bf16" : ", all in fp16",
        g_strdup_printf(" model_dtype=%s param_dtype=model reduce_dtype=param", dtype), true};
}

/* FSDP's own mixed precision is what does there what autocast does with DDP. */
static Precision precision_of_fsdp(const CliWhatIf *what_if) {
    bool casts = g_strcmp0(cli_what_if_get(what_if, "autocast"), "bf16") == 0;
    bool replaced = casts && !mixed_dtype(what_if);
    return (Precision){
        "", g_strdup(replaced ? " autocast=none param_dtype=bf16 reduce_dtype=fp32" : ""), false};
}

/* A simple strategy has one stage, and each rank passes of its own instead of microbatches that go
 * through all, if that comes out even: so many. 0: there are no stages, or it does not. */
static uint64_t passes_of_simple(const CliWhatIf *what_if) {
    uint64_t stages = number_of(what_if, "pipeline"), all = number_of(what_if, "accumulate");
    return stages > 1 && all % stages == 0 ? all / stages : 0;
}

/* A simple strategy shares no layers and no sequences: each rank has its part of the batch to
 * itself, if that comes out even. If not, they stay in stages, or shared, which DDP is refused for
 * by its name. */
static char *batch_of_simple(const CliWhatIf *what_if, const char *sharding) {
    uint64_t tensor = number_of(what_if, "tensor"), context = number_of(what_if, "context");
    uint64_t batch = number_of(what_if, "micro_batch"), share = MAX(tensor, 1) * MAX(context, 1);
    bool is_ddp = g_str_equal(sharding, "none");
    if (number_of(what_if, "pipeline") > 1) {
        return g_strdup(passes_of_simple(what_if) > 0
                            ? " pipeline=1 pipeline_schedule=1f1b pipeline_stages=1"
                        : is_ddp ? " flavour=ddp"
                                 : "");
    }
    if (share > 1 && batch % share == 0) {
        return g_strdup_printf("%s micro_batch=%" G_GUINT64_FORMAT,
                               tensor > 1 ? " tensor=1 tensor_plan=torchtitan sequence_parallel=yes"
                                          : " context=1",
                               batch / share);
    }
    return g_strdup(share > 1 && is_ddp ? " flavour=ddp" : "");
}

/* Each simple strategy at its own defaults, checkpointed or not, whichever is better; the global
 * batch, precision and optimizer stay. */
void cli_diagnosis_predict_baselines(CliDiagnosis *diagnosis) {
    static const char *const names[CLI_N_BASELINES] = {"DDP", "FSDP2 grad-op", "FSDP2 full"};
    static const char *const sharding[CLI_N_BASELINES] = {"none", "grad-op", "full"};
    for (guint i = 0; i < CLI_N_BASELINES; i++) {
        g_autofree char *batch = batch_of_simple(diagnosis->what_if, sharding[i]);
        Precision precision =
            i == 0 ? precision_of_ddp(diagnosis->what_if) : precision_of_fsdp(diagnosis->what_if);
        g_autofree char *name = g_strconcat(names[i], precision.name, NULL);
        g_autofree char *changes = g_strdup_printf("sharding=%s %s%s%s", sharding[i],
                                                   CLI_PLAIN_SETTINGS, precision.changes, batch);
        diagnosis->baselines[i].less_precise = precision.less_precise;
        tune_baseline(diagnosis, &diagnosis->baselines[i], name, changes,
                      passes_of_simple(diagnosis->what_if));
        g_free(precision.changes);
    }
}

const CliBaseline *cli_diagnosis_baseline(const CliDiagnosis *diagnosis) {
    const CliBaseline *best = NULL;
    for (guint i = 0; i < CLI_N_BASELINES; i++) {
        const CliBaseline *baseline = &diagnosis->baselines[i];
        if (baseline->refusal == NULL && baseline->fits && !baseline->less_precise &&
            (best == NULL || baseline->step_ns < best->step_ns)) {
            best = baseline;
        }
    }
    return best;
}
