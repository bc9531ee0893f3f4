/* cli/commands/plan.c - builds, shows and checks plans. */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/plan/memory.h"
#include "cli/plan/trained.h"
#include "cli/say/output.h"
#include "cli/say/prose.h"
#include "cli/source/plan-source.h"
#include "plan/files/nearest.h"
#include "plan/op/work.h"
#include "plan/player.h"
#include "plan/text/text.h"
#include "trace/json.h"
#include "trace/scale.h"

typedef struct {
    char *output;
    char *unit, *phase, *lane; /* what --print shows; NULL: all */
    gboolean print, check, json, memory;
} Options;

typedef struct {
    uint64_t count, bytes;
} Collective;

typedef struct {
    double build_ms;
    uint64_t instructions;
    PlanNullCounts memory;                   /* rank 0, exact bytes */
    Collective collectives[PLAN_N_OP_KINDS]; /* of one steady step */
} Facts;

static bool gather_facts(const Plan *plan, Facts *facts, GError **error) {
    const PlanRole *role = &plan->roles[0];
    for (unsigned s = 0; s < PLAN_N_SECTIONS; s++) {
        facts->instructions += role->n_instrs[s];
    }
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        const PlanOp *op = &role->ops[instr->arg];
        if (instr->kind == PLAN_LAUNCH && plan_op_is_collective((PlanOpKind)op->kind)) {
            facts->collectives[op->kind].count++;
            facts->collectives[op->kind].bytes += (uint64_t)plan_op_work(role, op).bytes;
        }
    }
    g_autoptr(PlanPlayer) player = plan_player_new(plan, 0, 3, &plan_null_device, &facts->memory);
    return plan_player_run(player, error) == PLAN_DONE;
}

static void print_size(const char *name, uint64_t bytes) {
    g_autofree char *text = trace_bytes_text((double)bytes);
    cli_say("  %-26s %14s\n", name, text);
}

static void print_summary(const Plan *plan, const Facts *facts) {
    cli_say("%s\n", plan->title);
    cli_say("digest        %s\n", plan_digest(plan));
    cli_say("parameters    %" G_GUINT64_FORMAT " in %u tensors, %u unit%s\n", cli_trained(plan).all,
            plan->n_parameters, plan->n_units, plan->n_units == 1 ? "" : "s");
    g_autofree char *trained = cli_trained_text(plan);
    if (trained) {
        cli_say("%s\n", trained);
    }
    uint32_t tensor = plan->axes[PLAN_AXIS_TENSOR], context = plan->axes[PLAN_AXIS_CONTEXT];
    g_autofree char *shared = tensor > 1    ? g_strdup_printf(" x tensor %u", tensor)
                              : context > 1 ? g_strdup_printf(", %u of them to a sequence", context)
                                            : g_strdup("");
    g_autofree char *stages =
        plan->axes[PLAN_AXIS_PIPELINE] > 1
            ? g_strdup_printf("pipeline %u x ", plan->axes[PLAN_AXIS_PIPELINE])
            : g_strdup("");
    cli_say("ranks         %u (%sreplicate %u x shard %u%s), %u role%s\n", plan->world, stages,
            plan->axes[PLAN_AXIS_REPLICATE], plan->axes[PLAN_AXIS_SHARD], shared, plan->n_roles,
            plan->n_roles == 1 ? "" : "s");
    cli_say("instructions  %" G_GUINT64_FORMAT " (rank 0), built in %.2f ms\n", facts->instructions,
            facts->build_ms);
    g_autofree char *peak = trace_bytes_text((double)facts->memory.peak_bytes);
    g_autofree char *floor = trace_bytes_text((double)facts->memory.floor_bytes);
    cli_say("peak          %s requested by rank 0, in section %s\n", peak,
            plan_section_name(facts->memory.peak_section));
    for (unsigned i = 0; i < PLAN_N_SUBCATEGORIES; i++) {
        if (facts->memory.at_peak[i]) {
            print_size(plan_subcategory_name((PlanSubcategory)i), facts->memory.at_peak[i]);
        }
    }
    cli_say("between steps %s\n", floor);
    cli_say("collectives in a step\n");
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        if (facts->collectives[kind].count) {
            g_autofree char *bytes = trace_bytes_text((double)facts->collectives[kind].bytes);
            cli_say("  %-26s %5" G_GUINT64_FORMAT " times %12s together (whole tensors)\n",
                    plan_op_info((PlanOpKind)kind)->name, facts->collectives[kind].count, bytes);
        }
    }
}

static void print_json(const Plan *plan, const Facts *facts) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_add_text(json, "digest", plan_digest(plan));
    trace_json_add_text(json, "network", plan->title);
    trace_json_add_int(json, "parameters", cli_trained(plan).all);
    trace_json_add_int(json, "trained_parameters", cli_trained(plan).trained);
    trace_json_add_int(json, "world", plan->world);
    trace_json_add_int(json, "units", plan->n_units);
    trace_json_add_int(json, "instructions", facts->instructions);
    trace_json_add_real(json, "build_ms", facts->build_ms);
    trace_json_add_int(json, "peak_bytes", facts->memory.peak_bytes);
    trace_json_add_int(json, "floor_bytes", facts->memory.floor_bytes);
    trace_json_begin_object(json, "peak_by_category");
    for (unsigned i = 0; i < PLAN_N_SUBCATEGORIES; i++) {
        trace_json_add_int(json, plan_subcategory_name((PlanSubcategory)i),
                           facts->memory.at_peak[i]);
    }
    json_builder_end_object(json);
    trace_json_begin_object(json, "collectives");
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        if (facts->collectives[kind].count) {
            trace_json_begin_object(json, plan_op_info((PlanOpKind)kind)->name);
            trace_json_add_int(json, "count", facts->collectives[kind].count);
            trace_json_add_int(json, "bytes", facts->collectives[kind].bytes);
            json_builder_end_object(json);
        }
    }
    json_builder_end_object(json);
    json_builder_end_object(json);
    cli_output_print_json(json);
}

/* ---- a part of the text --------------------------------------------------------------------- */

static bool is_shown(const Plan *plan, const PlanInstr *instr, const Options *o) {
    const char *unit = instr->unit == PLAN_NONE ? "-" : plan->units[instr->unit].name;
    bool has_lane = instr->kind != PLAN_ALLOC && instr->kind != PLAN_FREE;
    return (!o->unit || g_str_equal(unit, o->unit)) &&
           (!o->phase || g_str_equal(plan_phase_name((PlanPhase)instr->phase), o->phase)) &&
           (!o->lane || (has_lane && g_str_equal(plan->lanes[instr->lane], o->lane)));
}

/* wanted: NULL, or one of the names. */
static bool is_known(const char *what, const char *wanted, GPtrArray *names, GError **error) {
    g_ptr_array_add(names, NULL);
    const char *const *list = (const char *const *)names->pdata;
    if (!wanted || g_strv_contains(list, wanted)) {
        return true;
    }
    g_autofree char *near = plan_did_you_mean(wanted, list);
    g_autofree char *all = g_strjoinv(", ", (char **)names->pdata);
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "no %s '%s'%s%s", what, wanted,
                *near ? near : "; there are ", *near ? "" : all);
    return false;
}

static bool names_are_known(const Plan *plan, const Options *o, GError **error) {
    g_autoptr(GPtrArray) units = g_ptr_array_new(), phases = g_ptr_array_new(),
                         lanes = g_ptr_array_new();
    g_ptr_array_add(units, (gpointer) "-"); /* what belongs to none */
    for (uint32_t i = 0; i < plan->n_units; i++) {
        g_ptr_array_add(units, (gpointer)plan->units[i].name);
    }
    for (unsigned i = 0; i < PLAN_N_PHASES; i++) {
        g_ptr_array_add(phases, (gpointer)plan_phase_name((PlanPhase)i));
    }
    for (uint32_t i = 0; i < plan->n_lanes; i++) {
        g_ptr_array_add(lanes, (gpointer)plan->lanes[i]);
    }
    return is_known("unit", o->unit, units, error) && is_known("phase", o->phase, phases, error) &&
           is_known("lane", o->lane, lanes, error);
}

static void print_part(const Plan *plan, const Options *o) {
    const PlanRole *role = &plan->roles[0];
    g_autoptr(GString) text = g_string_new(NULL);
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        if (plan_section_repeats(role, s)) {
            g_string_append_printf(text, "section %s = %s\n", plan_section_name(s),
                                   plan_section_name(s - 1));
            continue;
        }
        g_string_append_printf(text, "section %s\n", plan_section_name(s));
        for (uint32_t i = 0; i < role->n_instrs[s]; i++) {
            const PlanInstr *instr = &role->sections[s][i];
            if (is_shown(plan, instr, o)) {
                g_string_append_printf(
                    text, "%6u %-9s %-12s ", i, plan_phase_name((PlanPhase)instr->phase),
                    instr->unit == PLAN_NONE ? "-" : plan->units[instr->unit].name);
                plan_text_append_instr(plan, role, instr, text);
                g_string_append_c(text, '\n');
            }
        }
    }
    fwrite(text->str, 1, text->len, stdout);
}

static void print_text(const Plan *plan) {
    g_autoptr(GString) text = plan_text(plan);
    fwrite(text->str, 1, text->len, stdout);
}

static int show(const Plan *plan, const Options *options, Facts *facts) {
    g_autoptr(GError) error = NULL;
    if (options->memory) {
        cli_print_memory(plan);
        return CLI_OK;
    }
    if (options->unit || options->phase || options->lane) {
        if (!names_are_known(plan, options, &error)) {
            return cli_complain(CLI_BAD_INPUT, "%s", error->message);
        }
        print_part(plan, options);
        return CLI_OK;
    }
    if (options->print) {
        print_text(plan);
        return CLI_OK;
    }
    if (options->check) {
        cli_say("%s: sound\n", plan->title);
        return CLI_OK;
    }
    if (!gather_facts(plan, facts, &error)) {
        return cli_complain(CLI_FAILED, "%s", error->message);
    }
    if (options->json) {
        print_json(plan, facts);
    } else {
        print_summary(plan, facts);
    }
    return CLI_OK;
}

/* Each prints something else; NULL: one at most is asked for. */
static char *wrong_with(const Options *options) {
    const struct {
        bool asked;
        const char *name;
    } prints[] = {
        {cli_output_is_standard(options->output), "-o -"},
        {options->print, "--print"},
        {options->unit || options->phase || options->lane, "--unit, --phase or --lane"},
        {options->memory, "--memory"},
        {options->check, "--check"},
        {options->json, "--json"},
    };
    const char *first = NULL;
    for (unsigned i = 0; i < G_N_ELEMENTS(prints); i++) {
        if (prints[i].asked && first) {
            return g_strdup_printf("%s and %s print different things; leave one away", first,
                                   prints[i].name);
        }
        first = prints[i].asked ? prints[i].name : first;
    }
    return NULL;
}

static const CliCommand command = {
    .words = "(PLAN | NETWORK)",
    .least = 1,
    .most = 1,
    .give = "one PLAN or NETWORK",
    .summary =
        "Builds a plan from a network and a strategy (or reads one), and says what is in it.",
    .examples =
        "Examples:\n"
        "  foreshard plan gpt-toy -n 2 -o gpt-toy.plan\n"
        "  foreshard plan gpt-toy -n 8 --wrap whole\n"
        "  foreshard plan gpt2 -n 8 --memory\n"
        "  foreshard plan gpt-toy.plan --unit layers.0 --lane gather\n"
        "  foreshard plan gpt-toy.plan --print | less\n\n"
        "Exit status: 0 the plan is sound; 1 it cannot be written; 2 the input cannot be read, or "
        "a setting is refused.",
};

int cmd_plan(int argc, char **argv) {
    Options options = {0};
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output,
         "write the plan here; - is standard output, which then gets no summary", "FILE"},
        {"print", 0, 0, G_OPTION_ARG_NONE, &options.print, "print the plan's text", NULL},
        {"unit", 0, 0, G_OPTION_ARG_STRING, &options.unit,
         "print rank 0's instructions of this unit alone", "NAME"},
        {"phase", 0, 0, G_OPTION_ARG_STRING, &options.phase,
         "print those of this phase (setup, forward, recompute, backward, optimizer)", "NAME"},
        {"lane", 0, 0, G_OPTION_ARG_STRING, &options.lane, "print those of this lane", "NAME"},
        {"memory", 0, 0, G_OPTION_ARG_NONE, &options.memory,
         "print the bytes at the peak by category, with the arithmetic", NULL},
        {"check", 0, 0, G_OPTION_ARG_NONE, &options.check,
         "only say whether it is sound (building and reading always check)", NULL},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "print the summary as JSON", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    g_autofree char *wrong = wrong_with(&options);
    if (wrong) {
        return cli_complain(CLI_BAD_INPUT, "%s", wrong);
    }
    g_autoptr(GError) error = NULL;
    Facts facts = {0};
    gint64 start = g_get_monotonic_time();
    const char *input = argv[1];
    g_autoptr(Plan) plan = cli_plan_source_spares(source, options.output, &input, 1, &error)
                               ? cli_plan_source_load_to_hand_on(source, input, &error)
                               : NULL;
    if (!plan) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    facts.build_ms = (double)(g_get_monotonic_time() - start) / 1e3;
    if (cli_output_is_standard(options.output)) {
        print_text(plan);
        return CLI_OK;
    }
    if (options.output && !plan_write_file(plan, options.output, &error)) {
        return cli_complain(CLI_FAILED, "%s", error->message);
    }
    return show(plan, &options, &facts);
}
