/* cli/commands/replay.c - `foreshard replay`: a measured play's memory again, with its own
 * answers. */
#include "sim/replay.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/plan-source.h"
#include "cli/prose.h"
#include "cli/trace-source.h"
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

static bool print_replay(const SimReplay *replay, uint32_t rank) {
    cli_say("rank %u: %" G_GUINT64_FORMAT " answers; allocated, active and reserved are %s %u "
            "instructions%s\n",
            rank, replay->n_answers, replay->equal ? "equal at all" : "not equal within the first",
            replay->n_rows, replay->equal && replay->ran_out ? ", until memory ran out" : "");
    if (!replay->equal) {
        print_row("measured", replay->has_measured ? &replay->measured : NULL);
        print_row("replayed", replay->has_replayed ? &replay->replayed : NULL);
    }
    return replay->equal;
}

static int replay_ranks(const Plan *plan, const Trace *trace, GError **error) {
    bool equal = true;
    for (guint i = 0; i < trace->ranks->len; i++) {
        uint32_t rank = g_array_index(trace->ranks, TraceRank, i).rank;
        SimReplay replay;
        if (!sim_replay(plan, trace, rank, &replay, error)) {
            return CLI_BAD_INPUT;
        }
        equal = print_replay(&replay, rank) && equal;
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
    .summary = "Plays the allocations of a measured trace again, giving the allocator the answers "
               "that it\nwas given then, and says whether all memory is equal at every "
               "instruction of every rank.\nA run that ran out of memory (its trace ends in "
               ".oom.RANK) is played up to there.",
    .examples = "Example:\n  foreshard plan gpt-toy -n 2 -o gpt-toy.plan\n"
                "  foreshard run gpt-toy.plan --trace measured.trace\n"
                "  foreshard replay gpt-toy.plan measured.trace\n\n"
                "Exit status: 0 equal; 1 not; 2 the trace is of another plan or cannot be read.",
};

int cmd_replay(int argc, char **argv) {
    const GOptionEntry entries[] = {G_OPTION_ENTRY_NULL};
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    if (!cli_command_read(&command, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = cli_plan_source_load(source, argv[1], &error);
    g_autoptr(Trace) trace = plan ? read_measured(argv[2], &error) : NULL;
    int status = trace ? replay_ranks(plan, trace, &error) : CLI_BAD_INPUT;
    return error ? cli_complain(status, "%s", error->message) : status;
}
