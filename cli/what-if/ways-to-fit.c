#include "cli/what-if/ways-to-fit.h"

#include <string.h>

#include "cli/options/setting.h"
#include "trace/scale.h"

/* The least change first: an environment variable, the loss, what costs time, experts that ranks
 * share (with more beside it below). Precision and the batch, which may have been meant so, come
 * later than what changes neither, and a loss in chunks, whose products are narrow, behind one in a
 * kernel. What recomputes less comes behind full recomputation: it is worth a line only where it is
 * quicker by much. Offload of parameters is none of them: what the host holds is not modelled. */
static const char *const of_one_rank[] = {
    "allocator=expandable",
    "limit_all_gathers=2",
    "network.loss=kernel",
    "checkpointing=full",
    "checkpointing=selective-op",
    "checkpointing=every=2",
    "checkpointing=every=4",
    "accumulate_sync=every",
    "sharding=full",
    "optimizer_kernel=fused",
    "checkpointing=full network.loss=kernel",
    "sharding=full checkpointing=full",
    "checkpointing=full optimizer_kernel=fused",
    "checkpointing=full accumulate_sync=every",
    "sharding=full checkpointing=full optimizer_kernel=fused",
    "sharding=full checkpointing=full network.loss=kernel",
    "sharding=full checkpointing=full network.loss=kernel optimizer_kernel=fused",
    "sharding=full checkpointing=full network.loss=kernel optimizer_kernel=fused "
    "allocator=expandable",
    "expert=8",
    "param_dtype=bf16",
    "checkpointing=full param_dtype=bf16",
    "sharding=full checkpointing=full param_dtype=bf16",
    "sharding=full checkpointing=full param_dtype=bf16 network.loss=kernel",
    "sharding=full checkpointing=full param_dtype=bf16 optimizer_kernel=fused",
    "sharding=full checkpointing=full param_dtype=bf16 accumulate_sync=every",
    "sharding=full checkpointing=full param_dtype=bf16 network.loss=kernel optimizer_kernel=fused "
    "allocator=expandable",
    "network.loss=chunked",
    "sharding=full checkpointing=full network.loss=chunked",
    "sharding=full checkpointing=full param_dtype=bf16 network.loss=chunked "
    "optimizer_kernel=fused allocator=expandable",
    "sharding=full checkpointing=full micro_batch=1",
};

/* Beside adapters: weights that are not trained need not be in fp32, nor in 16 bits. */
static const char *const of_frozen_weights[] = {
    "model_dtype=bf16",
    "model_dtype=bf16 checkpointing=full",
    "model_dtype=bf16 lora_base=nf4 lora_base_storage=model",
    "model_dtype=bf16 lora_base=nf4 lora_base_storage=model checkpointing=full",
};

/* Where nothing else helps: what learns otherwise, an optimizer's state in 8 bits, weights that are
 * trained in bf16 alone. */
static const char *const of_fewer_bits[] = {
    "checkpointing=full optimizer=adamw-torch-8bit",
    "sharding=full checkpointing=full param_dtype=bf16 optimizer=adamw-torch-8bit",
    "sharding=full checkpointing=full model_dtype=bf16",
    "sharding=full checkpointing=full model_dtype=bf16 network.loss=kernel "
    "optimizer=adamw-torch-8bit",
    "sharding=full checkpointing=full model_dtype=bf16 network.loss=chunked "
    "optimizer=adamw-torch-8bit allocator=expandable",
};

/* Ranks that share what one has too much of; a node of these machines has 4 or 8, and only what is
 * passed along a ring hides between nodes. A network or a strategy that cannot share it refuses.
 * Sequences come before layers, whose sharers wait for each other in every layer. */
static const char *const of_experts[] = {"expert=8", "expert=4", NULL};
static const char *const of_sequences[] = {"context=2",  "context=4",  "context=8",
                                           "context=16", "context=32", NULL};
static const char *const of_layers[] = {"tensor=2", "tensor=4", "tensor=8", NULL};

static void clear_way(gpointer data) {
    g_free(((CliWay *)data)->changes);
}

/* Of "key=value key=value" what is not so already. */
static char *changing(const CliWhatIf *what_if, const char *changes) {
    g_auto(GStrv) words = g_strsplit(changes, " ", -1);
    GString *text = g_string_new(NULL);
    for (char **word = words; *word != NULL; word++) {
        if (cli_what_if_changes(what_if, *word)) {
            g_string_append_printf(text, "%s%s", text->len > 0 ? " " : "", *word);
        }
    }
    return g_string_free(text, FALSE);
}

static bool try_way(const CliWhatIf *what_if, const char *changes, SimWanted wanted,
                    CliWay *ret_way) {
    g_autoptr(SimPrediction) with = cli_what_if_fits(what_if, changes, wanted);
    if (with == NULL) {
        return false;
    }
    *ret_way = (CliWay){.changes = changing(what_if, changes),
                        .step_ns = (double)with->median_step_ns,
                        .reserved_bytes = (double)with->peak_reserved_bytes,
                        .retries = with->alloc_retries,
                        .n_steps = with->n_steps};
    return true;
}

static void try_settings(CliWhatIf *what_if, const char *const *settings, guint n, SimWanted wanted,
                         GArray *ways) {
    cli_what_if_expect(what_if, settings, n, wanted);
    for (guint i = 0; i < n; i++) {
        CliWay way;
        if (cli_what_if_changes(what_if, settings[i]) &&
            try_way(what_if, settings[i], wanted, &way)) {
            g_array_append_val(ways, way);
        }
    }
}

/* More ranks, up to the first number of them with which no memory is given back; and: what else is
 * changed. */
static void try_ranks(const CliWhatIf *what_if, const char *and, SimWanted wanted, GArray *ways) {
    uint64_t place = model_cluster_ranks(what_if->cluster);
    for (uint64_t ranks = 2 * what_if->strategy.ranks; ranks <= place; ranks *= 2) {
        g_autofree char *changes = g_strdup_printf(
            "ranks=%" G_GUINT64_FORMAT " sharding=full checkpointing=full%s", ranks, and);
        CliWay way;
        if (try_way(what_if, changes, wanted, &way)) {
            g_array_append_val(ways, way);
            if (way.retries == 0) {
                return;
            }
        }
    }
}

/* The first of these to fit calmly, beside all that shards and recomputes; in bf16, too. */
static void try_sharers(const CliWhatIf *what_if, const char *const *sharers, SimWanted wanted,
                        GArray *ways) {
    static const char *const beside[] = {"", " param_dtype=bf16"};
    for (guint k = 0; k < G_N_ELEMENTS(beside); k++) {
        if (*beside[k] != '\0' && !cli_what_if_changes(what_if, beside[k] + 1)) {
            return;
        }
        for (const char *const *sharer = sharers; *sharer != NULL; sharer++) {
            g_autofree char *changes =
                g_strconcat(*sharer, " sharding=full checkpointing=full", beside[k], NULL);
            CliWay way;
            if (cli_what_if_changes(what_if, *sharer) && try_way(what_if, changes, wanted, &way)) {
                g_array_append_val(ways, way);
                if (way.retries == 0) {
                    break;
                }
            }
        }
    }
}

static const CliWay *way_at(const GArray *ways, guint i) {
    return &g_array_index(ways, CliWay, i);
}

static guint first_of(const GArray *ways, bool without_retries) {
    for (guint i = 0; i < ways->len; i++) {
        if (!without_retries || way_at(ways, i)->retries == 0) {
            return i;
        }
    }
    return ways->len;
}

static bool has_calm(const GArray *ways) {
    return first_of(ways, true) < ways->len;
}

/* Whose step is of fewer tokens, so that its time is not to be held against others. */
static bool changes_batch(const CliWay *way) {
    return strstr(way->changes, "micro_batch=") != NULL ||
           strstr(way->changes, "context=") != NULL || strstr(way->changes, "tensor=") != NULL;
}

/* Worth a second line when it takes a tenth less. */
static guint quickest_of(const GArray *ways, guint first) {
    guint best = first;
    for (guint i = 0; i < ways->len; i++) {
        const CliWay *way = way_at(ways, i);
        if (way->retries == 0 && !changes_batch(way) &&
            way->step_ns < 0.9 * way_at(ways, best)->step_ns) {
            best = i;
        }
    }
    return best;
}

static void take(GArray *chosen, GArray *ways, guint i) {
    CliWay way = *way_at(ways, i);
    way.changes = g_strdup(way.changes);
    g_array_append_val(chosen, way);
}

/* Of those given, where there is a choice. */
static void mark(GArray *chosen) {
    CliWay *quickest = NULL;
    for (guint i = 0; i < chosen->len && chosen->len > 1; i++) {
        CliWay *way = &g_array_index(chosen, CliWay, i);
        way->is_least_change = i == 0;
        if (way->retries == 0 && !changes_batch(way) &&
            (quickest == NULL || way->step_ns < quickest->step_ns)) {
            quickest = way;
        }
    }
    if (quickest != NULL) {
        quickest->is_quickest = true;
    }
}

static GArray *ways_new(void) {
    GArray *ways = g_array_new(FALSE, FALSE, sizeof(CliWay));
    g_array_set_clear_func(ways, clear_way);
    return ways;
}

/* All that fit, until one does without giving memory back. */
static GArray *try_all(CliWhatIf *what_if, SimWanted wanted) {
    GArray *ways = ways_new();
    try_settings(what_if, of_one_rank, G_N_ELEMENTS(of_one_rank), wanted, ways);
    if (what_if->strategy.lora_rank > 0) {
        try_settings(what_if, of_frozen_weights, G_N_ELEMENTS(of_frozen_weights), wanted, ways);
    }
    if (!has_calm(ways)) {
        try_sharers(what_if, of_experts, wanted, ways);
    }
    if (!has_calm(ways)) {
        try_ranks(what_if, "", wanted, ways);
        if (cli_what_if_changes(what_if, "param_dtype=bf16")) {
            try_ranks(what_if, " param_dtype=bf16", wanted, ways);
        }
    }
    if (!has_calm(ways)) {
        try_sharers(what_if, of_sequences, wanted, ways);
    }
    if (!has_calm(ways)) {
        try_sharers(what_if, of_layers, wanted, ways);
    }
    if (!has_calm(ways)) {
        try_settings(what_if, of_fewer_bits, G_N_ELEMENTS(of_fewer_bits), wanted, ways);
    }
    return ways;
}

GArray *cli_ways(CliWhatIf *what_if, bool fits) {
    if (what_if == NULL) {
        return NULL;
    }
    g_autoptr(GArray) ways = try_all(what_if, fits ? SIM_WANTED_CALM : SIM_WANTED_FIT);
    GArray *chosen = ways_new();
    guint first = first_of(ways, fits), calm = first_of(ways, true);
    if (first < ways->len) {
        take(chosen, ways, first);
    }
    if (calm < ways->len) {
        guint quickest = quickest_of(ways, calm);
        if (calm != first) {
            take(chosen, ways, calm);
        }
        if (quickest != calm) {
            take(chosen, ways, quickest);
        }
    }
    mark(chosen);
    return chosen;
}

const CliWay *cli_ways_best(const GArray *ways) {
    guint calm = first_of(ways, true);
    return ways->len == 0 ? NULL : way_at(ways, calm < ways->len ? calm : 0);
}

void cli_ways_add_json(JsonBuilder *json, const GArray *ways, bool fits) {
    trace_json_begin_array(json, fits ? "ways_without_retries" : "ways_to_fit");
    for (guint i = 0; ways != NULL && i < ways->len; i++) {
        const CliWay *way = way_at(ways, i);
        json_builder_begin_object(json);
        trace_json_add_text(json, "settings", way->changes);
        trace_json_add_real(json, "step_ms", way->step_ns / 1e6);
        trace_json_add_number(json, "peak_reserved_bytes", way->reserved_bytes);
        trace_json_add_int(json, "alloc_retries", way->retries);
        trace_json_add_bool(json, "least_change", way->is_least_change);
        trace_json_add_bool(json, "quickest", way->is_quickest);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

char *cli_way_text(const CliWay *way, const char *reserved) {
    g_autofree char *options = cli_settings_as_options(way->changes);
    TraceScale time = trace_scale_time(way->step_ns);
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%s: step %.3f %s, %s reserved", options,
                           way->step_ns / time.per_unit, time.unit, reserved);
    if (changes_batch(way) && strstr(way->changes, "micro_batch=") == NULL) {
        g_string_append(text, " (of fewer tokens: ranks share a batch)");
    }
    if (way->retries > 0) {
        g_autofree char *retries = trace_retries_text(way->retries, way->n_steps);
        g_string_append_printf(text, ", but %s", retries);
    }
    if (way->is_least_change || way->is_quickest) {
        g_string_append_printf(text, " (%s%s%s)", way->is_least_change ? "least change" : "",
                               way->is_least_change && way->is_quickest ? ", " : "",
                               way->is_quickest ? "quickest" : "");
    }
    return g_string_free(text, FALSE);
}
