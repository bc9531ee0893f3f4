/* The text form: round trip, canonical bytes, files cut short, mutated files, safe writing. */
#include <glib/gstdio.h>
#include <string.h>

#include "tests/trace/toy-trace.h"
#include "trace/compare/compare.h"
#include "trace/export/export.h"
#include "trace/text.h"

static GString *toy_text(void) {
    ToyOptions options = TOY_DEFAULT;
    options.n_ranks = 2;
    g_autoptr(Trace) trace = toy_trace(&options);
    g_autoptr(GError) error = NULL;
    GString *text = trace_text(trace, &error);
    g_assert_no_error(error);
    return text;
}

static void round_trip(void) {
    g_autoptr(GString) text = toy_text();
    g_autoptr(GError) error = NULL;
    g_autoptr(Trace) trace = trace_read(text->str, text->len, "toy.trace", &error);
    g_assert_no_error(error);
    g_autoptr(GString) again = trace_text(trace, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(text->str, ==, again->str);

    ToyOptions options = TOY_DEFAULT;
    options.n_ranks = 2;
    g_autoptr(Trace) original = toy_trace(&options);
    g_assert_cmpmem(trace->ops->data, trace->ops->len * sizeof(TraceOpRow), original->ops->data,
                    original->ops->len * sizeof(TraceOpRow));
    g_assert_cmpmem(trace->memory->data, trace->memory->len * sizeof(TraceMemoryRow),
                    original->memory->data, original->memory->len * sizeof(TraceMemoryRow));
    g_assert_cmpuint(trace->ops->len, ==, 2 * 4 * 7);
    g_assert_cmpuint(trace->memory->len, ==, 2 * (1 + 4 * 6));
    g_assert_cmpstr(trace_get(trace, "a.free-fact"), ==, "line one\nline two");
    g_assert_cmpstr(trace->modules->pdata[0], ==, "");
    g_assert_cmpstr(trace->modules->pdata[1], ==, "a \"quoted\\name\"");
}

/* Ranks merged in another order, rows of ranks mixed, header set in another order: same bytes. */
static void canonical(void) {
    g_autoptr(GString) text = toy_text();
    ToyOptions options = TOY_DEFAULT;
    options.n_ranks = 2;
    g_autoptr(Trace) zero = toy_trace_rank(&options, 0);
    g_autoptr(Trace) mixed = toy_trace_rank(&options, 1);
    g_autoptr(Trace) one = toy_trace_rank(&options, 1);
    g_assert_true(trace_merge(mixed, zero, NULL));
    g_array_set_size(mixed->ops, 0);
    for (guint i = 0; i < one->ops->len; i++) {
        trace_add_op(mixed, trace_op(one, i));
        trace_add_op(mixed, trace_op(zero, i));
    }
    g_ptr_array_add(mixed->keys, g_ptr_array_steal_index(mixed->keys, 0));
    g_ptr_array_add(mixed->values, g_ptr_array_steal_index(mixed->values, 0));
    g_autoptr(GString) other = trace_text(mixed, NULL);
    g_assert_cmpstr(text->str, ==, other->str);
}

static void merge_refuses(void) {
    ToyOptions options = TOY_DEFAULT, other = TOY_DEFAULT;
    other.digest = "sha256:4567";
    g_autoptr(Trace) a = toy_trace_rank(&options, 0);
    g_autoptr(Trace) b = toy_trace_rank(&other, 1);
    g_autoptr(Trace) c = toy_trace_rank(&options, 1);
    g_autoptr(GString) before = trace_text(a, NULL);
    g_autoptr(GError) error = NULL;
    g_assert_false(trace_merge(a, b, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH);
    g_clear_error(&error);
    g_assert_false(trace_merge(a, a, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH);
    g_assert_nonnull(strstr(error->message, "rank 0"));
    g_clear_error(&error);
    trace_add_unit(c, "one more");
    g_assert_false(trace_merge(a, c, &error));
    g_assert_nonnull(strstr(error->message, "units"));
    g_autoptr(GString) after = trace_text(a, NULL);
    g_assert_cmpstr(before->str, ==, after->str);
}

static void cut_short(void) {
    g_autoptr(GString) text = toy_text();
    for (gsize length = 0; length < text->len; length++) {
        /* A copy of its own, so that a sanitizer sees a reader that looks past the end. */
        g_autofree char *part = g_memdup2(text->str, MAX(length, 1));
        g_autoptr(GError) error = NULL;
        g_autoptr(Trace) trace = trace_read(part, length, "toy.trace", &error);
        g_assert_null(trace);
        g_assert_error(error, TRACE_ERROR, TRACE_ERROR_CUT);
        guint line = 1;
        for (gsize i = 0; i < length; i++) {
            line += part[i] == '\n';
        }
        g_autofree char *place = g_strdup_printf("toy.trace:%u: ", line);
        g_assert_true(g_str_has_prefix(error->message, place));
        g_assert_nonnull(strstr(error->message, "cut short"));
    }
}

/* Whatever reads traces copes with this one, beside the trace that it was made of. */
static void judge(const Trace *trace, const Trace *original) {
    g_autoptr(GString) snapshot = trace_export_memory_viz(trace);
    g_assert_cmpuint(snapshot->len, >, 0);
    g_autoptr(GString) chrome = trace_export_chrome(trace);
    g_assert_cmpuint(chrome->len, >, 0);
    for (guint i = 0; i < trace->ranks->len; i++) {
        uint32_t rank = g_array_index(trace->ranks, TraceRank, i).rank;
        g_autoptr(TraceSummary) summary = trace_summary_new(trace, rank);
        g_assert_cmpuint(summary->rank, ==, rank);
        TraceSpread spread = trace_summary_spread(summary);
        g_assert_true(spread.n == 0 || spread.least_ns <= spread.p95_ns);
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(TraceComparison) comparison = trace_compare(original, trace, &error);
    g_assert_true((comparison != NULL) == (error == NULL));
    if (comparison != NULL) {
        g_autofree char *text = trace_comparison_text(comparison);
        g_assert_nonnull(strchr(text, '\n'));
    }
}

/* Whatever is done to a file, it is refused with file and line, or it is a trace that is written as
 * the very same bytes, and that all readers of traces can bear. */
static void mutations(void) {
    g_autoptr(GString) text = toy_text();
    g_autoptr(Trace) original = trace_read(text->str, text->len, "toy.trace", NULL);
    g_autoptr(GRand) rand = g_rand_new_with_seed(20261120);
    static const char alphabet[] = "0123456789-- \n\"\\\r\0opsmendyalr\xff";
    guint refused = 0, accepted = 0;
    for (guint round = 0; round < 4000; round++) {
        g_autoptr(GString) mutant = g_string_new_len(text->str, (gssize)text->len);
        guint changes = (guint)g_rand_int_range(rand, 1, 4);
        for (guint i = 0; i < changes; i++) {
            gssize at = g_rand_int_range(rand, 0, (gint32)mutant->len);
            char c = alphabet[g_rand_int_range(rand, 0, sizeof alphabet - 1)];
            gssize length = g_rand_int_range(rand, 1, 40);
            length = MIN(length, (gssize)mutant->len - at);
            switch (g_rand_int_range(rand, 0, 5)) {
            case 0:
                mutant->str[at] = c;
                break;
            case 1:
                g_string_insert_c(mutant, at, c);
                break;
            case 2:
                g_string_erase(mutant, at, length);
                break;
            case 3: {
                g_autofree char *piece = g_strndup(mutant->str + at, (gsize)length);
                g_string_insert(mutant, g_rand_int_range(rand, 0, (gint32)mutant->len), piece);
                break;
            }
            default:
                g_string_insert(mutant, at, "9223372036854775807");
                break;
            }
        }
        g_autoptr(GError) error = NULL;
        g_autoptr(Trace) trace = trace_read(mutant->str, mutant->len, "mutant", &error);
        if (trace == NULL) {
            refused++;
            g_assert_true(error->domain == TRACE_ERROR);
            g_assert_true(g_str_has_prefix(error->message, "mutant:"));
            g_assert_true(g_ascii_isdigit(error->message[strlen("mutant:")]));
            continue;
        }
        accepted++;
        g_autoptr(GString) again = trace_text(trace, &error);
        g_assert_no_error(error);
        g_assert_cmpmem(again->str, again->len, mutant->str, mutant->len);
        judge(trace, original);
    }
    g_assert_cmpuint(refused, >, 100);
    g_assert_cmpuint(accepted, >, 10); /* names, and times of rows, may change */
}

typedef struct {
    const char *from, *to; /* the first place where from stands */
    guint line_of;         /* of from, counted below when 0 */
    const char *message;
} Planted;

static void messages(void) {
    static const Planted planted[] = {
        {"foreshard-trace 2", "foreshard-trace 1", 1, "of version 1, this program reads version 2"},
        {"side predicted", "side guessed", 0, "predicted or measured"},
        {"linear\n", "\n", 0, "a name is missing"},
        {"rank 1 0", "rank 0 0", 0, "ranks should grow"},
        {"alloc 0 0 0 - 0 4096 0", "alloc 0 0 9 - 0 4096 0", 0, "no possible unit"},
        {"section first 13", "section first 12", 0, "\"section\" should stand here"},
        {"memory 0 -1 1", "memory 7 -1 1", 0, "rank 7 has no role"},
        {"ops 0 1 7", "ops 0 0 7", 0, "order of rank and step"},
        {"1 10000 3 1024 5120 0 8192", "1 10000 3 1024 5121 0 8192", 0, "sum up to allocated"},
        {"1 10000 3 1024 5120 0 8192", "1 10000 3 1024 5120 -1 8192", 0,
         "5119 bytes active, of which 5120 are allocated"},
        {"2 1 30000 20000 100000", "4 1 30000 20000 -100000", 0, "-100000 stands where"},
        {"2 1 30000 20000 100000", "1 1 30000 20000 100000", 0, "which is alloc"},
        {"2 1 30000 20000 100000", "2 1 030000 20000 100000", 0, "whole number"},
        {"end ops 56", "end ops 55", 0, "end line counts 55"},
    };
    g_autoptr(GString) text = toy_text();
    for (guint i = 0; i < G_N_ELEMENTS(planted); i++) {
        const char *at = strstr(text->str, planted[i].from);
        g_assert_nonnull(at);
        g_autoptr(GString) mutant = g_string_new_len(text->str, at - text->str);
        guint line = 1;
        for (gsize k = 0; k < mutant->len; k++) {
            line += mutant->str[k] == '\n';
        }
        g_string_append(mutant, planted[i].to);
        g_string_append(mutant, at + strlen(planted[i].from));
        g_autoptr(GError) error = NULL;
        g_assert_null(trace_read(mutant->str, mutant->len, "bad.trace", &error));
        g_assert_error(error, TRACE_ERROR, TRACE_ERROR_SYNTAX);
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, planted[i].message));
        guint said = (guint)g_ascii_strtoull(error->message + strlen("bad.trace:"), NULL, 10);
        g_assert_cmpuint(said, >=, line);
        g_assert_cmpuint(said, <=, line + 14); /* counts and header faults show where they end */
    }
}

/* Each op's end is a possible time, and all readers add up how long ops last. */
static void no_sum_of_ops_overflows(void) {
    g_autoptr(Trace) trace = toy_trace(&TOY_DEFAULT);
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < 5; i++) {
        TraceOpRow *row = &g_array_index(trace->ops, TraceOpRow, i);
        row->end_ns = row->start_ns + INT64_C(2000000000000000000);
        g_autoptr(GString) text = trace_text(trace, &error);
        g_assert_cmpint(text == NULL, ==, i == 4);
    }
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_VALUE);
    g_assert_cmpstr(error->message, ==, "the ops of rank 0 last longer in all than 2^63 ns");
}

static unsigned entries(const char *folder) {
    unsigned n = 0;
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (; g_dir_read_name(dir); n++) {
    }
    return n;
}

static void writing_is_safe(void) {
    g_autofree char *folder = g_dir_make_tmp("foreshard-trace-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "a.trace", NULL);
    ToyOptions options = TOY_DEFAULT;
    g_autoptr(Trace) trace = toy_trace(&options);
    g_autoptr(GError) error = NULL;
    g_assert_true(trace_write_file(trace, path, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(entries(folder), ==, 1);
    g_autoptr(Trace) read = trace_read_file(path, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(read->ops->len, ==, trace->ops->len);

    /* A trace that contradicts itself is not written, and the good file stays. */
    g_autofree char *before = NULL, *after = NULL;
    g_assert_true(g_file_get_contents(path, &before, NULL, NULL));
    TraceMemoryRow row = *trace_memory(trace, 0);
    row.step = 100;
    row.delta = 1;
    trace_add_memory(trace, &row);
    g_assert_false(trace_write_file(trace, path, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_VALUE);
    g_clear_error(&error);
    g_assert_true(g_file_get_contents(path, &after, NULL, NULL));
    g_assert_cmpstr(before, ==, after);
    g_assert_cmpuint(entries(folder), ==, 1);

    /* A place where nothing can be written, and a file that is not there. */
    g_autofree char *nowhere = g_build_filename(folder, "no", "where.trace", NULL);
    g_assert_false(trace_write_file(read, nowhere, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_FILE);
    g_clear_error(&error);
    g_assert_null(trace_read_file(nowhere, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_FILE);
    g_unlink(path);
    g_rmdir(folder);
}

/* Ranks of stages say which is theirs; a header that cannot be says nothing of it. */
static void names_of_ranks(void) {
    static const struct {
        const char *world, *stages, *each, *name;
    } cases[] = {
        {"8", NULL, NULL, "rank 5"},
        {"8", "4", NULL, "rank 5, stage 3 of 4"},
        {"6", "2", NULL, "rank 5, stage 2 of 2"},
        {"8", "4", "2", "rank 5, stages 3, 7 of 8"},
        {"6", "3", "3", "rank 5, stages 3, 6, 9 of 9"},
        {"6", "3", "5", "rank 5, stages 3, 6, ..., 15 of 15"},
        {"8", "3", "2", "rank 5"},
        {"4", "2", NULL, "rank 5"},
        {"8", "0", NULL, "rank 5"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Trace) trace = trace_new();
        trace_set(trace, "world", cases[i].world);
        if (cases[i].stages) {
            trace_set(trace, "stages", cases[i].stages);
        }
        if (cases[i].each) {
            trace_set(trace, "stages_each", cases[i].each);
        }
        g_autofree char *name = trace_rank_text(trace, 5);
        g_assert_cmpstr(name, ==, cases[i].name);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/trace/text/round-trip", round_trip);
    g_test_add_func("/trace/text/canonical", canonical);
    g_test_add_func("/trace/text/merge-refuses", merge_refuses);
    g_test_add_func("/trace/text/cut-short", cut_short);
    g_test_add_func("/trace/text/mutations", mutations);
    g_test_add_func("/trace/text/messages", messages);
    g_test_add_func("/trace/text/no sum of ops overflows", no_sum_of_ops_overflows);
    g_test_add_func("/trace/text/writing-is-safe", writing_is_safe);
    g_test_add_func("/trace/text/names of ranks", names_of_ranks);
    return g_test_run();
}
