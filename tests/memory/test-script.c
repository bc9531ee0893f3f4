/* A script that cannot be read is answered with the line, and what should stand there. */
#include <glib.h>

#include "tests/memory/script.h"

static const struct {
    const char *name, *script, *answer;
} bad[] = {
    {"unknown command", "stats\nfrob 1\n",
     "line 2: a line begins with set, malloc, free, record, complete, sync, empty_cache, "
     "reset_peak, stats, blocks or #, not \"frob\""},
    {"no stream", "malloc 1 512\n",
     "line 1: it is \"malloc ID BYTES STREAM\", not \"malloc 1 512\""},
    {"too many numbers", "complete 0 1 2\n",
     "line 1: it is \"complete STREAM\" or \"complete STREAM K\", not \"complete 0 1 2\""},
    {"something behind", "sync now\n", "line 1: sync stands alone, not \"sync now\""},
    {"below 0", "malloc 1 -5 0\n", "line 1: a number is whole and from 0 to 2^64 - 1, not \"-5\""},
    {"beyond 64 bits", "free 18446744073709551616\n",
     "line 1: a number is whole and from 0 to 2^64 - 1, not \"18446744073709551616\""},
    {"stream 64", "record 1 64\n", "line 1: streams are 0 to 63, not \"64\""},
    {"id in use", "malloc 1 5 0\nmalloc 1 5 0\n",
     "line 2: malloc wants an id that holds nothing, not \"1\""},
    {"unknown setting", "set colour red\n",
     "line 1: a setting is memory, budget, conf, fraction or free_synchronizes, not \"colour\""},
    {"no value", "set conf\n",
     "line 1: a setting is \"set NAME VALUE\", each one word, not \"set conf\""},
    {"two values", "set memory 100 200\n",
     "line 1: a setting is \"set NAME VALUE\", each one word, not \"set memory 100 200\""},
    {"fraction above 1", "set fraction 1.5\n",
     "line 1: a fraction is a number from 0 to 1, not \"1.5\""},
    {"unknown option", "stats\n\nset conf foo:1\n",
     "line 3: allocator option \"foo\" does not exist; the text is that of PYTORCH_ALLOC_CONF, as "
     "in "
     "max_split_size_mb:128,expandable_segments:True"},
    {"options that do not go together", "set conf max_split_size_mb:3\n",
     "line 1: allocator option max_split_size_mb: 3; it is at least 20, the large segments' size"},
    {"no text", "\xff\xfe\n",
     "line 1: a line begins with set, malloc, free, record, complete, sync, empty_cache, "
     "reset_peak, stats, blocks or #, not \"\\377\\376\""},
};

static void test_bad(gconstpointer data) {
    guint i = GPOINTER_TO_UINT(data);
    g_autoptr(GError) error = NULL;
    g_autofree char *played = script_play(bad[i].script, &error);
    g_assert_null(played);
    g_assert_nonnull(error);
    g_assert_cmpstr(error->message, ==, bad[i].answer);
}

/* Neither ends of lines nor remarks matter. */
static void test_remarks(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *played = script_play("# a script\r\n \tmalloc 1 5 0 # a byte or five\r\n"
                                          "\r\nfree 1",
                                          &error);
    g_assert_no_error(error);
    g_assert_cmpstr(played, ==,
                    ">  \tmalloc 1 5 0 # a byte or five\r\n"
                    "  cudaMalloc 2097152 = 0\n"
                    "= 0 0 512 | 512 512 2097152\n"
                    "> free 1\n"
                    "= freed | 0 0 2097152\n");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *name = g_strdup_printf("/memory/script/%s", bad[i].name);
        g_test_add_data_func(name, GUINT_TO_POINTER(i), test_bad);
    }
    g_test_add_func("/memory/script/remarks", test_remarks);
    return g_test_run();
}
