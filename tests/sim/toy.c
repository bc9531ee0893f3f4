#include "tests/sim/toy.h"

#include <stdlib.h>
#include <string.h>

#include "models/network.h"
#include "plan/text/text.h"

const ModelCluster toy_cluster = {
    .host_queue_depth = 1000,
    .host_cpu_factor = 1,
    .name = (char *)"toy",
    .title = (char *)"toy",
    .model = (char *)"toy",
    .device_memory_bytes = (uint64_t)1 << 30,
    .device_matmul_fp32_tflops = 0.001, /* one operation a nanosecond */
    .device_matmul_efficiency = 1,
    .device_attention_efficiency = 1,
    .device_attention_backward_efficiency = 1,
    .device_memory_gb_per_s = 1,
    .device_memory_efficiency = 1,
    .device_reduction_efficiency = 1,
    .matmul_sustained = 1,
    .topology_nodes = 1,
    .topology_gpus_per_node = 8,
    .intra_node_bus_gb_per_s = 1,
    .intra_node_reduce_bus_gb_per_s = 1,
};

static unsigned count_lines(const char *text, const char *beside) {
    unsigned n = 0;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        n += **line && !strchr(beside, **line);
    }
    return n;
}

/* construct allocates what lives from then on, and writes it on its own lane. */
static void append_construct(GString *text, const char *buffers) {
    g_autoptr(GString) instructions = g_string_new(NULL);
    g_auto(GStrv) rows = g_strsplit(buffers, "\n", -1);
    for (unsigned i = 0; rows[i]; i++) {
        g_auto(GStrv) words = g_strsplit(rows[i], " ", -1); /* b0 400 fp32 temporary/op LANE ... */
        if (strstr(rows[i], " cfst ")) {
            PlanDtype dtype;
            g_assert_true(plan_dtype_parse(words[2], &dtype));
            uint64_t elements = plan_dtype_count(dtype, strtoull(words[1], NULL, 10));
            g_string_append_printf(instructions,
                                   "alloc %s\nlaunch %s fill_empty n=%" G_GUINT64_FORMAT " y=%s\n",
                                   words[0], words[4], elements, words[0]);
        }
    }
    g_string_append_printf(text, "section construct %u\n@setup u0 m0\n%s",
                           count_lines(instructions->str, ""), instructions->str);
}

Plan *toy_plan(const char *body, const char *buffers) {
    g_autoptr(GString) text =
        g_string_new("foreshard-plan 1\ntitle toy\ntokens_per_rank 10\nnetwork\nstrategy\n"
                     "mesh replicate=1 shard=8 part=1\nlanes compute gather reduce\n"
                     "modules 1\nm0 - Toy -\nunits 2\nu0 0 0 root\nu1 800 100 one\nparameters 0\n"
                     "roles 1\nrole 0 ranks 0-7\nowns 0\nloss\n");
    g_autofree char *all = g_strconcat("b0 400 fp32 temporary/op compute - cfst kernel\n"
                                       "b1 800 fp32 communication/gather gather u1 cfst gathered\n"
                                       "b2 800 fp32 communication/reduce reduce u1 cfst packed\n"
                                       "b3 400 fp32 temporary/op reduce u1 cfst other\n",
                                       buffers, NULL);
    g_string_append_printf(text, "buffers %u\n%s", count_lines(all, ""), all);
    append_construct(text, all);
    const char *sections[] = {"first", "second", "steady"};
    for (unsigned i = 0; i < G_N_ELEMENTS(sections); i++) {
        g_string_append_printf(text, "section %s %u\n@forward u0 m0\n%s", sections[i],
                               count_lines(body, "@"), body);
    }
    g_string_append(text, "end\n");
    g_autoptr(GError) error = NULL;
    Plan *plan = plan_read(text->str, text->len, "toy.plan", &error);
    g_assert_no_error(error);
    return plan;
}

static Plan *plan_of(const ModelNetwork *read, const char *settings, PlanForm form,
                     GError **error) {
    PlanStrategy strategy;
    return plan_strategy_of_words(&strategy, settings, error)
               ? model_network_plan(read, &strategy, form, error)
               : NULL;
}

static ModelNetwork *read_network(const char *name) {
    g_autoptr(GError) error = NULL;
    g_autofree char *file = g_strconcat(name, ".ini", NULL);
    g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_NETWORKS"), file, NULL);
    ModelNetwork *network = model_network_read_file(path, &error);
    g_assert_no_error(error);
    return network;
}

static Plan *known_plan(const ModelNetwork *network, const char *settings, PlanForm form) {
    g_autoptr(GError) error = NULL;
    Plan *plan = plan_of(network, settings, form, &error);
    g_assert_no_error(error);
    return plan;
}

Plan *toy_network_plan(const char *network, const char *settings) {
    g_autoptr(ModelNetwork) read = read_network(network);
    return known_plan(read, settings, PLAN_FORM_WHOLE);
}

Plan *toy_plan_if_known(const char *network, const char *settings) {
    g_autoptr(ModelNetwork) read = read_network(network);
    return plan_of(read, settings, PLAN_FORM_WHOLE, NULL);
}

Plan *toy_folded_plan(const char *network, const char *settings, PlanForm form) {
    g_autoptr(ModelNetwork) read = read_network(network);
    return known_plan(read, settings, form);
}

static Plan *written_plan(const char *ini, const char *settings, PlanForm form) {
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelNetwork) read = model_network_read(ini, strlen(ini), "written.ini", &error);
    g_assert_no_error(error);
    return known_plan(read, settings, form);
}

Plan *toy_written_plan(const char *ini, const char *settings) {
    return written_plan(ini, settings, PLAN_FORM_WHOLE);
}

Plan *toy_written_plan_for_one(const char *ini, const char *settings) {
    return written_plan(ini, settings, PLAN_FORM_FOR_ONE);
}

char *toy_timeline(const Trace *trace, int32_t step) {
    GString *line = g_string_new(NULL);
    int64_t from = 0;
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (row->step >= 0 && row->step < step && row->lane == trace_compute_lane(trace)) {
            from = MAX(from, row->end_ns);
        }
    }
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (row->step == step) {
            uint32_t kind = trace_instruction(trace, 0, row->instruction)->kind;
            g_string_append_printf(line, "%s%s:%" G_GINT64_FORMAT "-%" G_GINT64_FORMAT,
                                   line->len ? " " : "", trace_kind(trace, kind)->name,
                                   row->start_ns - from, row->end_ns - from);
        }
    }
    return g_string_free(line, FALSE);
}
