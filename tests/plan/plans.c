#include "tests/plan/plans.h"

#include <string.h>

#include "models/network.h"
#include "plan/build.h"

static Plan *make(const char *network_text, const char *words, GError **error) {
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    g_auto(GStrv) list = g_strsplit(words, " ", -1);
    for (char **word = list; *word; word++) {
        if (!**word) {
            continue;
        }
        g_auto(GStrv) pair = g_strsplit(*word, "=", 2);
        if (!plan_strategy_set(&strategy, pair[0], pair[1], error)) {
            return NULL;
        }
    }
    if (!plan_strategy_settle(&strategy, error)) {
        return NULL;
    }
    g_autoptr(ModelNetwork) network =
        model_network_read(network_text, strlen(network_text), "toy.ini", error);
    if (!network) {
        return NULL;
    }
    g_autoptr(PlanGraph) graph = model_network_emit_for(network, &strategy, error);
    return graph ? plan_build(graph, &strategy, network->name, network->text, error) : NULL;
}

Plan *test_plan(const char *network_text, const char *words) {
    g_autoptr(GError) error = NULL;
    Plan *plan = make(network_text, words, &error);
    g_assert_no_error(error);
    return plan;
}

GError *test_plan_error(const char *network_text, const char *words) {
    GError *error = NULL;
    g_autoptr(Plan) plan = make(network_text, words, &error);
    g_assert_null(plan);
    g_assert_nonnull(error);
    return error;
}
