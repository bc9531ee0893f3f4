#include "cli/predict/precision.h"

#include "cli/options/command.h"
#include "plan/strategy/strategy.h"

static bool is_faster_in_16_bits(const ModelCluster *cluster) {
    return cluster->device_kind == MODEL_DEVICE_GPU &&
           model_cluster_peak_flops(cluster, PLAN_BF16) >
               model_cluster_peak_flops(cluster, PLAN_FP32);
}

/* A plan has all keys, so only its source knows whether fp32 was asked for. */
static bool is_told(const CliPlanSource *source) {
    PlanStrategy given;
    return cli_plan_source_strategy(source, &given, NULL) &&
           (plan_strategy_is_given(&given, "param_dtype") ||
            plan_strategy_is_given(&given, "model_dtype") ||
            plan_strategy_is_given(&given, "autocast"));
}

/* Without FSDP, layers that ranks share and stages are not planned under autocast. */
static const char *option_of(const PlanStrategy *strategy) {
    return strategy->flavour >= PLAN_FLAVOUR_FSDP1          ? "--param-dtype"
           : strategy->tensor > 1 || strategy->pipeline > 1 ? "--model-dtype"
                                                            : "--autocast";
}

char *cli_precision_text(const CliPlanSource *source, const Plan *plan,
                         const ModelCluster *cluster) {
    PlanStrategy strategy;
    bool is_known = plan_strategy_of_text(&strategy, plan->strategy, NULL);
    if (!is_known || plan_strategy_param_dtype(&strategy) != PLAN_FP32 ||
        strategy.autocast != PLAN_AUTOCAST_NONE || !is_faster_in_16_bits(cluster) ||
        is_told(source)) {
        return NULL;
    }
    return g_strdup_printf("in fp32, PyTorch's default; most training is in 16 bits: %s bf16",
                           option_of(&strategy));
}

void cli_precision_note(const CliPlanSource *source, const Plan *plan,
                        const ModelCluster *cluster) {
    g_autofree char *text = cli_precision_text(source, plan, cluster);
    if (text != NULL) {
        cli_complain(CLI_OK, "note: %s", text);
    }
}
