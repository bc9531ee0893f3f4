/* cli/commands/choose.c - foreshard choose: which settings, on how many GPUs of which machine. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/choose/choose.h"
#include "cli/choose/machines.h"
#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/options/knob.h"
#include "cli/say/output.h"
#include "cli/say/prose.h"
#include "cli/say/rows-csv.h"
#include "cli/source/cluster.h"
#include "plan/plan.h"
#include "plan/text/text.h"
#include "trace/text.h"

static const CliCommand command = {
    .words = "NETWORK",
    .least = 1,
    .most = 1,
    .give = "one NETWORK and --cluster, as in: foreshard choose llama3-70b -n 64 --cluster "
            "dgx-h100",
    .summary =
        "Tries sharding, checkpointing and batch sizes of a network on one or more clusters, by "
        "prediction, and ranks what fits by price per token, or by speed where no price is known, "
        "beside the simplest strategy that fits. Options hold for every try; --knob gives any "
        "strategy key several values. Without -n or --knob ranks it tries one node, then twice as "
        "many, up to the whole cluster. Experts are tried gathered by each GPU and shared by "
        "eight; tensor, context and pipeline parallel take a --knob. What does not fit is not "
        "tried again with a larger batch, less sharding or less recomputation. Where GPUs are not "
        "alike (nodes of several kinds, an oversubscribed spine), every one is played of the "
        "settings that may be best, which takes longer. Without a dtype among the options all is "
        "tried in bf16; other commands then plan PyTorch's default, fp32.",
    .examples =
        "Examples:\n"
        "  foreshard choose llama3-70b -n 64 --cluster dgx-h100 -o best.ini\n"
        "  foreshard choose llama3-8b --cluster a100-p4de --price a100-p4de=3.10 \\\n"
        "      --cluster dgx-h100 --price dgx-h100=4.20 --tokens 2T --days 60\n"
        "  foreshard choose llama3-70b --cluster dgx-h100:64 --knob ranks=64,128,256,512 \\\n"
        "      --global-batch 512 --knob checkpointing=full,selective-op\n"
        "  foreshard choose llama3-405b -n 512 --cluster dgx-h100:64 --seq 8192 \\\n"
        "      --global-batch 512 --knob tensor=1,8 --knob pipeline=1,4,8 \\\n"
        "      --knob pipeline_schedule=1f1b,interleaved-1f1b --knob pipeline_stages=1,2\n"
        "  foreshard choose llama3-70b -n 32 --cluster h200-p5e --spare 5\n\n"
        "Exit status: 0 done, also where nothing fits; 1 FILE cannot be written; 2 the input "
        "cannot be read, or every setting is refused.",
};

typedef struct {
    char **clusters, **prices, **knobs;
    char *output, *tokens_text, *budget_text, *batch_text;
    guint64 global_batch; /* 0: not given, or it is none */
    double tokens, days;  /* days: INFINITY: not given */
    double budget;        /* 0: not given */
    double spare;         /* percent of a GPU's memory */
    int top, cores;
    gboolean json, csv;
} Options;

/* The deadline of so many tokens. 0: none. */
static double most_days(const Options *options) {
    return isfinite(options->days) && options->tokens > 0 ? options->days : 0;
}

/* Of a machine that is there for so long, whatever number of tokens that makes. 0: not asked. */
static double span_days(const Options *options) {
    return isfinite(options->days) && options->tokens <= 0 ? options->days : 0;
}

/* ---- knobs ---- */

static bool check_knob(const CliKnob *knob, guint64 global_batch, GError **error) {
    if (global_batch > 0 && g_str_equal(knob->key, "accumulate")) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--global-batch settles accumulate; leave --knob accumulate away");
        return false;
    }
    return true;
}

static bool check_machine_knob(const CliKnob *knob, GError **error) {
    const char *of_cluster = cli_knob_of_cluster(knob->key);
    if (of_cluster == NULL) {
        return true;
    }
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "--knob %s is of the machine; give one for each value, as in --cluster "
                "NAME:%s=%s",
                knob->key, of_cluster, knob->values[0]);
    return false;
}

static GArray *read_knobs(const Options *options, CliPlanSource *source, GError **error) {
    g_autoptr(GArray) knobs = cli_knobs_new();
    g_autoptr(CliPlanSource) trial = cli_plan_source_copy(source);
    PlanStrategy given;
    if (!cli_plan_source_strategy(source, &given, error)) {
        return NULL;
    }
    for (guint i = 0; options->knobs != NULL && options->knobs[i] != NULL; i++) {
        CliKnob knob;
        if (!cli_knob_read(options->knobs[i], &knob, error)) {
            return NULL;
        }
        bool is_given =
            plan_strategy_is_given(&given, knob.key) || cli_plan_source_is_given(source, knob.key);
        bool good = cli_knobs_add(knobs, knob, error) && check_machine_knob(&knob, error) &&
                    cli_knob_is_free(&knob, is_given, error) &&
                    check_knob(&knob, options->global_batch, error);
        for (guint k = 0; good && knob.values[k] != NULL; k++) {
            good = cli_plan_source_set(trial, knob.key, knob.values[k], error);
        }
        if (!good) {
            return NULL;
        }
    }
    if (options->global_batch > 0 && plan_strategy_is_given(&given, "accumulate")) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--global-batch settles accumulate; leave --accumulate away");
        return NULL;
    }
    if (options->global_batch == 0 && cli_knobs_have_stages(knobs, &given)) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "stages work on a step's batch in microbatches, and are to be held against "
                    "others of the same batch: give --global-batch N, the sequences of a step%s",
                    plan_strategy_is_given(&given, "accumulate") ? ", instead of --accumulate"
                                                                 : "");
        return NULL;
    }
    return g_steal_pointer(&knobs);
}

/* ---- the whole ---- */

/* Where the text goes. */
static FILE *printed_to(const Options *options) {
    return options->csv ? stderr : cli_output_beside(options->output);
}

static void say(const CliChosen *chosen, const CliChooseView *view, const Options *options) {
    if (options->json || options->csv) {
        g_autoptr(JsonBuilder) json = cli_chosen_json(chosen, view);
        if (options->json) {
            cli_output_print_json(json);
        } else {
            cli_rows_print_csv(json, "choices");
        }
    }
    if (!options->json && (!options->csv || chosen->choices->len == 0)) {
        g_autofree char *text = cli_chosen_text(chosen, view);
        cli_prose_print_to(printed_to(options), text);
    }
}

static int show(const CliChosen *chosen, const Options *options, const char *network,
                const CliPlanSource *source) {
    g_autoptr(GError) error = NULL;
    bool write = options->output != NULL && chosen->choices->len > 0;
    if (write) {
        const CliChoice *best = cli_choice_at(chosen, 0);
        g_autofree char *file =
            g_strdup_printf("# %s, on %s\n%s", best->title, best->cluster->name, best->strategy);
        if (!cli_output_write(options->output, file, strlen(file), &error)) {
            return cli_complain(CLI_FAILED, "%s", error->message);
        }
    }
    if (options->output != NULL && !write) {
        cli_complain(CLI_OK, "nothing %s, so %s was not written",
                     chosen->quickest != NULL   ? "finishes in time"
                     : chosen->cheapest != NULL ? "is within the budget"
                                                : "fits",
                     options->output);
    }
    g_autofree char *keys = cli_plan_source_network_keys(source);
    bool is_shown = write && !cli_output_is_standard(options->output);
    CliChooseView view = {.top = options->top == CLI_NOT_GIVEN ? 0 : (guint)options->top,
                          .tokens = options->tokens,
                          .most_days = most_days(options),
                          .span_days = span_days(options),
                          .most_price = options->budget,
                          .spare_percent = options->spare,
                          .network = network,
                          .network_keys = keys,
                          .called = options->clusters,
                          .written = is_shown ? options->output : NULL,
                          .columns = cli_prose_columns(fileno(printed_to(options)))};
    say(chosen, &view, options);
    return CLI_OK;
}

static int choose(const char *network, const Options *options, CliPlanSource *source) {
    g_autoptr(GError) error = NULL;
    if (g_str_equal(network, "-") || plan_is_file(network) || trace_is_file(network)) {
        return cli_complain(CLI_BAD_INPUT,
                            "%s is a plan or a trace, whose settings are settled; give the network "
                            "that it is of",
                            network);
    }
    g_autoptr(GPtrArray) clusters = cli_choose_machines(
        options->clusters, options->prices, options->spare, options->budget > 0, &error);
    g_autoptr(GArray) knobs = clusters != NULL ? read_knobs(options, source, &error) : NULL;
    const char *const inputs[] = {network};
    if (knobs == NULL ||
        !cli_plan_source_spares(source, options->output, inputs, G_N_ELEMENTS(inputs), &error) ||
        !cli_spares_inputs(options->output, (const char *const *)options->clusters,
                           g_strv_length(options->clusters), &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    if (!cli_output_can_be_written(options->output, &error)) {
        return cli_complain(CLI_FAILED, "%s", error->message);
    }
    CliChooseAsked asked = {.source = source,
                            .network = network,
                            .clusters = clusters,
                            .knobs = knobs,
                            .global_batch = options->global_batch,
                            .tokens = options->tokens,
                            .most_days = most_days(options),
                            .most_price = options->budget,
                            .top = options->top == CLI_NOT_GIVEN ? 0 : (guint)options->top,
                            .cores = (guint)options->cores};
    g_autoptr(CliChosen) chosen = cli_choose(&asked, &error);
    return chosen != NULL ? show(chosen, options, network, source)
                          : cli_complain(CLI_BAD_INPUT, "%s", error->message);
}

static const char *wrong_with(const Options *options) {
    return options->clusters == NULL ? CLI_CLUSTER_LACKS
           : options->cores < 0 ? "--cores takes a number from 1, or 0 for as many as there are"
           : options->top < 1 && options->top != CLI_NOT_GIVEN ? "--top takes a number from 1"
           : options->batch_text != NULL && options->global_batch == 0
               ? "--global-batch takes a whole number of sequences, from 1; a batch of N tokens "
                 "has N / seq of them"
           : options->tokens_text != NULL && options->tokens <= 0
               ? "--tokens takes a number up to 1e18, as in 2e12, 2T or 300B"
           : !(options->days > 0) ? "--days takes a number of days, above 0"
           : options->budget_text != NULL && options->budget <= 0
               ? "--budget takes a sum in the currency of --price, as in 250000, 250k or 2M"
           : options->budget > 0 && options->tokens_text == NULL
               ? "--budget asks what a training costs: give --tokens too, as in --tokens 2T"
           : !(options->spare >= 0 && options->spare < 100)
               ? "--spare takes percent of a GPU's memory, from 0 to below 100, as in --spare 10"
           : options->json && options->csv ? CLI_ROWS_CSV_OR_JSON
           : options->json && cli_output_is_standard(options->output)
               ? "-o - and --json both ask for standard output; give -o a file"
           : options->csv && cli_output_is_standard(options->output)
               ? "-o - and --csv both ask for standard output; give -o a file"
               : NULL;
}

static const double MOST_AMOUNT = 1e18; /* a million trillion: more was a slip */

/* "2e12", or "2T": in thousands, millions, billions or trillions. 0: neither, or too many. */
static double read_amount(const char *text) {
    static const struct {
        const char *letters;
        double factor;
    } scales[] = {{"kK", 1e3}, {"mM", 1e6}, {"bBgG", 1e9}, {"tT", 1e12}};
    gsize length = strlen(text);
    g_autofree char *digits = g_strdup(text);
    double factor = 1, number;
    for (guint i = 0; length > 0 && i < G_N_ELEMENTS(scales); i++) {
        if (strchr(scales[i].letters, text[length - 1]) != NULL) {
            factor = scales[i].factor;
            digits[length - 1] = '\0';
        }
    }
    bool good = plan_parse_double(digits, &number) && number > 0 && factor * number <= MOST_AMOUNT;
    return good ? factor * number : 0;
}

int cmd_choose(int argc, char **argv) {
    Options options = {.top = CLI_NOT_GIVEN, .days = INFINITY};
    const GOptionEntry entries[] = {
        {"cluster", 'c', 0, G_OPTION_ARG_STRING_ARRAY, &options.clusters,
         "a machine: " CLI_CLUSTER_NAMED "; may be repeated", "C"},
        {"knob", 'k', 0, G_OPTION_ARG_STRING_ARRAY, &options.knobs,
         "a strategy key (or network.KEY) and values to try; may be repeated (default: sharding, "
         "checkpointing and micro_batch)",
         "KEY=V,V"},
        {"global-batch", 0, 0, G_OPTION_ARG_STRING, &options.batch_text,
         "sequences in a step of all ranks, reached by accumulation", "N"},
        {"tokens", 0, 0, G_OPTION_ARG_STRING, &options.tokens_text,
         "tokens of the whole training, as in 2e12 or 2T; adds days, and makes energy and price "
         "totals",
         "N"},
        {"days", 0, 0, G_OPTION_ARG_DOUBLE, &options.days,
         "leave out what would take more days for --tokens; without --tokens, say how many tokens "
         "that is, and what energy and price",
         "N"},
        {"budget", 0, 0, G_OPTION_ARG_STRING, &options.budget_text,
         "leave out what would cost more for --tokens, in the currency of --price, as in 250k",
         "P"},
        {"price", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.prices,
         "price per GPU-hour, of all clusters or of cluster C, instead of its file's "
         "price_per_hour; may be repeated",
         "[C=]P"},
        {"spare", 0, 0, G_OPTION_ARG_DOUBLE, &options.spare,
         "percent of each GPU's memory to keep free (default 0)", "PERCENT"},
        {"top", 0, 0, G_OPTION_ARG_INT, &options.top,
         "rows to show for each cluster and number of GPUs (default 1, or 5 where there is only "
         "one of each)",
         "N"},
        {"cores", 0, 0, G_OPTION_ARG_INT, &options.cores,
         "predict on so many cores; what is printed stays the same (default all there are, at most "
         "16, and 4 with pipeline stages)",
         "N"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "print one JSON object", NULL},
        {"csv", 0, 0, G_OPTION_ARG_NONE, &options.csv, "print the rows as CSV, for a spreadsheet",
         NULL},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output,
         "write row 1's strategy, for --strategy of other commands; - is standard output",
         "FILE.ini"},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    g_autoptr(GError) error = NULL;
    if (options.clusters == NULL && !cli_plan_source_finds(argv[1], &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    if (options.batch_text != NULL) {
        g_ascii_string_to_unsigned(options.batch_text, 10, 1, G_MAXINT64, &options.global_batch,
                                   NULL);
    }
    options.tokens = options.tokens_text != NULL ? read_amount(options.tokens_text) : 0;
    options.budget = options.budget_text != NULL ? read_amount(options.budget_text) : 0;
    const char *wrong = wrong_with(&options);
    return wrong != NULL ? cli_complain(CLI_BAD_INPUT, "%s", wrong)
                         : choose(argv[1], &options, source);
}
