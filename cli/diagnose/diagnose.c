#include "cli/diagnose/diagnose.h"

#include <math.h>
#include <string.h>

#include "cli/options/setting.h"
#include "cli/predict/predict.h"
#include "trace/fullest.h"

/* ---- the machine, one part faster ---- */

enum {
    FASTER_LINK = 4,
    FASTER_HOST = 10
};

static void faster_host(ModelCluster *cluster) {
#define COUNT(section, key, ...)
#define REAL(section, key, ...)                                                                    \
    if (strcmp(#section, "host") == 0) {                                                           \
        cluster->section##_##key /= FASTER_HOST;                                                   \
    }
#include "models/cluster-keys.def"
#undef COUNT
#undef REAL
}

static void faster_far_link(ModelCluster *cluster) {
    cluster->inter_node_nic_gb_per_s *= FASTER_LINK;
}

static void faster_near_link(ModelCluster *cluster) {
    cluster->intra_node_bus_gb_per_s *= FASTER_LINK;
    cluster->intra_node_nccl_channel_gb_per_s *= FASTER_LINK;
    cluster->intra_node_nvls_head_gb_per_s *= FASTER_LINK;
    cluster->intra_node_pcie_gb_per_s *= FASTER_LINK;
}

static void faster_host_link(ModelCluster *cluster) {
    cluster->device_host_link_gb_per_s *= FASTER_LINK;
}

/* ---- remedies ---- */

static bool holds(const CliDiagnosis *diagnosis, CliWhen when, const SimPrediction *with) {
    const char *sharding = cli_what_if_get(diagnosis->what_if, "sharding");
    const char *offload = cli_what_if_get(diagnosis->what_if, "offload");
    switch (when) {
    case CLI_WHEN_ALWAYS:
        return true;
    case CLI_WHEN_SHARDED:
        return g_strcmp0(sharding, "none") != 0 && g_strcmp0(sharding, "optimizer-only") != 0;
    case CLI_WHEN_ON_DEVICE:
        return g_strcmp0(offload, "params") != 0 && g_strcmp0(offload, "optimizer") != 0;
    case CLI_WHEN_CHECKPOINTED:
        return g_strcmp0(cli_what_if_get(diagnosis->what_if, "checkpointing"), "full") == 0;
    case CLI_WHEN_WHOLE_TOKENS:
        return g_strcmp0(cli_what_if_get(diagnosis->what_if, "sequence_parallel"), "no") == 0;
    case CLI_WHEN_MORE_UNITS:
        return with->n_units > diagnosis->base->n_units;
    case CLI_WHEN_FEWER_UNITS:
        return with->n_units < diagnosis->base->n_units;
    }
    g_assert_not_reached();
}

/* Keys alone that make no other plan: "limit_all_gathers=0" of FSDP2. */
static bool is_idle(const CliDiagnosis *diagnosis, const char *changes) {
    g_auto(GStrv) pairs = cli_settings_split(changes);
    const char *decided_by;
    bool idle = true;
    for (char **pair = pairs; *pair != NULL; pair += 2) {
        idle &= plan_strategy_why_idle(&diagnosis->what_if->strategy, pair[0], &decided_by) != NULL;
    }
    return idle;
}

static void try_setting(CliDiagnosis *diagnosis, CliRemedy remedy) {
    cli_diagnosis_note_progress(diagnosis);
    if (!cli_what_if_changes(diagnosis->what_if, remedy.changes) ||
        is_idle(diagnosis, remedy.changes)) {
        return;
    }
    g_autoptr(SimPrediction) with = cli_what_if(diagnosis->what_if, remedy.changes, NULL, NULL);
    if (with == NULL || with->unsupported_dtype != NULL || !holds(diagnosis, remedy.when, with)) {
        return;
    }
    if (remedy.cause == NULL && with->alloc_retries < diagnosis->base->alloc_retries) {
        remedy.cause = "the allocator frees its cache and asks the GPU again (retries)";
    }
    cli_diagnosis_add_remedy(diagnosis, remedy, with);
}

static void try_machine(CliDiagnosis *diagnosis, CliRemedy remedy, void (*change)(ModelCluster *)) {
    cli_diagnosis_note_progress(diagnosis);
    g_autoptr(ModelCluster) cluster = model_cluster_copy(diagnosis->what_if->cluster);
    for (uint32_t kind = 0; kind <= cluster->n_kinds; kind++) {
        change(model_cluster_kind(cluster, kind));
    }
    g_autoptr(SimPrediction) with = cli_what_if(diagnosis->what_if, "", cluster, NULL);
    if (with != NULL) {
        cli_diagnosis_add_remedy(diagnosis, remedy, with);
    }
}

/* Routers that are balanced by a loss are a little uneven; this is called much. */
#define UNEVEN "expert_overload=1.5"

static void try_uneven(CliDiagnosis *diagnosis) {
    const PlanStrategy *strategy = &diagnosis->what_if->strategy;
    cli_diagnosis_note_progress(diagnosis);
    if (strategy->expert == 1 || strategy->expert_overload > 1) {
        return;
    }
    g_autoptr(SimPrediction) with = cli_what_if(diagnosis->what_if, UNEVEN, NULL, NULL);
    if (with) {
        diagnosis->uneven = cli_diagnosis_compared(diagnosis, (CliRemedy){.changes = UNEVEN}, with);
    }
}

/* What a measured play waited for beside what predictions know of. */
static void add_wait(CliDiagnosis *diagnosis, TraceIdle idle, const char *cause,
                     const char *remedy) {
    const TraceIdleBook *book = &diagnosis->idle;
    double n = MAX(1, book->n_steps), all_ns = (double)book->busy_ns;
    for (unsigned i = 0; i < TRACE_N_IDLES; i++) {
        all_ns += (double)book->idle_ns[i];
    }
    CliRemedy wait = {
        .cause = cause,
        .remedy = remedy,
        .price = CLI_PRICE_MACHINE,
        .fits = true,
        .step_ns = -(double)book->idle_ns[idle] / n,
        .whole_ns = all_ns / n,
    };
    g_array_append_val(diagnosis->remedies, wait);
}

static void add_waits(CliDiagnosis *diagnosis) {
    if (!g_str_equal(trace_get(diagnosis->trace, "side"), "measured")) {
        return;
    }
    add_wait(diagnosis, TRACE_IDLE_COPY, "the device waits for copies on another lane",
             "move less, or later what is needed later");
    add_wait(diagnosis, TRACE_IDLE_OTHER, "kernels start late on their lanes",
             "fewer, larger kernels; on CPU ranks, a core for each rank and lane");
}

/* What try_all() tries of settings. */
static const char *const settings[] = {
#define SETTING(changes_, price_, when_, cause_, remedy_) changes_,
#define MACHINE(function, cause_, remedy_)
#include "cli/diagnose/remedies.def"
#undef SETTING
#undef MACHINE
};

static void try_all(CliDiagnosis *diagnosis) {
    cli_what_if_expect(diagnosis->what_if, settings, G_N_ELEMENTS(settings), SIM_WANTED_ALL);
#define SETTING(changes_, price_, when_, cause_, remedy_)                                          \
    try_setting(diagnosis, (CliRemedy){.changes = changes_,                                        \
                                       .price = CLI_PRICE_##price_,                                \
                                       .when = CLI_WHEN_##when_,                                   \
                                       .cause = cause_,                                            \
                                       .remedy = remedy_});
#define MACHINE(function, cause_, remedy_)                                                         \
    try_machine(diagnosis,                                                                         \
                (CliRemedy){.price = CLI_PRICE_MACHINE, .cause = cause_, .remedy = remedy_},       \
                function);
#include "cli/diagnose/remedies.def"
#undef SETTING
#undef MACHINE
    cli_diagnosis_try_equal(diagnosis);
    try_uneven(diagnosis);
    add_waits(diagnosis);
}

/* ---- causes ---- */

static double weight(const CliRemedy *remedy) {
    static const double weights[] = {
        [CLI_PRICE_NONE] = 1,         [CLI_PRICE_MEMORY] = 1. / 3,  [CLI_PRICE_PRECISION] = 1. / 3,
        [CLI_PRICE_PROGRAM] = 1. / 2, [CLI_PRICE_MACHINE] = 1. / 2,
    };
    return weights[remedy->price];
}

/* Of the step; what is measured and what is predicted are parts of different ones. */
static double saved_share(const CliRemedy *remedy) {
    return remedy->whole_ns > 0 ? -remedy->step_ns / remedy->whole_ns : 0;
}

static int compare_causes(gconstpointer a, gconstpointer b, gpointer data) {
    const CliDiagnosis *diagnosis = data;
    const GArray *remedies = diagnosis->remedies;
    guint i = *(const guint *)a, k = *(const guint *)b;
    const CliRemedy *x = &g_array_index(remedies, CliRemedy, i);
    const CliRemedy *y = &g_array_index(remedies, CliRemedy, k);
    double by_x = saved_share(x) * weight(x), by_y = saved_share(y) * weight(y);
    return by_x != by_y ? (by_x < by_y) - (by_x > by_y) : (i > k) - (i < k);
}

/* Several remedies may be for one cause: the best of them stands for it. */
static void leave_first_of_each(CliDiagnosis *diagnosis) {
    g_autoptr(GHashTable) named = g_hash_table_new(g_str_hash, g_str_equal);
    guint kept = 0;
    for (guint i = 0; i < diagnosis->causes->len; i++) {
        guint place = g_array_index(diagnosis->causes, guint, i);
        const CliRemedy *remedy = &g_array_index(diagnosis->remedies, CliRemedy, place);
        if (g_hash_table_add(named, (gpointer)remedy->cause)) {
            g_array_index(diagnosis->causes, guint, kept++) = place;
        }
    }
    g_array_set_size(diagnosis->causes, kept);
}

/* A remedy that saves less of a step names no cause. Assumed: real steps vary by about as much. */
#define LEAST_SAVED 0.02

static void find_causes(CliDiagnosis *diagnosis) {
    for (guint i = 0; i < diagnosis->remedies->len; i++) {
        const CliRemedy *remedy = &g_array_index(diagnosis->remedies, CliRemedy, i);
        if (remedy->cause != NULL && remedy->fits && saved_share(remedy) >= LEAST_SAVED) {
            g_array_append_val(diagnosis->causes, i);
        }
    }
    g_array_sort_with_data(diagnosis->causes, compare_causes, diagnosis);
    leave_first_of_each(diagnosis);
}

/* ---- the whole ---- */

/* Ranks that wait for each other take one step's time, and lose it in different places. */
static uint32_t rank_of_times(const CliDiagnosis *diagnosis, uint32_t rank) {
    return rank != TRACE_NONE ? rank
                              : trace_rank_beside(diagnosis->trace, diagnosis->base->time_rank);
}

CliDiagnosis *cli_diagnose(const Trace *trace, uint32_t rank, const char *cluster, GError **error) {
    g_autoptr(CliDiagnosis) diagnosis = g_new0(CliDiagnosis, 1);
    diagnosis->trace = trace;
    diagnosis->remedies = g_array_new(FALSE, FALSE, sizeof(CliRemedy));
    diagnosis->causes = g_array_new(FALSE, FALSE, sizeof(guint));
    diagnosis->memory =
        trace_summary_new(trace, rank == TRACE_NONE ? trace_fullest_rank(trace) : rank);
    if (diagnosis->memory == NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "the trace has not recorded rank %u; give one that it has", rank);
        return NULL;
    }
    diagnosis->what_if = cli_what_if_new(trace, cluster, error);
    if (diagnosis->what_if == NULL) {
        return NULL;
    }
    diagnosis->base = cli_what_if(diagnosis->what_if, "", NULL, error);
    if (diagnosis->base == NULL) {
        return NULL;
    }
    diagnosis->summary = trace_summary_new(trace, rank_of_times(diagnosis, rank));
    diagnosis->idle = trace_idle_book(trace, diagnosis->summary);
    diagnosis->progress = cli_progress_new("predicting neighbours");
    try_all(diagnosis);
    find_causes(diagnosis);
    cli_diagnosis_predict_baselines(diagnosis);
    diagnosis->ways_to_fit = diagnosis->base->fits ? NULL : cli_ways(diagnosis->what_if, false);
    cli_diagnosis_find_batch(diagnosis);
    g_clear_pointer(&diagnosis->progress, cli_progress_free);
    return g_steal_pointer(&diagnosis);
}

void cli_diagnosis_free(CliDiagnosis *diagnosis) {
    if (diagnosis == NULL) {
        return;
    }
    for (guint i = 0; i < CLI_N_BASELINES; i++) {
        g_free(diagnosis->baselines[i].name);
        g_free(diagnosis->baselines[i].refusal);
    }
    g_clear_pointer(&diagnosis->ways_to_fit, g_array_unref);
    cli_what_if_free(diagnosis->what_if);
    trace_summary_free(diagnosis->summary);
    trace_summary_free(diagnosis->memory);
    sim_prediction_free(diagnosis->base);
    g_array_unref(diagnosis->remedies);
    g_array_unref(diagnosis->causes);
    cli_progress_free(diagnosis->progress);
    g_free(diagnosis);
}
