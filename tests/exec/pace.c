/* The table of a paced run: whole, it is taken; cut or changed anywhere, refused with its line. */
#include "exec/pace.h"

#include <glib/gstdio.h>
#include <string.h>

#include "exec/error.h"
#include "tests/plan/plans.h"

/* Op number i of role r takes 1000 r + i ns. */
static GString *table_of(const Plan *plan) {
    GString *text = g_string_new("foreshard-pace 2\ncluster a slow one\n");
    g_string_append_printf(text, "digest %s\n", plan_digest(plan));
    for (uint32_t r = 0; r < plan->n_roles; r++) {
        for (uint32_t i = 0; i < plan->roles[r].n_ops; i++) {
            if (plan_op_is_collective((PlanOpKind)plan->roles[r].ops[i].kind)) {
                g_string_append_printf(text, "%u %u %u 2\n", r, i, 1000 * r + i);
            }
        }
    }
    return text;
}

static ExecPace *read_text(const char *text, gsize length, const Plan *plan, GError **error) {
    g_autofree char *path = NULL;
    int fd = g_file_open_tmp("foreshard-test-XXXXXX", &path, NULL);
    g_assert_cmpint(fd, >=, 0);
    g_close(fd, NULL);
    g_assert_true(g_file_set_contents(path, text, (gssize)length, NULL));
    ExecPace *pace = exec_pace_read(path, plan, error);
    if (!pace) {
        g_assert_true(g_str_has_prefix((*error)->message, path)); /* before it is gone */
    }
    g_unlink(path);
    return pace;
}

static void refused(const char *text, gsize length, const Plan *plan, const char *expected) {
    g_autoptr(GError) error = NULL;
    g_assert_null(read_text(text, length, plan, &error));
    g_assert_error(error, EXEC_ERROR, EXEC_ERROR_INPUT);
    g_assert_nonnull(strstr(error->message, expected));
    g_assert_nonnull(strstr(error->message, "foreshard run --pace makes"));
}

static void a_whole_one_is_taken(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=3");
    g_autoptr(GString) text = table_of(plan);
    g_autoptr(GError) error = NULL;
    g_autoptr(ExecPace) pace = read_text(text->str, text->len, plan, &error);
    unsigned n = 0;
    g_assert_no_error(error);
    g_assert_cmpstr(exec_pace_cluster(pace), ==, "a slow one");
    for (uint32_t r = 0; r < plan->n_roles; r++) {
        for (uint32_t i = 0; i < plan->roles[r].n_ops; i++) {
            if (plan_op_is_collective((PlanOpKind)plan->roles[r].ops[i].kind)) {
                g_assert_cmpint(exec_pace_of(pace, r, i).least_ns, ==, 1000 * r + i);
                g_assert_cmpuint(exec_pace_of(pace, r, i).channels, ==, 2);
                n++;
            }
        }
    }
    g_assert_cmpuint(n, >, 0);
}

static void any_cut_is_refused(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=2");
    g_autoptr(GString) text = table_of(plan);
    for (gsize length = 0; length < text->len; length++) {
        refused(text->str, length, plan, "");
    }
    refused("", 0, plan, ":1: not a line of a pace");
    refused("foreshard-pace 2\n", 17, plan, ":2: not a line of a pace");
    refused(text->str, text->len - 1, plan, ": ends within a line");
    text->str[text->len - 1] = 0;
    gsize last = (gsize)(strrchr(text->str, '\n') + 1 - text->str);
    text->str[text->len - 1] = '\n';
    refused(text->str, last, plan, ": has no line for op ");
}

static void other_lines_are_refused(void) {
    static const struct {
        const char *line, *instead, *expected;
    } cases[] = {
        {"foreshard-pace 2\n", "foreshard-pace 3\n", ":1: "},
        {"cluster a slow one\n", "cluster\n", ":2: "},
        {"cluster a slow one\n", "gluster a slow one\n", ":2: "},
        {"digest ", "indigestion ", ":3: "},
        {"digest ", "digest 1", ":3: "},
        {"\n0 ", "\n7 ", ":4: "}, /* there is no such role */
        {" 2\n", " two\n", ":4: "},
    };
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=2");
    g_autoptr(GString) text = table_of(plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) other = g_string_new(text->str);
        const char *from = i == G_N_ELEMENTS(cases) - 1 ? strstr(other->str, "\n0 ") : other->str;
        const char *at = strstr(from, cases[i].line);
        g_string_erase(other, at - other->str, (gssize)strlen(cases[i].line));
        g_string_insert(other, at - other->str, cases[i].instead);
        refused(other->str, other->len, plan, cases[i].expected);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exec/pace/a whole one is taken", a_whole_one_is_taken);
    g_test_add_func("/exec/pace/any cut is refused", any_cut_is_refused);
    g_test_add_func("/exec/pace/other lines are refused", other_lines_are_refused);
    return g_test_run();
}
