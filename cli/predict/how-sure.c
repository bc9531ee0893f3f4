#include "cli/predict/how-sure.h"

#include "cli/say/prose.h"
#include "cli/source/data-dir.h"
#include "plan/files/ini.h"
#include "trace/json.h"

enum {
    FEWEST = 5 /* runs: of fewer a tenth says nothing */
};

static double number(const PlanIni *ini, const char *section, const char *key) {
    const PlanIniEntry *entry = plan_ini_find(ini, section, key);
    double value = 0;
    return entry != NULL && plan_parse_double(entry->value, &value) ? value : 0;
}

static CliErrors errors_of(const PlanIni *ini, const char *section) {
    double runs = number(ini, section, "runs");
    return (CliErrors){.runs = runs >= FEWEST ? (unsigned)runs : 0,
                       .median_percent = number(ini, section, "median_percent"),
                       .p90_percent = number(ini, section, "p90_percent")};
}

static void look_up(const PlanIni *ini, CliRunKind kind, const ModelCluster *cluster,
                    CliHowSure *sure) {
    g_autofree char *gpu = cli_run_gpu(cluster);
    g_autofree char *section = g_strdup_printf("%s %s", cli_run_kind_name(kind), gpu);
    sure->kind = cli_run_kind_words(kind);
    sure->memory = errors_of(ini, "memory");
    sure->time = errors_of(ini, section);
    if (sure->time.runs > 0) {
        sure->gpu = g_steal_pointer(&gpu);
    } else if (kind != CLI_RUN_TOO_LARGE) {
        sure->time = errors_of(ini, cli_run_kind_name(kind));
    }
}

void cli_how_sure_of(CliRunKind kind, const ModelCluster *cluster, CliHowSure *ret_sure) {
    *ret_sure = (CliHowSure){0};
    if (cluster->device_kind != MODEL_DEVICE_GPU) {
        return;
    }
    g_autofree char *path = cli_data_find(CLI_DATA_PUBLISHED, "errors", NULL);
    g_autoptr(PlanIni) ini = path != NULL ? plan_ini_read_file(path, NULL) : NULL;
    if (ini != NULL) {
        look_up(ini, kind, cluster, ret_sure);
    }
}

void cli_how_sure(const CliPredictReport *report, CliHowSure *ret_sure) {
    cli_how_sure_of(cli_run_kind(report->plan, report->prediction), report->cluster, ret_sure);
}

void cli_how_sure_clear(CliHowSure *sure) {
    g_clear_pointer(&sure->gpu, g_free);
}

bool cli_how_sure_is_known(const CliHowSure *sure) {
    return sure->time.runs > 0 || sure->memory.runs > 0;
}

static char *words_of(const CliErrors *errors, const char *of) {
    return errors->runs > 0
               ? g_strdup_printf("half within %.1f %%, nine in ten within %.1f %% (%u runs%s)",
                                 errors->median_percent, errors->p90_percent, errors->runs, of)
               : g_strdup("");
}

char *cli_how_sure_time(const CliHowSure *sure) {
    g_autofree char *of = g_strdup_printf("%s%s, %s", sure->gpu ? " on " : "",
                                          sure->gpu ? sure->gpu : "", sure->kind);
    return words_of(&sure->time, of);
}

char *cli_how_sure_memory(const CliHowSure *sure) {
    return words_of(&sure->memory, "");
}

static void print_words(const char *what, const char *words) {
    if (*words != '\0') {
        cli_say("  %-6s  %s\n", what, words);
    }
}

void cli_how_sure_print(const CliHowSure *sure) {
    if (cli_how_sure_is_known(sure)) {
        g_autofree char *time = cli_how_sure_time(sure), *memory = cli_how_sure_memory(sure);
        cli_say(CLI_HOW_SURE_HEADING);
        print_words("time", time);
        print_words("memory", memory);
    }
}

static void add_errors(JsonBuilder *json, const char *key, const CliErrors *errors) {
    if (errors->runs > 0) {
        trace_json_begin_object(json, key);
        trace_json_add_int(json, "runs", errors->runs);
        trace_json_add_real(json, "median_percent", errors->median_percent);
        trace_json_add_real(json, "p90_percent", errors->p90_percent);
        json_builder_end_object(json);
    }
}

void cli_how_sure_add_json(const CliHowSure *sure, JsonBuilder *json) {
    if (!cli_how_sure_is_known(sure)) {
        return;
    }
    trace_json_begin_object(json, "published_errors");
    trace_json_add_text(json, "kind", sure->kind);
    trace_json_add_text(json, "gpu", sure->gpu);
    add_errors(json, "step_time", &sure->time);
    add_errors(json, "peak_memory", &sure->memory);
    json_builder_end_object(json);
}
