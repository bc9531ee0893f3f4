/* cli/commands/units.c - what is gathered, used and dropped together: a table, or the module tree.
 */
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/say/output.h"
#include "cli/say/prose.h"
#include "cli/say/rows-csv.h"
#include "cli/source/plan-source.h"
#include "trace/json.h"

#define U64 G_GUINT64_FORMAT

/* ---- the table ------------------------------------------------------------------------------ */

typedef struct {
    uint64_t elements, padding, shard_elements, shard_bytes;
} Size;

/* Shards are of one dtype. What is whole on each rank is not, where a part of it is in 4 bits. */
static uint64_t shard_bytes_of(const Plan *plan, uint32_t unit) {
    const PlanUnit *u = &plan->units[unit];
    uint64_t kept = 0, element = 0;
    bool is_mixed = false;
    for (uint32_t i = 0; i < plan->n_parameters; i++) {
        const PlanParameter *p = &plan->parameters[i];
        if (p->unit == unit) {
            uint64_t size = plan_dtype_bytes((PlanDtype)p->dtype);
            element = element ? element : size;
            kept += p->four_bits ? p->elements / 2 : p->elements * size;
            is_mixed |= p->four_bits && u->shard_elements == u->elements;
        }
    }
    return is_mixed ? kept : u->shard_elements * element;
}

static Size size_of(const Plan *plan, uint32_t u) {
    const PlanUnit *unit = &plan->units[u];
    uint64_t ranks = plan->axes[PLAN_AXIS_SHARD];
    return (Size){.elements = unit->elements,
                  .padding = unit->shard_elements * ranks - unit->elements,
                  .shard_elements = unit->shard_elements,
                  .shard_bytes = shard_bytes_of(plan, u)};
}

static void print_row(const char *name, const Size *size) {
    cli_say("%-32s %16" U64 " %10" U64 " %14" U64 " %16" U64 "\n", name, size->elements,
            size->padding, size->shard_elements, size->shard_bytes);
}

static void print_table(const Plan *plan) {
    uint64_t ranks = plan->axes[PLAN_AXIS_SHARD];
    Size all = {0};
    cli_say("%s\n%-32s %16s %10s %14s %16s\n", plan->title, "unit", "elements", "padding",
            "per rank", "bytes per rank");
    for (uint32_t u = 0; u < plan->n_units; u++) {
        Size size = size_of(plan, u);
        print_row(plan->units[u].name, &size);
        all.elements += size.elements;
        all.padding += size.padding;
        all.shard_elements += size.shard_elements;
        all.shard_bytes += size.shard_bytes;
    }
    print_row("all", &all);
    cli_say("%u unit%s, sharded over %" U64 " rank%s; bytes are of the shards that the optimizer "
            "owns\n",
            plan->n_units, plan->n_units == 1 ? "" : "s", ranks, ranks == 1 ? "" : "s");
    if (plan->axes[PLAN_AXIS_TENSOR] > 1) {
        cli_say("elements are of one rank's part of each layer, which %u ranks share (tensor "
                "parallel)\n",
                plan->axes[PLAN_AXIS_TENSOR]);
    }
}

/* ---- the tree ------------------------------------------------------------------------------- */

static unsigned depth_of(const Plan *plan, uint32_t module) {
    unsigned depth = 0;
    for (; plan->modules[module].parent != PLAN_NONE; module = plan->modules[module].parent) {
        depth++;
    }
    return depth;
}

/* "layers.0.attn.qkv.weight" is the weight of "layers.0.attn.qkv". */
static bool belongs_to(const PlanParameter *parameter, const PlanModule *module) {
    const char *dot = strrchr(parameter->name, '.');
    gsize n = dot ? (gsize)(dot - parameter->name) : 0;
    return strlen(module->name) == n && !strncmp(module->name, parameter->name, n);
}

static const char *local_name(const Plan *plan, uint32_t module) {
    const PlanModule *m = &plan->modules[module];
    gsize n = m->parent == PLAN_NONE ? 0 : strlen(plan->modules[m->parent].name);
    return *m->name ? m->name + n + (n > 0) : "(root)";
}

static void print_parameter(const Plan *plan, const PlanParameter *p, unsigned depth) {
    g_autoptr(GString) shape = g_string_new("[");
    for (unsigned i = 0; i < p->n_dims; i++) {
        g_string_append_printf(shape, "%s%" G_GINT64_FORMAT, i ? ", " : "", p->dims[i]);
    }
    const char *dot = strrchr(p->name, '.');
    g_autofree char *name = g_strdup_printf("%*s%s", (int)(2 * depth), "", dot ? dot + 1 : p->name);
    cli_say("%-32s %s] %s, %" U64 " elements, unit %s%s\n", name, shape->str,
            plan_dtype_name((PlanDtype)p->dtype), p->elements, plan->units[p->unit].name,
            p->four_bits ? ", in 4 bits, frozen"
            : p->frozen  ? ", frozen"
                         : "");
}

static bool opens_a_unit(const Plan *plan, const PlanModule *module) {
    for (uint32_t u = 0; u < plan->n_units; u++) {
        if (g_str_equal(plan->units[u].name, *module->name ? module->name : "root")) {
            return true;
        }
    }
    return false;
}

static void print_tree(const Plan *plan) {
    cli_say("%s\n", plan->title);
    for (uint32_t m = 0; m < plan->n_modules; m++) {
        const PlanModule *module = &plan->modules[m];
        unsigned depth = depth_of(plan, m);
        g_autofree char *name = g_strdup_printf("%*s%s", (int)(2 * depth), "", local_name(plan, m));
        cli_say("%-32s %s%s\n", name, module->class_name,
                opens_a_unit(plan, module) ? ", a unit begins" : "");
        for (uint32_t p = 0; p < plan->n_parameters; p++) {
            if (belongs_to(&plan->parameters[p], module)) {
                print_parameter(plan, &plan->parameters[p], depth + 1);
            }
        }
    }
}

/* ---- for programs --------------------------------------------------------------------------- */

static void add_units(JsonBuilder *json, const Plan *plan) {
    trace_json_begin_array(json, "units");
    for (uint32_t u = 0; u < plan->n_units; u++) {
        Size size = size_of(plan, u);
        json_builder_begin_object(json);
        trace_json_add_text(json, "name", plan->units[u].name);
        trace_json_add_int(json, "elements", size.elements);
        trace_json_add_int(json, "padding", size.padding);
        trace_json_add_int(json, "shard_elements", size.shard_elements);
        trace_json_add_int(json, "shard_bytes", size.shard_bytes);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static void add_parameter(JsonBuilder *json, const Plan *plan, const PlanParameter *p) {
    json_builder_begin_object(json);
    trace_json_add_text(json, "name", p->name);
    trace_json_begin_array(json, "shape");
    for (unsigned i = 0; i < p->n_dims; i++) {
        json_builder_add_int_value(json, p->dims[i]);
    }
    json_builder_end_array(json);
    trace_json_add_text(json, "dtype", plan_dtype_name((PlanDtype)p->dtype));
    trace_json_add_int(json, "elements", p->elements);
    trace_json_add_text(json, "unit", plan->units[p->unit].name);
    trace_json_add_bool(json, "frozen", p->frozen);
    trace_json_add_bool(json, "four_bits", p->four_bits);
    json_builder_end_object(json);
}

static void add_modules(JsonBuilder *json, const Plan *plan) {
    trace_json_begin_array(json, "modules");
    for (uint32_t m = 0; m < plan->n_modules; m++) {
        const PlanModule *module = &plan->modules[m];
        json_builder_begin_object(json);
        trace_json_add_text(json, "name", module->name);
        trace_json_add_text(json, "class", module->class_name);
        trace_json_add_bool(json, "unit_begins", opens_a_unit(plan, module));
        trace_json_begin_array(json, "parameters");
        for (uint32_t p = 0; p < plan->n_parameters; p++) {
            if (belongs_to(&plan->parameters[p], module)) {
                add_parameter(json, plan, &plan->parameters[p]);
            }
        }
        json_builder_end_array(json);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static JsonBuilder *json_of(const Plan *plan, bool with_tree) {
    JsonBuilder *json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_add_text(json, "plan_digest", plan_digest(plan));
    trace_json_add_text(json, "title", plan->title);
    trace_json_add_int(json, "ranks_sharing", plan->axes[PLAN_AXIS_SHARD]);
    trace_json_add_int(json, "ranks_of_a_layer", plan->axes[PLAN_AXIS_TENSOR]);
    add_units(json, plan);
    if (with_tree) {
        add_modules(json, plan);
    }
    json_builder_end_object(json);
    return json;
}

static const CliCommand command = {
    .words = "(PLAN | NETWORK)",
    .least = 1,
    .most = 1,
    .give = "one PLAN or NETWORK",
    .summary = "Says which parameters are gathered, used and dropped together.",
    .examples = "Examples:\n  foreshard units gpt2 -n 8\n"
                "  foreshard units llama2-7b -n 64 --wrap every=4 --flavour fsdp1\n"
                "  foreshard units gpt2 -n 8 --wrap 'module=GptBlock|Linear'\n"
                "  foreshard units t5-toy -n 2 --tree\n\n"
                "Exit status: 0 shown; 2 the input cannot be read, or a setting is refused.",
};

int cmd_units(int argc, char **argv) {
    gboolean tree = FALSE, json = FALSE, csv = FALSE;
    const GOptionEntry entries[] = {
        {"tree", 0, 0, G_OPTION_ARG_NONE, &tree,
         "walk the modules: parameters, shapes, and whose they are", NULL},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "print one JSON object", NULL},
        {"csv", 0, 0, G_OPTION_ARG_NONE, &csv, "print the units as CSV, a line each", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    if (csv && (json || tree)) {
        return cli_complain(CLI_BAD_INPUT,
                            "--csv is a form of its own, of units alone; leave %s away",
                            json ? "--json" : "--tree");
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = cli_plan_source_load(source, argv[1], PLAN_FORM_WHOLE, &error);
    if (!plan) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    if (json || csv) {
        g_autoptr(JsonBuilder) built = json_of(plan, tree);
        if (json) {
            cli_output_print_json(built);
        } else {
            cli_rows_print_csv(built, "units");
        }
    } else if (tree) {
        print_tree(plan);
    } else {
        print_table(plan);
    }
    return CLI_OK;
}
