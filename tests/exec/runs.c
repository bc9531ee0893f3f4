#include "tests/exec/runs.h"

#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>

#include "plan/text/text.h"
#include "trace/text.h"

const char *test_run_program;
const char *test_run_name, *test_run_value;
bool test_run_forks;

/* What tells one that ranks do together from others. */
static char *meeting_of(const Plan *plan, const PlanRole *role, const PlanOp *op) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    double reduction = info->n_attrs ? plan_op_attrs(role, op)[0] : 0;
    return g_strdup_printf("%s %s dtype %u reduction %g ranks %u of %u", info->name,
                           plan_axis_name((PlanAxis)op->axis), op->dtype, reduction,
                           plan->axes[op->axis], plan->world);
}

void test_run_bind(const char *plan_path) {
    static GHashTable *met;
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = plan_read_file(plan_path, &error);
    g_assert_no_error(error);
    met = met ? met : g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    test_run_forks = true;
    for (uint32_t r = 0; r < plan->n_roles; r++) {
        const PlanRole *role = &plan->roles[r];
        for (uint32_t i = 0; i < role->n_ops; i++) {
            if (plan_op_joins_ranks((PlanOpKind)role->ops[i].kind) &&
                g_hash_table_add(met, meeting_of(plan, role, &role->ops[i]))) {
                test_run_forks = false;
            }
        }
    }
}

static GPtrArray *split(const char *words) {
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(argv, g_strdup(test_run_program));
    g_auto(GStrv) list = g_strsplit(words, " ", -1);
    for (char **word = list; *word; word++) {
        if (**word) {
            g_ptr_array_add(argv, g_strdup(*word));
        }
    }
    g_ptr_array_add(argv, NULL);
    return argv;
}

GSubprocess *test_run_start(const char *words) {
    return test_run_start_into(words, NULL);
}

GSubprocess *test_run_start_into(const char *words, const char *path) {
    g_autoptr(GPtrArray) argv = split(words);
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(
        G_SUBPROCESS_FLAGS_STDERR_PIPE | (path ? 0 : G_SUBPROCESS_FLAGS_STDOUT_PIPE));
    if (path) {
        g_subprocess_launcher_set_stdout_file_path(launcher, path);
    }
    if (test_run_name) {
        g_subprocess_launcher_setenv(launcher, test_run_name, test_run_value, TRUE);
    }
    if (test_run_forks) {
        g_subprocess_launcher_setenv(launcher, "PATH", "/", TRUE);
    }
    GSubprocess *process =
        g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, &error);
    g_assert_no_error(error);
    return process;
}

TestRun test_run_finish(GSubprocess *process) {
    TestRun run = {0};
    g_autoptr(GError) error = NULL;
    g_subprocess_communicate_utf8(process, NULL, NULL, &run.out, &run.err, &error);
    g_assert_no_error(error);
    g_assert_true(g_subprocess_get_if_exited(process));
    run.status = g_subprocess_get_exit_status(process);
    g_object_unref(process);
    return run;
}

void test_run_clear(TestRun *run) {
    g_free(run->out);
    g_free(run->err);
}

static TestRun finish_well(const char *words) {
    TestRun run = test_run_finish(test_run_start(words));
    if (run.status) {
        g_test_message("%s: status %d: %s", words, run.status, run.err);
    }
    g_assert_cmpint(run.status, ==, 0);
    return run;
}

void test_run_ok(const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *words = g_strdup_vprintf(format, args);
    va_end(args);
    TestRun run = finish_well(words);
    test_run_clear(&run);
}

void test_run_losses(const char *words, double *losses, unsigned n) {
    g_autofree char *line = g_strdup_printf("run %s --steps %u", words, n);
    test_run_losses_of(line, losses, n);
}

void test_run_losses_of(const char *words, double *losses, unsigned n) {
    g_autofree char *line = g_strconcat(words, " --json", NULL);
    TestRun run = finish_well(line);
    g_autoptr(JsonParser) parser = json_parser_new();
    g_assert_true(json_parser_load_from_data(parser, run.out, -1, NULL));
    JsonArray *array =
        json_object_get_array_member(json_node_get_object(json_parser_get_root(parser)), "losses");
    g_assert_cmpuint(json_array_get_length(array), ==, n);
    for (unsigned i = 0; i < n; i++) {
        losses[i] = json_array_get_double_element(array, i);
    }
    test_run_clear(&run);
}

char *test_run_slow_cluster(const char *clusters, const char *folder, unsigned latency_us) {
    g_autofree char *path = g_build_filename(clusters, "this-machine.ini", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) parts = g_strsplit(text, "base_latency_us = 80\n", -1);
    g_assert_cmpuint(g_strv_length(parts), ==, 2);
    g_autofree char *line = g_strdup_printf("base_latency_us = %u\n", latency_us);
    g_autofree char *slow = g_strjoinv(line, parts);
    char *slow_path = g_build_filename(folder, "slow.ini", NULL);
    g_assert_true(g_file_set_contents(slow_path, slow, -1, NULL));
    return slow_path;
}

Trace *test_run_take_trace(const char *path) {
    g_autoptr(GError) error = NULL;
    Trace *trace = trace_read_file(path, &error);
    g_assert_no_error(error);
    g_unlink(path);
    return trace;
}

uint64_t test_run_most_reserved(const Trace *trace) {
    uint64_t most = 0;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        most = row->rank == 0 ? MAX(most, row->reserved) : most;
    }
    return most;
}

float *test_run_read_floats(const char *folder, const char *name, gsize *ret_n) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autofree char *content = NULL;
    g_autoptr(GError) error = NULL;
    gsize length;
    uint64_t header;
    g_file_get_contents(path, &content, &length, &error);
    g_assert_no_error(error);
    memcpy(&header, content, sizeof header);
    *ret_n = (length - sizeof header - header) / sizeof(float);
    return g_memdup2(content + sizeof header + header, *ret_n * sizeof(float));
}

void test_run_remove_folder(const char *folder) {
    GDir *dir = g_dir_open(folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_unlink(path);
    }
    g_dir_close(dir);
    g_rmdir(folder);
}
