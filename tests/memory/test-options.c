/* memory/options: what the text may say, and what is said about text that is wrong. */
#include <stdbool.h>
#include <string.h>

#include "memory/options.h"

#define MIB (UINT64_C(1) << 20)

static MemoryOptions parse(const char *text) {
    g_autoptr(GError) error = NULL;
    MemoryOptions options;
    memory_options_parse(text, &options, &error);
    g_assert_no_error(error);
    return options;
}

static void test_defaults(void) {
    const char *texts[] = {NULL,
                           "",
                           "  ",
                           "backend:native",
                           "pinned_num_register_threads:8",
                           "release_lock_on_cudamalloc:True,pinned_use_background_threads:True"};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        MemoryOptions options = parse(texts[i]);
        g_assert_cmpuint(options.max_split_bytes, ==, UINT64_MAX);
        g_assert_cmpuint(options.max_non_split_rounding_bytes, ==, 20 * MIB);
        g_assert_cmpuint(options.large_segment_bytes, ==, 20 * MIB);
        g_assert_cmpuint(options.roundup_divisions[0], ==, 0);
        g_assert_cmpfloat(options.garbage_collection_threshold, ==, 0);
        g_assert_cmpfloat(options.memory_fraction, ==, 1);
        g_assert_false(options.expandable_segments);
        g_assert_false(options.throw_on_cudamalloc_oom);
    }
}

static void test_values(void) {
    MemoryOptions options = parse("max_split_size_mb:128, garbage_collection_threshold : 0.25,"
                                  "expandable_segments:True,throw_on_cudamalloc_oom:True,"
                                  "max_non_split_rounding_mb:40,per_process_memory_fraction:0.5,");
    g_assert_cmpuint(options.max_split_bytes, ==, 128 * MIB);
    g_assert_cmpuint(options.max_non_split_rounding_bytes, ==, 40 * MIB);
    g_assert_cmpfloat(options.garbage_collection_threshold, ==, 0.25);
    g_assert_cmpfloat(options.memory_fraction, ==, 0.5);
    g_assert_cmpfloat(options.throw_fraction, ==, 0.5);
    g_assert_true(options.expandable_segments);
    g_assert_true(options.throw_on_cudamalloc_oom);

    options = parse("max_split_size_mb:64,max_split_size_mb:32,expandable_segments:False");
    g_assert_cmpuint(options.max_split_bytes, ==, 32 * MIB);
    options = parse("max_split_size_mb:18446744073709551615");
    g_assert_cmpuint(options.max_split_bytes, >, UINT64_C(1) << 60);
}

/* Keys come in any order: bounds that follow from another key are checked at the end. */
static void test_large_segment(void) {
    MemoryOptions options = parse("max_split_size_mb:40,large_segment_size_mb:40");
    g_assert_cmpuint(options.large_segment_bytes, ==, 40 * MIB);
    g_assert_cmpuint(options.max_non_split_rounding_bytes, ==, 40 * MIB);
    options = parse("max_split_size_mb:11,large_segment_size_mb:11,max_non_split_rounding_mb:12");
    g_assert_cmpuint(options.max_split_bytes, ==, 11 * MIB);
    g_assert_cmpuint(options.max_non_split_rounding_bytes, ==, 12 * MIB);
}

static char *roundups(const char *list) {
    g_autofree char *text = g_strconcat("roundup_power2_divisions:", list, NULL);
    MemoryOptions options = parse(text);
    GString *found = g_string_new(NULL);
    for (guint i = 0; i < MEMORY_N_ROUNDUPS; i++) {
        g_string_append_printf(found, "%u ", options.roundup_divisions[i]);
    }
    return g_strchomp(g_string_free(found, FALSE));
}

static void test_roundup(void) {
    const char *cases[][2] = {
        {"8", "8 8 8 8 8 8 8 8 8 8 8 8 8 8 8 8"},
        {"[]", "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"},
        {"[4:2]", "2 2 2 0 0 0 0 0 0 0 0 0 0 0 0 0"},
        {"[2:2,16:4]", "2 2 0 0 4 0 0 0 0 0 0 0 0 0 0 0"},
        {"[2:2,16:4,>:8]", "2 2 0 0 4 8 8 8 8 8 8 8 8 8 8 8"},
        {"[>:8]", "0 8 8 8 8 8 8 8 8 8 8 8 8 8 8 8"},
        {"[16:4,4:2,]", "4 4 2 4 4 0 0 0 0 0 0 0 0 0 0 0"},
        {"[65536:4,>:2]", "4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4"},
        {"[1:0,>:1]", "0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *found = roundups(cases[i][0]);
        g_assert_cmpstr(found, ==, cases[i][1]);
    }
}

static void test_errors(void) {
    /* Text, and a part of what is said of it. */
    const char *cases[][2] = {
        {"foo:1", "\"foo\" does not exist"},
        {"max_split_size_mb", "found \"the end\" where \":\" should stand"},
        {"max_split_size_mb:", "found \"the end\" where a whole number"},
        {"max_split_size_mb:64abc", "found \"64abc\" where a whole number"},
        {"max_split_size_mb:-1", "whole number"},
        {"max_split_size_mb:19", "at least 20"},
        {"max_split_size_mb:30,large_segment_size_mb:40", "at least 40"},
        {"max_non_split_rounding_mb:19", "at least 20"},
        {"large_segment_size_mb:10", "more than 10"},
        {"large_segment_size_mb:99999999999999999", "no memory holds"},
        {"expandable_segments:true", "True or False"},
        {"throw_on_cudamalloc_oom:1", "True or False"},
        {"expandable_segments:True;foo:1", "True or False"},
        {"garbage_collection_threshold:1", "below 1"},
        {"garbage_collection_threshold:0", "above 0"},
        {"garbage_collection_threshold:nan", "a number"},
        {"per_process_memory_fraction:1.5", "from 0 to 1"},
        {"per_process_memory_fraction:x", "a number"},
        {"roundup_power2_divisions:3", "power of two"},
        {"roundup_power2_divisions:0", "power of two"},
        {"roundup_power2_divisions:[1:3]", "power of two, or 0"},
        {"roundup_power2_divisions:[3:4]", "interval 3"},
        {"roundup_power2_divisions:[0:4]", "interval 0"},
        {"roundup_power2_divisions:[1:4", "\",\" or \"]\""},
        {"roundup_power2_divisions:[1", "where \":\" should stand"},
        {"roundup_power2_divisions:[", "a whole number"},
        {"backend:foo", "native"},
        {"backend:cudaMallocAsync", "not modelled"},
        {"pinned_free_catch_all:", "a value"},
        {",", "an option's name"},
        {"expandable_segments:True,,", "an option's name"},
        {"expandable_segments:True:", "\",\" should stand"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        MemoryOptions options = {.max_split_bytes = 7};
        g_assert_false(memory_options_parse(cases[i][0], &options, &error));
        g_assert_nonnull(error);
        g_assert_true(error->domain == MEMORY_ERROR);
        g_assert_cmpuint(options.max_split_bytes, ==, 7);
        if (!strstr(error->message, cases[i][1])) {
            g_test_message("\"%s\": %s", cases[i][0], error->message);
            g_test_fail();
        }
    }
}

/* Any text is taken or refused with a message; none is a crash. */
static void test_mutations(void) {
    const char *seeds[] = {
        "max_split_size_mb:64,roundup_power2_divisions:[1:2,4:8,>:1]",
        "garbage_collection_threshold:0.5,expandable_segments:True,backend:native"};
    const char letters[] = ",:[]> 0123456789.eTrx";
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    guint n_refused = 0, n_taken = 0;
    for (guint i = 0; i < 4000; i++) {
        g_autofree char *text = g_strdup(seeds[i % G_N_ELEMENTS(seeds)]);
        for (gint n = g_rand_int_range(random, 0, 4); n > 0; n--) {
            gsize at = (gsize)g_rand_int_range(random, 0, (gint)strlen(text));
            text[at] = letters[g_rand_int_range(random, 0, (gint)sizeof letters - 1)];
        }
        g_autoptr(GError) error = NULL;
        MemoryOptions options;
        bool taken = memory_options_parse(text, &options, &error);
        g_assert_true(taken == (error == NULL));
        n_taken += taken;
        n_refused += !taken;
    }
    g_assert_cmpuint(n_taken, >, 100);
    g_assert_cmpuint(n_refused, >, 100);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/options/defaults", test_defaults);
    g_test_add_func("/memory/options/values", test_values);
    g_test_add_func("/memory/options/large-segment-bounds-the-others", test_large_segment);
    g_test_add_func("/memory/options/roundup-list", test_roundup);
    g_test_add_func("/memory/options/errors-name-key-and-remedy", test_errors);
    g_test_add_func("/memory/options/no-text-crashes", test_mutations);
    return g_test_run();
}
