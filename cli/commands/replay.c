/* cli/commands/replay.c - `foreshard replay`: a measured play's memory again, with its own
 * answers. */
#include "sim/replay.h"
#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/say/output.h"
#include "cli/say/prose.h"
#include "cli/source/plan-source.h"
#include "cli/source/trace-file.h"
#include "trace/json.h"
#include "trace/text.h"

/* NULL: that side has no more rows. */
static void print_row(const char *name, const TraceMemoryRow *row) {
    if (!row) {
        cli_say("  %-9s has ended\n", name);
        return;
    }
    g_autofree char *step = trace_step_name(row->step);
    cli_say("  %-9s %s, instruction %u: allocated %" G_GUINT64_FORMAT ", active %" G_GUINT64_FORMAT
            ", reserved %" G_GUINT64_FORMAT " bytes\n",
            name, step, row->instruction, row->allocated, row->active, row->reserved);
}

static void print_replay(const SimReplay *replay, uint32_t rank) {
    cli_say("rank %u: %" G_GUINT64_FORMAT " answers; allocated, active and reserved are %s %u "
            "instructions%s\n",
            rank, replay->n_answers, replay->equal ? "equal at all" : "not equal within the first",
            replay->n_rows, replay->equal && replay->ran_out ? ", until memory ran out" : "");
    if (!replay->equal) {
        print_row("measured", replay->has_measured ? &replay->measured : NULL);
        print_row("replayed", replay->has_replayed ? &replay->replayed : NULL);
    }
}

/* NULL: that side has no more rows. */
static void add_row(JsonBuilder *json, const char *name, const TraceMemoryRow *row) {
    if (!row) {
        trace_json_add_text(json, name, NULL);
        return;
    }
    g_autofree char *step = trace_step_name(row->step);
    trace_json_begin_object(json, name);
    trace_json_add_text(json, "step", step);
    trace_json_add_int(json, "instruction", row->instruction);
    trace_json_add_int(json, "allocated_bytes", row->allocated);
    trace_json_add_int(json, "active_bytes", row->active);
    trace_json_add_int(json, "reserved_bytes", row->reserved);
    json_builder_end_object(json);
}

static void add_replay(JsonBuilder *json, const SimReplay *replay, uint32_t rank) {
    json_builder_begin_object(json);
    trace_json_add_int(json, "rank", rank);
    trace_json_add_bool(json, "equal", replay->equal);
    trace_json_add_int(json, "answers", replay->n_answers);
    trace_json_add_int(json, "instructions", replay->n_rows);
    trace_json_add_bool(json, "out_of_memory", replay->ran_out);
    if (!replay->equal) {
        add_row(json, "measured", replay->has_measured ? &replay->measured : NULL);
        add_row(json, "replayed", replay->has_replayed ? &replay->replayed : NULL);
    }
    json_builder_end_object(json);
}

static void print_json(const Plan *plan, const Trace *trace, const SimReplay *replays, bool equal) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_add_text(json, "plan_digest", plan_digest(plan));
    trace_json_add_bool(json, "equal", equal);
    trace_json_begin_array(json, "ranks");
    for (guint i = 0; i < trace->ranks->len; i++) {
        add_replay(json, &replays[i], g_array_index(trace->ranks, TraceRank, i).rank);
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
    cli_output_print_json(json);
}

static int replay_ranks(const Plan *plan, const Trace *trace, bool as_json, GError **error) {
    g_autofree SimReplay *replays = g_new0(SimReplay, trace->ranks->len + 1);
    bool equal = true;
    for (guint i = 0; i < trace->ranks->len; i++) {
        uint32_t rank = g_array_index(trace->ranks, TraceRank, i).rank;
        if (!sim_replay(plan, trace, rank, &replays[i], error)) {
            return CLI_BAD_INPUT;
        }
        equal &= replays[i].equal;
        if (!as_json) {
            print_replay(&replays[i], rank);
        }
    }
    if (as_json) {
        print_json(plan, trace, replays, equal);
    }
    return equal ? CLI_OK : CLI_FAILED;
}

/* A prediction keeps no answers. */
static Trace *read_measured(const char *path, GError **error) {
    g_autoptr(Trace) trace = cli_trace_read(path, error);
    if (trace && g_strcmp0(trace_get(trace, "side"), "measured") != 0) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s is a predicted trace; give a measured one, as foreshard run --trace writes "
                    "it",
                    path);
        return NULL;
    }
    return g_steal_pointer(&trace);
}

static const CliCommand command = {
    .words = "PLAN MEASURED",
    .least = 2,
    .most = 2,
    .give = "a plan (or network) and a measured trace",
    .summary =
        "Plays the allocations of a measured trace again, giving the allocator the answers that "
        "it was given then, and says whether all memory is equal at every instruction of every "
        "rank. A run that ran out of memory (its trace ends in .oom.RANK) is played up to there.",
    .examples = "Examples:\n  foreshard plan gpt-toy -n 2 -o gpt-toy.plan\n"
                "  foreshard run gpt-toy.plan --trace measured.trace\n"
                "  foreshard replay gpt-toy.plan measured.trace\n\n"
                "Exit status: 0 equal; 1 not; 2 the trace is of another plan or cannot be read.",
};

int cmd_replay(int argc, char **argv) {
    gboolean json = FALSE;
    const GOptionEntry entries[] = {
        {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "print one JSON object", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = cli_plan_source_load(source, argv[1], PLAN_FORM_WHOLE, &error);
    g_autoptr(Trace) trace = plan ? read_measured(argv[2], &error) : NULL;
    int status = trace ? replay_ranks(plan, trace, json, &error) : CLI_BAD_INPUT;
    return error ? cli_complain(status, "%s", error->message) : status;
}
