#include "cli/predict/trace-source.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/predict/precision.h"
#include "cli/predict/predict.h"
#include "cli/source/cluster.h"
#include "cli/source/trace-file.h"
#include "plan/files/stream.h"
#include "trace/text.h"

static Trace *predict(CliPlanSource *source, const char *name, const char *cluster_name,
                      GError **error) {
    g_autoptr(Plan) plan = cli_plan_source_load(source, name, PLAN_FORM_WHOLE, error);
    g_autoptr(ModelCluster) cluster = plan != NULL ? cli_cluster_read(cluster_name, error) : NULL;
    if (cluster == NULL) {
        return NULL;
    }
    cli_cluster_note(cluster);
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction =
        cli_predict_play(source, name, &plan, cluster, trace, error);
    if (prediction != NULL) {
        cli_precision_note(source, plan, cluster);
    }
    return prediction != NULL ? g_steal_pointer(&trace) : NULL;
}

Trace *cli_trace_load(CliPlanSource *source, const char *name, const char *cluster,
                      GError **error) {
    if (trace_is_file(name)) {
        return trace_read_file(name, error);
    }
    if (cluster != NULL) {
        return predict(source, name, cluster, error);
    }
    if (!cli_trace_is_no_snapshot(name, error)) {
        return NULL;
    }
    bool is_path = strchr(name, '/') || strstr(name, ".trace");
    bool exists = g_file_test(name, G_FILE_TEST_EXISTS), is_missing = is_path && !exists;
    if (exists && g_access(name, R_OK) != 0) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE, "%s: cannot be read: %s", name,
                    g_strerror(errno));
        return NULL;
    }
    if (!exists && cli_plan_source_finds(name, NULL)) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s is a network: give the cluster to predict it on, as in: --cluster "
                    "a100-node (`foreshard list clusters` names them)",
                    name);
        return NULL;
    }
    g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE,
                "%s %s; give one, or a plan or network and the cluster to predict it on, "
                "as in: gpt2 -n 8 --cluster a100-node",
                plan_stream_name(name), is_missing ? "does not exist" : "is no trace");
    return NULL;
}

bool cli_trace_check_settings(const CliPlanSource *source, int n_names, char **names,
                              GError **error) {
    if (n_names < 1 || !cli_plan_source_is_set(source)) {
        return true;
    }
    for (int i = 0; i < n_names; i++) {
        if (!trace_is_file(names[i])) {
            return true;
        }
    }
    g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                "%s is a trace, whose strategy is settled; leave strategy options away, or give a "
                "network",
                names[0]);
    return false;
}
