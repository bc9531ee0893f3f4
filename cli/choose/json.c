/* cli/choose/json.c - choices for programs. */
#include <string.h>

#include "cli/choose/choose.h"
#include "cli/predict/how-sure.h"
#include "cli/what-if/ways-to-fit.h"
#include "trace/json.h"

static void add_settings(JsonBuilder *json, char **settings) {
    trace_json_begin_object(json, "settings");
    for (guint i = 0; settings[i] != NULL; i++) {
        g_auto(GStrv) pair = g_strsplit(settings[i], "=", 2);
        trace_json_add_text(json, pair[0], pair[1]);
    }
    json_builder_end_object(json);
}

static void add_known(JsonBuilder *json, const char *key, double value) {
    if (value > 0) {
        trace_json_add_real(json, key, value);
    }
}

static void add_choice(JsonBuilder *json, const CliChoice *choice, const CliChooseView *view) {
    trace_json_add_text(json, "title", choice->title);
    trace_json_add_text(json, "cluster", choice->cluster->name);
    trace_json_add_int(json, "ranks", choice->ranks);
    add_settings(json, choice->settings);
    trace_json_add_int(json, "micro_batch", choice->micro_batch);
    trace_json_add_int(json, "accumulate", choice->accumulate);
    trace_json_add_text(json, "strategy", choice->strategy);
    trace_json_add_bool(json, "fits", choice->fits);
    trace_json_add_bool(json, "trains_well", choice->trains_well);
    trace_json_add_real(json, "step_ms", choice->step_ns / 1e6);
    trace_json_add_real(json, "tokens_per_step", choice->tokens);
    trace_json_add_real(json, "tokens_per_s", cli_choice_tokens_per_s(choice));
    trace_json_add_real(json, "tokens_per_s_per_gpu", cli_choice_tokens_per_s_per_gpu(choice));
    trace_json_add_real(json, "tflops_per_gpu", choice->flops / choice->step_ns / 1e3);
    trace_json_add_real(json, "mfu", choice->mfu);
    trace_json_add_real(json, "working_share", choice->works);
    trace_json_add_text(json, "bound_by", choice->bound_by);
    trace_json_add_int(json, "peak_reserved_bytes", choice->reserved_bytes);
    trace_json_add_int(json, "allocator_bytes", choice->allocator_bytes);
    trace_json_add_int(json, "alloc_retries", choice->retries);
    add_known(json, "kwh_per_billion_tokens", choice->kwh_per_billion);
    add_known(json, "price_per_billion_tokens", choice->price_per_billion);
    double tokens = cli_choice_tokens(choice, view);
    add_known(json, "tokens", view->span_days > 0 ? tokens : 0);
    add_known(json, "days", cli_choice_days(choice, tokens));
    add_known(json, "price", cli_choice_price(choice, tokens));
    g_auto(CliHowSure) sure = {0};
    cli_how_sure_of(choice->kind, choice->cluster, &sure);
    cli_how_sure_add_json(&sure, json);
}

static void add_one(JsonBuilder *json, const char *key, const CliChoice *choice,
                    const CliChooseView *view) {
    if (choice != NULL) {
        trace_json_begin_object(json, key);
        add_choice(json, choice, view);
        json_builder_end_object(json);
    }
}

static void add_empty_places(JsonBuilder *json, const CliChosen *chosen) {
    trace_json_begin_array(json, "clusters_without_choice");
    for (guint i = 0; i < chosen->machines->len; i++) {
        const CliMachine *machine = &g_array_index(chosen->machines, CliMachine, i);
        if (cli_machine_is_empty(chosen, machine)) {
            json_builder_begin_object(json);
            trace_json_add_text(json, "cluster", machine->cluster->name);
            trace_json_add_bool(json, "fits", machine->n_fit > 0);
            add_known(json, "least_days", machine->days.amount);
            add_known(json, "least_price", machine->price.amount);
            if (machine->has_nearest) {
                trace_json_add_int(json, "nearest_reserved_bytes", machine->nearest_bytes);
            }
            json_builder_end_object(json);
        }
    }
    json_builder_end_array(json);
}

JsonBuilder *cli_chosen_json(const CliChosen *chosen, const CliChooseView *view) {
    JsonBuilder *json = json_builder_new();
    g_autoptr(GArray) shown = cli_chosen_shown(chosen, view->top);
    json_builder_begin_object(json);
    trace_json_add_text(json, "network", view->network);
    trace_json_add_text(json, "ranked_by",
                        chosen->by_price ? "price_per_billion_tokens" : "tokens_per_s_per_gpu");
    trace_json_add_bool(json, "took_bf16", chosen->took_bf16);
    trace_json_add_int(json, "n_predicted", chosen->n_predicted);
    trace_json_add_int(json, "n_not_fitting", chosen->n_not_fitting);
    trace_json_add_int(json, "n_left_out", chosen->n_left_out);
    trace_json_add_int(json, "n_refused", chosen->n_refused);
    if (chosen->n_exact > 0) {
        trace_json_add_int(json, "n_every_rank", chosen->n_exact);
    }
    if (view->spare_percent > 0) {
        trace_json_add_real(json, "spare_percent", view->spare_percent);
    }
    if (view->most_days > 0) {
        trace_json_add_real(json, "most_days", view->most_days);
        trace_json_add_int(json, "n_late", chosen->n_late);
    }
    if (view->most_price > 0) {
        trace_json_add_real(json, "most_price", view->most_price);
        trace_json_add_int(json, "n_dear", chosen->n_dear);
    }
    if (chosen->refusal != NULL) {
        trace_json_add_text(json, "first_refusal", chosen->refusal);
    }
    trace_json_begin_array(json, "choices");
    for (guint i = 0; i < shown->len; i++) {
        guint place = g_array_index(shown, guint, i);
        json_builder_begin_object(json);
        trace_json_add_int(json, "place", i + 1);
        add_choice(json, cli_choice_at(chosen, place), view);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
    add_empty_places(json, chosen);
    add_one(json, "baseline", chosen->baseline, view);
    add_one(json, "quickest", chosen->quickest, view);
    add_one(json, "cheapest", chosen->cheapest, view);
    add_one(json, "nearest", cli_chosen_has_fitting(chosen) ? NULL : chosen->nearest, view);
    if (chosen->ways != NULL) {
        cli_ways_add_json(json, chosen->ways, cli_chosen_has_fitting(chosen));
    }
    json_builder_end_object(json);
    return json;
}
