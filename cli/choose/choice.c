#include "cli/choose/private.h"

#include "cli/predict/predict.h"
#include "plan/plan.h"
#include "sim/predict.h"
#include "sim/settings.h"
#include "sim/spending.h"
#include "sim/trains-well.h"
#include "trace/from-plan.h"

static void take_prediction(CliChoice *choice, const SimPrediction *prediction) {
    choice->step_ns = (double)prediction->median_step_ns;
    choice->flops = prediction->flops;
    choice->mfu = prediction->mfu;
    choice->works = sim_working_share(prediction);
    choice->bound_by = prediction->bound_by;
    choice->lost_to = prediction->cause_names[sim_worst_cause(prediction)];
    choice->fits = prediction->fits;
    choice->trains_well = sim_trains_well(prediction);
    choice->reserved_bytes = prediction->peak_reserved_bytes;
    choice->allocator_bytes = prediction->allocator_bytes;
    choice->retries = prediction->alloc_retries;
    choice->n_steps = prediction->n_steps;
}

static Trace *header_of(const Plan *plan, const ModelCluster *cluster) {
    SimOptions options = {.steps = SIM_DEFAULT_STEPS};
    Trace *header = trace_new();
    trace_name_plan(header, plan);
    sim_settings_write(header, cluster, &options);
    return header;
}

bool cli_choice_predict(CliPlanSource *source, const char *network, const ModelCluster *cluster,
                        bool roughly, CliChoice *ret, GError **error) {
    PlanStrategy strategy;
    g_autoptr(Plan) plan = NULL;
    g_autoptr(SimPrediction) prediction =
        roughly ? cli_predict_roughly(source, network, &plan, cluster, error)
                : cli_predict_play(source, network, &plan, cluster, NULL, error);
    if (prediction == NULL || !cli_plan_source_strategy(source, &strategy, error)) {
        return false;
    }
    SimSpending spending = sim_spending(plan, cluster, prediction);
    *ret = (CliChoice){.cluster = cluster,
                       .title = g_strdup(plan->title),
                       .strategy = plan_strategy_given_text(&strategy),
                       .ranks = plan->world,
                       .micro_batch = strategy.micro_batch,
                       .accumulate = strategy.accumulate,
                       .kind = cli_run_kind(plan, prediction),
                       .unlike = roughly ? sim_told_apart(plan->world, cluster) : NULL,
                       .tokens = (double)plan->tokens_per_rank * plan->world,
                       .kwh_per_billion = 1e3 * spending.kwh_per_million,
                       .price_per_billion = 1e3 * spending.price_per_million};
    take_prediction(ret, prediction);
    bool is_calm = prediction->fits && prediction->alloc_retries == 0;
    ret->header = is_calm ? NULL : header_of(plan, cluster);
    return true;
}

char **cli_choice_settings(char **keys, char **values) {
    guint n = g_strv_length(keys);
    char **settings = g_new0(char *, n + 1);
    for (guint i = 0; i < n; i++) {
        settings[i] = g_strconcat(keys[i], "=", values[i], NULL);
    }
    return settings;
}

double cli_choice_tokens_per_s(const CliChoice *choice) {
    return choice->step_ns > 0 ? choice->tokens / (choice->step_ns / 1e9) : 0;
}

double cli_choice_tokens_per_s_per_gpu(const CliChoice *choice) {
    return cli_choice_tokens_per_s(choice) / (double)choice->ranks;
}

static const double SECONDS_A_DAY = 86400;

double cli_choice_tokens(const CliChoice *choice, const CliChooseView *view) {
    return view->span_days > 0 ? cli_choice_tokens_per_s(choice) * SECONDS_A_DAY * view->span_days
                               : view->tokens;
}

double cli_choice_days(const CliChoice *choice, double tokens) {
    return tokens / cli_choice_tokens_per_s(choice) / SECONDS_A_DAY;
}

double cli_choice_price(const CliChoice *choice, double tokens) {
    return choice->price_per_billion * tokens / 1e9;
}

void cli_choice_clear(CliChoice *choice) {
    g_clear_pointer(&choice->title, g_free);
    g_clear_pointer(&choice->settings, g_strfreev);
    g_clear_pointer(&choice->strategy, g_free);
    g_clear_pointer(&choice->header, trace_free);
}

void cli_choice_free(CliChoice *choice) {
    if (choice != NULL) {
        cli_choice_clear(choice);
        g_free(choice);
    }
}
