/* cli/commands/replay.c - `foreshard replay`: a measured play's memory again, with its own
 * answers. */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/options.h"
#include "cli/plan-source.h"
#include "sim/replay.h"
#include "trace/text.h"

static void print_row(const char *name, const TraceMemoryRow *row) {
    printf("  %-9s step %d, instruction %u: allocated %" G_GUINT64_FORMAT
           ", active %" G_GUINT64_FORMAT ", reserved %" G_GUINT64_FORMAT " bytes\n",
           name, row->step, row->instruction, row->allocated, row->active, row->reserved);
}

static bool print_replay(const SimReplay *replay, uint32_t rank) {
    printf("rank %u: %" G_GUINT64_FORMAT " answers; allocated, active and reserved are %s %u "
           "instructions\n",
           rank, replay->n_answers, replay->equal ? "equal at all" : "not equal within the first",
           replay->n_rows);
    if (!replay->equal) {
        print_row("measured", &replay->measured);
        print_row("replayed", &replay->replayed);
    }
    return replay->equal;
}

/* 0: all equal. */
static int replay_ranks(const Plan *plan, const Trace *trace, GError **error) {
    bool equal = true;
    for (guint i = 0; i < trace->ranks->len; i++) {
        uint32_t rank = g_array_index(trace->ranks, TraceRank, i).rank;
        SimReplay replay;
        if (!sim_replay(plan, trace, rank, &replay, error)) {
            return 2;
        }
        equal = print_replay(&replay, rank) && equal;
    }
    return equal ? 0 : 1;
}

int cmd_replay(int argc, char **argv) {
    g_autoptr(GOptionContext) context = g_option_context_new("PLAN MEASURED");
    g_option_context_set_summary(
        context,
        "Plays the allocations of a measured trace again, giving the allocator the answers "
        "that it\nwas given then, and says whether all memory is equal at every "
        "instruction of every rank.");
    g_option_context_set_description(context,
                                     "Example:\n  foreshard plan gpt-toy -n 2 -o gpt-toy.plan\n"
                                     "  foreshard run gpt-toy.plan --trace measured.trace\n"
                                     "  foreshard replay gpt-toy.plan measured.trace\n"
                                     "\nExit status: 0 equal; 1 not; 2 the trace is of another "
                                     "plan or cannot be read.");
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = NULL;
    g_autoptr(Trace) trace = NULL;
    int status = 2;
    if (cli_options_parse(context, &argc, &argv, &error)) {
        if (argc != 3) {
            fprintf(stderr, "foreshard replay: give a plan (or network) and a measured trace\n");
            return 2;
        }
        if ((plan = cli_plan_source_load(source, argv[1], &error)) &&
            (trace = trace_read_file(argv[2], &error))) {
            status = replay_ranks(plan, trace, &error);
        }
    }
    if (error) {
        fprintf(stderr, "foreshard replay: %s\n", error->message);
    }
    return status;
}
