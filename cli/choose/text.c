/* cli/choose/text.c - what is said of choices around their table, and what to do next. */
#include <math.h>
#include <string.h>

#include "cli/choose/machines.h"
#include "cli/choose/rows.h"
#include "cli/choose/sure.h"
#include "cli/options/setting.h"
#include "cli/say/prose.h"
#include "cli/source/cluster.h"
#include "cli/what-if/ways-to-fit.h"

/* As many nodes as would do if each GPU stayed as fast. */
static uint64_t nodes_in_time(const ModelCluster *cluster, uint64_t ranks, double days,
                              const CliChooseView *view) {
    double times = days / view->most_days;
    return (uint64_t)ceil((double)ranks * times / (double)cluster->topology_gpus_per_node);
}

/* What it was given as, by which it can be given again. */
static const char *called(const ModelCluster *cluster, const CliChosen *chosen,
                          const CliChooseView *view) {
    for (guint i = 0; i < chosen->machines->len; i++) {
        if (g_array_index(chosen->machines, CliMachine, i).cluster == cluster) {
            return view->called[i];
        }
    }
    return cluster->name;
}

/* The end of a sentence. */
static void append_ranks_in_time(GString *text, const CliMachine *machine, const CliChosen *chosen,
                                 const CliChooseView *view) {
    const ModelCluster *cluster = machine->cluster;
    uint64_t nodes = nodes_in_time(cluster, machine->days.ranks, machine->days.amount, view);
    if (model_cluster_can_grow(cluster)) {
        g_autofree char *larger = cli_cluster_name_with_nodes(called(cluster, chosen, view), nodes);
        g_string_append_printf(
            text, "; %" G_GUINT64_FORMAT " would do if each stayed as fast (--cluster %s)",
            (guint64)(nodes * cluster->topology_gpus_per_node), larger);
    }
}

/* What fits there and is not listed: too late, or in time and too dear. */
static void append_beyond(GString *text, const CliMachine *machine, const CliChosen *chosen,
                          const CliChooseView *view) {
    if (view->most_days > 0 && machine->days.amount > view->most_days) {
        g_autofree char *most_days = cli_choose_days(view->most_days);
        g_autofree char *days = cli_choose_amount(machine->days.amount);
        g_string_append_printf(text,
                               "nothing finishes in %s; the fastest takes %s days, on "
                               "%" G_GUINT64_FORMAT " GPUs",
                               most_days, days, machine->days.ranks);
        append_ranks_in_time(text, machine, chosen, view);
    } else {
        g_autofree char *most = cli_choose_amount(view->most_price);
        g_autofree char *price = cli_choose_amount(machine->price.amount);
        g_string_append_printf(text,
                               "nothing%s costs %s or less; the cheapest costs %s, on "
                               "%" G_GUINT64_FORMAT " GPUs",
                               view->most_days > 0 ? " that is done in time" : "", most, price,
                               machine->price.ranks);
    }
    g_string_append_c(text, '\n');
}

/* A machine that was asked about and has no row says why. */
static void append_empty_places(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    for (guint i = 0; i < chosen->machines->len; i++) {
        const CliMachine *machine = &g_array_index(chosen->machines, CliMachine, i);
        if (!cli_machine_is_empty(chosen, machine)) {
            continue;
        }
        g_string_append_printf(text, "not listed: %s, where ", machine->cluster->name);
        if (machine->n_fit > 0) {
            append_beyond(text, machine, chosen, view);
        } else if (machine->has_nearest) {
            g_string_append_printf(text, "nothing fits; the nearest needs %.2f GiB of %.2f GiB\n",
                                   (double)machine->nearest_bytes / CLI_CHOOSE_GIB,
                                   (double)machine->allocator_bytes / CLI_CHOOSE_GIB);
        } else {
            g_string_append(text, "no setting could be predicted\n");
        }
    }
}

/* Prices rank only where all are known. */
static void append_missing_prices(GString *text, const CliChosen *chosen) {
    g_autoptr(GString) names = g_string_new(NULL);
    guint n_priced = 0;
    for (guint i = 0; i < chosen->machines->len; i++) {
        const CliMachine *machine = &g_array_index(chosen->machines, CliMachine, i);
        n_priced += machine->cluster->device_price_per_hour > 0;
        if (!cli_machine_is_priced(machine->cluster) && !cli_machine_is_empty(chosen, machine)) {
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "",
                                   machine->cluster->name);
        }
    }
    if (n_priced > 0 && names->len > 0 && !chosen->by_price) {
        g_string_append_printf(text,
                               "no price of %s is known (--price CLUSTER=2.50), so rows are ranked "
                               "by speed\n",
                               names->str);
    }
}

static void append_counts(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    g_string_append_printf(text, "%u setting%s predicted, %u of them did not fit",
                           chosen->n_predicted, chosen->n_predicted == 1 ? "" : "s",
                           chosen->n_not_fitting);
    if (chosen->n_left_out > 0) {
        g_string_append_printf(text,
                               "; %u skipped, since one that needs no more memory did not fit",
                               chosen->n_left_out);
    }
    if (chosen->n_late > 0) {
        g_autofree char *most_days = cli_choose_days(view->most_days);
        g_string_append_printf(text, "; %u would take more than %s", chosen->n_late, most_days);
    }
    if (chosen->n_dear > 0) {
        g_autofree char *most = cli_choose_amount(view->most_price);
        g_string_append_printf(text, "; %u would cost more than %s", chosen->n_dear, most);
    }
    if (chosen->n_refused > 0) {
        g_string_append_printf(text, "; %u refused (the first: %s%s%s)", chosen->n_refused,
                               chosen->refusal, chosen->another != NULL ? "; another: " : "",
                               chosen->another != NULL ? chosen->another : "");
    }
    g_string_append_c(text, '\n');
}

/* Why it took longer than of machines whose ranks are alike. */
static void append_exact(GString *text, const CliChosen *chosen) {
    g_autoptr(GString) machines = g_string_new(NULL);
    for (guint i = 0; i < chosen->machines->len; i++) {
        const CliMachine *machine = &g_array_index(chosen->machines, CliMachine, i);
        if (machine->unlike != NULL) {
            g_string_append_printf(machines, "%s%s has %s", machines->len > 0 ? ", " : "",
                                   machine->cluster->name, machine->unlike);
        }
    }
    if (machines->len > 0) {
        g_string_append_printf(
            text,
            "%s: no GPU stands for all there, so every one was played of the %u setting%s that "
            "might be shown, which takes long; of the others one on each kind of node\n",
            machines->str, chosen->n_exact, chosen->n_exact == 1 ? "" : "s");
    }
}

static void append_baseline(GString *text, const CliChosen *chosen) {
    const CliChoice *baseline = chosen->baseline, *best = cli_choice_at(chosen, 0);
    if (baseline == NULL) {
        g_string_append(text, "neither DDP nor FSDP2 with its defaults fits on those GPUs\n");
        return;
    }
    const char *device = model_cluster_device_word(best->cluster);
    double rate = cli_choice_tokens_per_s(baseline);
    double more = cli_choice_tokens_per_s(best) / rate - 1;
    g_string_append_printf(text,
                           "simplest that fits on row 1's %ss, tuned:\n  %s\n"
                           "  %.1f tokens/s/%s, %.2f GiB reserved; ",
                           device, baseline->title, rate / (double)baseline->ranks, device,
                           (double)baseline->reserved_bytes / CLI_CHOOSE_GIB);
    if (fabs(more) < 0.01) {
        g_string_append(text, "row 1 is as fast\n");
    } else {
        g_string_append_printf(text, "row 1 is %.1f %% %s\n", 100 * fabs(more),
                               more > 0 ? "faster" : "slower, so use this one");
    }
}

static void append_ways(GString *text, const CliChosen *chosen, const char *that) {
    for (guint i = 0; chosen->ways != NULL && i < chosen->ways->len; i++) {
        const CliWay *way = &g_array_index(chosen->ways, CliWay, i);
        g_autofree char *reserved =
            g_strdup_printf("%.2f GiB", way->reserved_bytes / CLI_CHOOSE_GIB);
        g_autofree char *line = cli_way_text(way, reserved);
        g_string_append_printf(text, "%s with %s\n", that, line);
    }
}

/* of: "strategy" or "network". */
static bool has(const CliChoice *choice, const char *of, const char *key, const char *value) {
    g_auto(GStrv) settings = cli_settings_split(trace_get(choice->header, of));
    return g_strcmp0(cli_settings_value(settings, key), value) == 0;
}

/* Where no setting helps: what is another training, or another machine. */
static void append_larger_changes(GString *text, const CliChoice *nearest) {
    bool all_trained = nearest == NULL || has(nearest, "strategy", "lora_rank", "0");
    bool whole = nearest == NULL || has(nearest, "strategy", "lora_base", "model");
    g_string_append(text, "try more GPUs (without -n up to all of the cluster's are tried; "
                          "--cluster NAME:NODES has more),\na shorter sequence (--seq), ");
    g_string_append(text, all_trained ? "adapters only (--lora-rank 16; with --lora-base nf4\n"
                                        "beside weights of 4 bits), "
                          : whole     ? "weights of 4 bits (--lora-base nf4), "
                                      : "");
    g_string_append(text, "or GPUs with more memory\n");
    if (nearest != NULL && has(nearest, "network", "code", "transformers")) {
        g_string_append(text, "GPUs can share sequences (--context) and layers (--tensor) of this "
                              "project's modules, not of transformers': --network-key code=own\n");
    }
}

static void append_none(GString *text, const CliChosen *chosen) {
    const CliChoice *nearest = chosen->nearest;
    g_string_append(text, "nothing fits");
    if (nearest != NULL) {
        g_autofree char *all = g_strjoinv(" ", nearest->settings);
        g_autofree char *options = cli_settings_as_options(all);
        g_string_append_printf(text, "; nearest on %s: %s,\nwhich would need %.2f GiB of %.2f GiB",
                               nearest->cluster->name,
                               *options != '\0' ? options : "what was asked for",
                               (double)nearest->reserved_bytes / CLI_CHOOSE_GIB,
                               (double)nearest->allocator_bytes / CLI_CHOOSE_GIB);
    }
    g_string_append_c(text, '\n');
    append_ways(text, chosen, "  fits");
    if (chosen->ways == NULL || chosen->ways->len == 0) {
        append_larger_changes(text, nearest);
    }
}

static void append_late(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    const CliChoice *quickest = chosen->quickest;
    g_autofree char *all = g_strjoinv(" ", quickest->settings);
    g_autofree char *options = cli_settings_as_options(all);
    double least_days = cli_choice_days(quickest, view->tokens);
    g_autofree char *days = cli_choose_amount(least_days);
    g_autofree char *most_days = cli_choose_days(view->most_days);
    uint64_t nodes = nodes_in_time(quickest->cluster, quickest->ranks, least_days, view);
    uint64_t ranks = nodes * quickest->cluster->topology_gpus_per_node;
    g_string_append_printf(text,
                           "nothing that fits finishes in %s; the fastest takes %s days, on "
                           "%s:\n%s, %.1f tokens/s/GPU\n"
                           "%" G_GUINT64_FORMAT " GPUs would do if each stayed as fast",
                           most_days, days, quickest->cluster->name, options,
                           cli_choice_tokens_per_s_per_gpu(quickest), (guint64)ranks);
    if (model_cluster_can_grow(quickest->cluster)) {
        g_autofree char *larger =
            cli_cluster_name_with_nodes(called(quickest->cluster, chosen, view), nodes);
        g_string_append_printf(text, ": -n %" G_GUINT64_FORMAT " --cluster %s\n", (guint64)ranks,
                               larger);
    } else {
        g_string_append(text, ", on a cluster whose file has more nodes of these\n");
    }
}

static void append_dear(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    const CliChoice *cheapest = chosen->cheapest;
    g_autofree char *all = g_strjoinv(" ", cheapest->settings);
    g_autofree char *options = cli_settings_as_options(all);
    g_autofree char *most = cli_choose_amount(view->most_price);
    g_autofree char *price = cli_choose_amount(cli_choice_price(cheapest, view->tokens));
    g_autofree char *days = cli_choose_amount(cli_choice_days(cheapest, view->tokens));
    g_string_append(text, "nothing that fits");
    if (view->most_days > 0) {
        g_autofree char *most_days = cli_choose_days(view->most_days);
        g_string_append_printf(text, " and finishes in %s", most_days);
    }
    g_string_append_printf(text,
                           " costs %s or less; the cheapest costs %s and takes %s days, on %s:\n"
                           "%s, %.1f tokens/s/GPU\n",
                           most, price, days, cheapest->cluster->name, options,
                           cli_choice_tokens_per_s_per_gpu(cheapest));
}

/* Those of the network among row 1's settings, as options behind those that were given. */
static char *network_keys(const CliChoice *best, const CliChooseView *view) {
    GString *keys = g_string_new(view->network_keys);
    for (char **setting = best->settings; *setting != NULL; setting++) {
        if (cli_setting_of_network(*setting) != NULL) {
            g_autofree char *option = cli_settings_as_options(*setting);
            g_string_append_printf(keys, " %s", option);
        }
    }
    return g_string_free(keys, FALSE);
}

static void append_next(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    const CliChoice *best = cli_choice_at(chosen, 0);
    bool any_price = false;
    for (guint i = 0; i < chosen->machines->len; i++) {
        any_price |=
            g_array_index(chosen->machines, CliMachine, i).cluster->device_price_per_hour > 0;
    }
    if (!any_price) {
        g_string_append(text, "no prices are known: give --price 2.50 (per GPU-hour), or "
                              "--price CLUSTER=2.50\n");
    }
    if (view->written != NULL) {
        g_autofree char *first = g_strdup_printf("%s has row 1's strategy:", view->written);
        g_autofree char *keys = network_keys(best, view);
        g_autofree char *next =
            g_strdup_printf("foreshard diagnose %s%s --strategy %s --cluster %s", view->network,
                            keys, view->written, called(best->cluster, chosen, view));
        bool is_long = strlen(first) + 1 + strlen(next) > view->columns; /* a command stays whole */
        g_string_append_printf(text, "%s%s%s\n", first, is_long ? "\n  " : " ", next);
    } else {
        g_string_append(text, "-o FILE writes row 1's strategy, for --strategy FILE of other "
                              "commands;\nforeshard diagnose says what else would help\n");
    }
}

/* As its plans have it: a config.json is called by its folder. */
static char *name_of_network(const CliChosen *chosen, const CliChooseView *view) {
    const CliChoice *any = chosen->choices->len > 0   ? cli_choice_at(chosen, 0)
                           : chosen->quickest != NULL ? chosen->quickest
                           : chosen->cheapest != NULL ? chosen->cheapest
                                                      : chosen->nearest;
    return any != NULL ? cli_plan_network_of(any->title) : g_path_get_basename(view->network);
}

char *cli_chosen_text(const CliChosen *chosen, const CliChooseView *view) {
    GString *text = g_string_new(NULL);
    g_autofree char *name = name_of_network(chosen, view);
    g_string_append(text, name);
    if (chosen->choices->len > 0) {
        cli_choose_append_rows(text, chosen, view);
        append_empty_places(text, chosen, view);
        append_missing_prices(text, chosen);
        cli_choose_append_sure(text, chosen, view);
        append_ways(text, chosen, "row 1 has no retries");
        append_baseline(text, chosen);
        append_counts(text, chosen, view);
        append_exact(text, chosen);
        append_next(text, chosen, view);
    } else {
        g_string_append(text, ": ");
        if (chosen->quickest != NULL) {
            append_late(text, chosen, view);
        } else if (chosen->cheapest != NULL) {
            append_dear(text, chosen, view);
        } else {
            append_none(text, chosen);
        }
        cli_choose_append_precision(text, chosen);
        append_counts(text, chosen, view);
        append_exact(text, chosen);
    }
    return g_string_free(text, FALSE);
}
