#include "cli/what-if/what-if.h"

#include <string.h>

#include "cli/host/cores.h"
#include "cli/options/setting.h"
#include "cli/source/cluster.h"
#include "cli/source/plan-source.h"
#include "cli/what-if/ahead.h"
#include "sim/built.h"
#include "sim/predict.h"

static bool take_strategy(CliWhatIf *what_if, const Trace *trace, GError **error) {
    const char *words = trace_get(trace, "strategy");
    g_auto(GStrv) pairs = cli_settings_split(words);
    for (char **pair = pairs; *pair != NULL; pair += 2) {
        g_hash_table_replace(what_if->settings, g_strdup(pair[0]), g_strdup(pair[1]));
    }
    return plan_strategy_of_words(&what_if->strategy, words, error);
}

char *cli_network_name(const Trace *trace) {
    const char *title = trace_get(trace, "title");
    return title != NULL ? g_strndup(title, strcspn(title, ",")) : g_strdup("network");
}

char *cli_traced_file(const char *network) {
    static const char key[] = "traced=";
    return g_str_has_prefix(network, key) ? g_uri_unescape_string(network + strlen(key), NULL)
                                          : NULL;
}

/* keys: "key=value" each, of a traced network the file's and those that it would be changed by. */
static ModelNetwork *read_network(char **keys, const char *name, GError **error) {
    g_autofree char *traced = keys[0] != NULL ? cli_traced_file(keys[0]) : NULL;
    if (traced != NULL) {
        return model_network_read_file_with(traced, (const char *const *)keys + 1, error);
    }
    g_autofree char *lines = g_strjoinv("\n", keys);
    g_autofree char *text = g_strconcat("[network]\n", lines, "\n", NULL);
    return model_network_read(text, strlen(text), name, error);
}

/* The network's file as far as a trace holds it, its keys, which are settings too. */
static bool take_network(CliWhatIf *what_if, const Trace *trace, GError **error) {
    g_autofree char *name = cli_network_name(trace);
    what_if->network_keys = g_strsplit(trace_get(trace, "network"), " ", -1);
    for (char **key = what_if->network_keys; *key != NULL; key++) {
        const char *equals = strchr(*key, '=');
        if (equals != NULL) {
            char *setting = g_strdup_printf("network.%.*s", (int)(equals - *key), *key);
            g_hash_table_replace(what_if->settings, setting, g_strdup(equals + 1));
        }
    }
    what_if->network = read_network(what_if->network_keys, name, error);
    return what_if->network != NULL;
}

/* changes: pairs. */
static bool is_set_by(const char *key, char **changes) {
    gsize length = strcspn(key, "=");
    for (char **pair = changes; *pair != NULL; pair += 2) {
        const char *own = cli_setting_of_network(pair[0]);
        if (own != NULL && strlen(own) == length && strncmp(own, key, length) == 0) {
            return true;
        }
    }
    return false;
}

/* The network with those of the changes that are its own; NULL without an error: none is. */
static ModelNetwork *change_network(const CliWhatIf *what_if, char **changes, GError **error) {
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    bool any = false;
    for (char **key = what_if->network_keys; *key != NULL; key++) {
        if (!is_set_by(*key, changes)) {
            g_ptr_array_add(keys, g_strdup(*key));
        }
    }
    for (char **pair = changes; *pair != NULL; pair += 2) {
        const char *own = cli_setting_of_network(pair[0]);
        if (own != NULL) {
            g_ptr_array_add(keys, g_strconcat(own, "=", pair[1], NULL));
            any = true;
        }
    }
    g_ptr_array_add(keys, NULL);
    return any ? read_network((char **)keys->pdata, what_if->network->name, error) : NULL;
}

/* A name may mean another file than it did when the trace was made. */
static bool is_the_traces(const ModelCluster *cluster, const Trace *trace, const char *path,
                          GError **error) {
    const char *digest = trace_get(trace, "cluster_digest");
    if (digest == NULL || g_str_equal(digest, cluster->digest)) {
        return true;
    }
    g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                "the trace was predicted on another %s than %s; give its file, as in: --cluster "
                "./%.*s.ini",
                cluster->name, path, (int)strcspn(cluster->name, ":"), cluster->name);
    return false;
}

static ModelCluster *read_cluster(const Trace *trace, const char *name, GError **error) {
    const char *own = trace_get(trace, "cluster");
    if (name == NULL && own == NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "the trace names no cluster to predict on; give one, as in: --cluster "
                    "this-machine");
        return NULL;
    }
    const char *meant = name != NULL ? name : own;
    g_autoptr(ModelCluster) cluster = cli_cluster_read(meant, error);
    if (cluster == NULL && name == NULL) {
        g_prefix_error(error,
                       "the trace was predicted on %s; if that was a file, give it: --cluster "
                       "FILE.ini; ",
                       own);
    }
    if (cluster == NULL || (name == NULL && !is_the_traces(cluster, trace, meant, error))) {
        return NULL;
    }
    return g_steal_pointer(&cluster);
}

static bool check_digest(const CliWhatIf *what_if, const Trace *trace, GError **error) {
    if (trace_get(trace, "digest") == NULL) {
        return true;
    }
    g_autoptr(Plan) plan =
        model_network_plan(what_if->network, &what_if->strategy, PLAN_FORM_WHOLE, error);
    if (plan == NULL) {
        return false;
    }
    if (!g_str_equal(plan_digest(plan), trace_get(trace, "digest"))) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                    "the trace's plan cannot be built again: its header gives %s, it is of %s; "
                    "record it with this version",
                    plan_digest(plan), trace_get(trace, "digest"));
        return false;
    }
    return true;
}

/* All of the trace but where it is predicted. */
static CliWhatIf *read_asked(const Trace *trace, GError **error) {
    if (trace_get(trace, "strategy") == NULL || trace_get(trace, "network") == NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "the trace's header has no network and strategy, so no neighbour can be "
                    "predicted; use a plan that was built from a network");
        return NULL;
    }
    g_autoptr(CliWhatIf) what_if = g_new0(CliWhatIf, 1);
    what_if->settings = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (!take_strategy(what_if, trace, error) || !take_network(what_if, trace, error) ||
        !check_digest(what_if, trace, error)) {
        return NULL;
    }
    return g_steal_pointer(&what_if);
}

/* Of jitter one rank on each kind of node knows what GPUs have for good. */
static bool has_other_jitter(const SimJitter *jitter) {
    bool has = false;
    for (unsigned kind = 0; kind < SIM_N_JITTERS; kind++) {
        has |= kind != SIM_JITTER_GPU && jitter->shares[kind] > 0;
    }
    return has;
}

static const char *why_unlike(const CliWhatIf *what_if) {
    const SimOptions *options = &what_if->asked->options;
    SimJitter jitter = options->every_rank ? options->jitter : sim_jitter_of(what_if->cluster);
    return options->n_troubles == 0 && !has_other_jitter(&jitter)
               ? sim_told_apart(what_if->strategy.ranks, what_if->cluster)
               : NULL;
}

/* Takes the cluster; NULL: error says why there is none. */
static CliWhatIf *put_on(CliWhatIf *asked, ModelCluster *cluster, const Trace *trace,
                         GError **error) {
    g_autoptr(CliWhatIf) what_if = asked;
    what_if->cluster = cluster;
    what_if->asked = cluster != NULL ? sim_settings_read(trace, error) : NULL;
    if (what_if->asked == NULL) {
        return NULL;
    }
    model_cluster_force_nccl(cluster, what_if->asked->nccl_algo, what_if->asked->nccl_proto);
    what_if->unlike = why_unlike(what_if);
    return g_steal_pointer(&what_if);
}

CliWhatIf *cli_what_if_new(const Trace *trace, const char *cluster, GError **error) {
    CliWhatIf *asked = read_asked(trace, error);
    return asked != NULL ? put_on(asked, read_cluster(trace, cluster, error), trace, error) : NULL;
}

CliWhatIf *cli_what_if_on(const Trace *trace, const ModelCluster *cluster, GError **error) {
    CliWhatIf *asked = read_asked(trace, error);
    return asked != NULL ? put_on(asked, model_cluster_copy(cluster), trace, error) : NULL;
}

void cli_what_if_free(CliWhatIf *what_if) {
    if (what_if == NULL) {
        return;
    }
    cli_what_if_ahead_free(what_if->ahead); /* its threads read the rest */
    model_network_free(what_if->network);
    g_strfreev(what_if->network_keys);
    model_cluster_free(what_if->cluster);
    sim_settings_free(what_if->asked);
    g_hash_table_unref(what_if->settings);
    g_free(what_if);
}

const char *cli_what_if_get(const CliWhatIf *what_if, const char *key) {
    return g_hash_table_lookup(what_if->settings, key);
}

bool cli_what_if_changes(const CliWhatIf *what_if, const char *changes) {
    g_auto(GStrv) pairs = cli_settings_split(changes);
    bool any = false;
    for (char **pair = pairs; *pair != NULL; pair += 2) {
        any |= g_strcmp0(cli_what_if_get(what_if, pair[0]), pair[1]) != 0;
    }
    return any;
}

/* A flavour that only one sharding has goes with it. */
static bool free_flavour(PlanStrategy *strategy, const char *key, GError **error) {
    bool shards =
        strategy->flavour == PLAN_FLAVOUR_FSDP1 || strategy->flavour == PLAN_FLAVOUR_FSDP2;
    bool tied = g_str_equal(key, "sharding") && !shards;
    return !tied || plan_strategy_set(strategy, "flavour", "auto", error);
}

/* Those of the changes that are the strategy's, to one that is settled again. */
static bool change_strategy(PlanStrategy *strategy, char **changes, GError **error) {
    for (char **pair = changes; *pair != NULL; pair += 2) {
        bool is_its = cli_setting_of_network(pair[0]) == NULL;
        if (is_its && (!free_flavour(strategy, pair[0], error) ||
                       !plan_strategy_set(strategy, pair[0], pair[1], error))) {
            return false;
        }
    }
    return plan_strategy_settle(strategy, error);
}

typedef struct {
    const ModelNetwork *network;
    const PlanStrategy *strategy;
} Neighbour;

static Plan *build(gpointer self, PlanForm form, GError **error) {
    const Neighbour *neighbour = self;
    return model_network_plan(neighbour->network, neighbour->strategy, form, error);
}

/* cluster: where it is predicted, as asked for or with one rank on each kind of node. */
static SimPrediction *play(Neighbour *neighbour, const ModelCluster *cluster,
                           const SimOptions *options, GError **error) {
    SimOptions as_needed = *options;
    as_needed.steps = options->every_rank ? options->steps : SIM_STEPS_IT_TAKES;
    g_autoptr(Plan) plan = NULL;
    return sim_predict_built(build, neighbour, &plan, cluster, &as_needed, NULL, error);
}

/* Close to full, each rank's own order of events may decide. */
static bool is_sure(const SimPrediction *prediction) {
    static const double MARGIN = 0.02;
    return !prediction->fits || (prediction->alloc_retries == 0 &&
                                 (double)prediction->peak_reserved_bytes <
                                     (1 - MARGIN) * (double)prediction->allocator_bytes);
}

static SimPrediction *play_one_of_each(Neighbour *neighbour, const ModelCluster *cluster,
                                       const SimOptions *options, GError **error) {
    SimOptions one_of_each = *options;
    one_of_each.jitter = options->every_rank ? options->jitter : sim_jitter_of(cluster);
    one_of_each.every_rank = false;
    one_of_each.one_of_each = true;
    g_autoptr(SimPrediction) prediction = play(neighbour, cluster, &one_of_each, error);
    return prediction == NULL || is_sure(prediction) ? g_steal_pointer(&prediction)
                                                     : play(neighbour, cluster, options, error);
}

static SimPrediction *predict(const CliWhatIf *what_if, const char *changes,
                              const ModelCluster *cluster, const SimOptions *options,
                              GError **error) {
    PlanStrategy strategy = what_if->strategy;
    g_auto(GStrv) pairs = cli_settings_split(changes);
    GError *refusal = NULL;
    g_autoptr(ModelNetwork) other = change_network(what_if, pairs, &refusal);
    if (refusal != NULL) {
        g_propagate_error(error, refusal);
        return NULL;
    }
    if (!change_strategy(&strategy, pairs, error)) {
        return NULL;
    }
    Neighbour neighbour = {other != NULL ? other : what_if->network, &strategy};
    const ModelCluster *on = cluster != NULL ? cluster : what_if->cluster;
    bool is_changed = cluster != NULL || cli_what_if_changes(what_if, changes);
    bool by_kind = what_if->unlike != NULL && is_changed && strategy.pipeline == 1 &&
                   sim_told_apart(strategy.ranks, on) != NULL;
    return by_kind ? play_one_of_each(&neighbour, on, options, error)
                   : play(&neighbour, on, options, error);
}

/* On the trace's cluster. */
static SimPrediction *predict_there(gconstpointer self, const char *changes, SimWanted wanted,
                                    GError **error) {
    const CliWhatIf *what_if = self;
    SimOptions options = what_if->asked->options;
    options.wanted = MAX(options.wanted, wanted);
    return predict(what_if, changes, NULL, &options, error);
}

void cli_what_if_expect(CliWhatIf *what_if, const char *const *changes, guint n, SimWanted wanted) {
    guint cores = cli_cores(0, what_if->strategy.pipeline > 1);
    if (cores == 1) {
        return;
    }
    if (what_if->ahead == NULL) {
        what_if->ahead = cli_what_if_ahead_new(cores, predict_there, what_if);
    }
    for (guint i = 0; i < n; i++) {
        if (cli_what_if_changes(what_if, changes[i])) {
            cli_what_if_ahead_give(what_if->ahead, changes[i], wanted);
        }
    }
}

static SimPrediction *take_or_predict(const CliWhatIf *what_if, const char *changes,
                                      SimWanted wanted, GError **error) {
    SimPrediction *prediction = NULL;
    bool is_taken = what_if->ahead != NULL &&
                    cli_what_if_ahead_take(what_if->ahead, changes, wanted, &prediction, error);
    return is_taken ? prediction : predict_there(what_if, changes, wanted, error);
}

SimPrediction *cli_what_if(const CliWhatIf *what_if, const char *changes,
                           const ModelCluster *cluster, GError **error) {
    return cluster != NULL ? predict(what_if, changes, cluster, &what_if->asked->options, error)
                           : take_or_predict(what_if, changes, SIM_WANTED_ALL, error);
}

SimPrediction *cli_what_if_untroubled(const CliWhatIf *what_if, GError **error) {
    SimOptions options = what_if->asked->options;
    options.n_troubles = 0;
    return predict(what_if, "", NULL, &options, error);
}

SimPrediction *cli_what_if_fits(const CliWhatIf *what_if, const char *changes, SimWanted wanted) {
    g_autoptr(SimPrediction) prediction = take_or_predict(what_if, changes, wanted, NULL);
    bool fits = prediction != NULL && prediction->fits && !prediction->unsupported_dtype;
    return fits ? g_steal_pointer(&prediction) : NULL;
}
