/* memory/rounding: sizes of blocks and segments. */
#include "memory/rounding.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

static MemoryOptions options_of(const char *text) {
    g_autoptr(GError) error = NULL;
    MemoryOptions options;
    memory_options_parse(text, &options, &error);
    g_assert_no_error(error);
    return options;
}

typedef struct {
    uint64_t from, to;
} Case;

static void check(const char *text, const Case *cases, guint n) {
    MemoryOptions options = options_of(text);
    for (guint i = 0; i < n; i++) {
        g_assert_cmpuint(memory_round(&options, cases[i].from), ==, cases[i].to);
    }
}

static void test_multiples(void) {
    static const Case cases[] = {{1, 512},     {511, 512}, {512, 512},          {513, 1024},
                                 {1000, 1024}, {MIB, MIB}, {MIB + 1, MIB + 512}};
    check("", cases, G_N_ELEMENTS(cases));
    check("roundup_power2_divisions:1", cases, G_N_ELEMENTS(cases));
}

/* Between 1024 and 2048 four steps of 256; but only above 512 bytes a division. */
static void test_divisions(void) {
    static const Case cases[] = {{1200, 1536},
                                 {2048, 2048},
                                 {2049, 2560},
                                 {5 * KIB, 5 * KIB},
                                 {1, 512},
                                 {MIB + 1, MIB + MIB / 4},
                                 {3 * MIB, 3 * MIB},
                                 {3 * MIB + 1, 3 * MIB + 512 * KIB},
                                 {16 * MIB, 16 * MIB}};
    check("roundup_power2_divisions:4", cases, G_N_ELEMENTS(cases));
}

static void test_list(void) {
    static const Case cases[] = {{MIB / 2 + 1, MIB / 2 + MIB / 4}, /* smaller ones: the first */
                                 {MIB + 1, MIB + MIB / 2},
                                 {2 * MIB + 1, 2 * MIB + 512}, /* not named */
                                 {4 * MIB + 1, 5 * MIB},
                                 {8 * MIB + 1, 9 * MIB}};
    check("roundup_power2_divisions:[1:2,4:4,>:8]", cases, G_N_ELEMENTS(cases));
}

static void test_segments(void) {
    static const Case cases[] = {{512, 2 * MIB},        {MIB, 2 * MIB},
                                 {MIB + 512, 20 * MIB}, {10 * MIB - 512, 20 * MIB},
                                 {10 * MIB, 10 * MIB},  {10 * MIB + 512, 12 * MIB},
                                 {40 * MIB, 40 * MIB}};
    MemoryOptions options = options_of("");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpuint(memory_segment_size(&options, cases[i].from), ==, cases[i].to);
    }
    options = options_of("large_segment_size_mb:64");
    g_assert_cmpuint(memory_segment_size(&options, 2 * MIB), ==, 64 * MIB);
    g_assert_cmpuint(memory_segment_size(&options, 11 * MIB), ==, 12 * MIB);
}

/* Whatever the options: never less than asked, a multiple of 512, and stable. */
static void test_law(void) {
    const char *texts[] = {"", "roundup_power2_divisions:2", "roundup_power2_divisions:64",
                           "roundup_power2_divisions:[4:16,64:2,>:1]"};
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    for (guint i = 0; i < 20000; i++) {
        MemoryOptions options = options_of(texts[i % G_N_ELEMENTS(texts)]);
        uint64_t bytes = 1 + (g_rand_int(random) >> g_rand_int_range(random, 0, 31)) *
                                 (uint64_t)g_rand_int_range(random, 1, 40);
        uint64_t rounded = memory_round(&options, bytes);
        g_assert_cmpuint(rounded, >=, bytes);
        g_assert_cmpuint(rounded % 512, ==, 0);
        g_assert_cmpuint(memory_round(&options, rounded), ==, rounded);
        g_assert_cmpuint(memory_segment_size(&options, rounded), >=, rounded);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/rounding/multiples-of-512", test_multiples);
    g_test_add_func("/memory/rounding/divisions", test_divisions);
    g_test_add_func("/memory/rounding/list-of-divisions", test_list);
    g_test_add_func("/memory/rounding/segments", test_segments);
    g_test_add_func("/memory/rounding/never-less-and-stable", test_law);
    return g_test_run();
}
