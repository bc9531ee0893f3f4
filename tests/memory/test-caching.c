/* memory/caching: the rules, each as a small script of calls on the pretend device. What stands
 * behind each "=" is compared: "SEGMENT OFFSET BYTES" of a malloc, "freed", "waiting", "OOM" and
 * so on. */
#include <stdbool.h>
#include <string.h>

#include "memory/caching.h"
#include "tests/memory/script.h"

/* Lines are separated by ";", "M" behind a number means MiB. Answers too are joined by "; ". With a
 * report, what was asked of the device stands before the answer. */
static char *play(const char *script, bool report) {
    g_autoptr(GRegex) mib = g_regex_new("([0-9]+)M", 0, 0, NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    for (const char *at = script; *at;) {
        GMatchInfo *match = NULL;
        int from = 0, to = 0;
        if (g_regex_match(mib, at, 0, &match)) {
            g_match_info_fetch_pos(match, 0, &from, &to);
            g_string_append_len(text, at, from);
            g_string_append_printf(text, "%" G_GUINT64_FORMAT,
                                   g_ascii_strtoull(at + from, NULL, 10) << 20);
            at += to;
        } else {
            g_string_append(text, at);
            at += strlen(at);
        }
        g_match_info_free(match);
    }
    g_strdelimit(text->str, ";", '\n');
    g_autoptr(GError) error = NULL;
    g_autofree char *output = script_play(text->str, &error);
    g_assert_no_error(error);
    g_auto(GStrv) lines = g_strsplit(output, "\n", -1);
    GString *answer = g_string_new(NULL);
    for (char **line = lines; *line; line++) {
        if (g_str_has_prefix(*line, "= ") || (report && g_str_has_prefix(*line, "  "))) {
            g_auto(GStrv) parts = g_strsplit(*line + 2, " |", 2);
            g_string_append_printf(answer, "%s%s", answer->len ? "; " : "", parts[0]);
        }
    }
    return g_string_free(answer, FALSE);
}

static void assert_play(const char *script, const char *expected) {
    g_autofree char *answer = play(script, false);
    g_assert_cmpstr(answer, ==, expected);
}

static void assert_report(const char *script, const char *expected) {
    g_autofree char *answer = play(script, true);
    g_assert_cmpstr(answer, ==, expected);
}

static void test_no_bytes(void) {
    assert_play("malloc 1 0 0;record 1 3;free 1;free 1", "null; recorded; freed; nothing");
    assert_play("malloc 1 1152921504606846976 0", "OOM");
}

static void test_pools(void) {
    /* 1 MiB is small, a byte more is large: segments of 2 and 20 MiB. */
    assert_report("malloc 1 1M 0;malloc 2 1048577 0",
                  "cudaMalloc 2097152 = 0; 0 0 1048576; cudaMalloc 20971520 = 1; 1 0 1049088");
}

static void test_streams_apart(void) {
    assert_play("malloc 1 30M 0;free 1;malloc 2 30M 1;malloc 3 30M 0",
                "0 0 31457280; freed; 1 0 31457280; 0 0 31457280");
}

static void test_best_fit(void) {
    /* Of 40, 30 and 30 MiB a request of 29 takes the older 30. */
    assert_play(
        "malloc 1 40M 0;malloc 2 30M 0;malloc 3 30M 0;free 3;free 1;free 2;malloc 4 30000000 0",
        "0 0 41943040; 1 0 31457280; 2 0 31457280; freed; freed; freed; 1 0 30000128");
}

static void test_split(void) {
    /* More than 1 MiB must remain of a large block; 512 bytes of a small one. */
    assert_play("malloc 1 12M 0;free 1;malloc 2 11M 0;free 2;malloc 3 11533824 0",
                "0 0 12582912; freed; 0 0 12582912; freed; 0 0 11533824");
    assert_play("malloc 1 1048064 0;malloc 2 1M 0;malloc 3 512 0;free 1;malloc 4 1047552 0",
                "0 0 1048064; 0 1048064 1048576; 0 2096640 512; freed; 0 0 1047552");
}

static void test_merge(void) {
    /* Three quarters of a segment; freed in any order it is whole again. */
    const char *orders[] = {"free 1;free 2;free 3", "free 3;free 2;free 1", "free 1;free 3;free 2",
                            "free 2;free 1;free 3"};
    for (guint i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autofree char *script = g_strconcat("malloc 1 5M 0;malloc 2 5M 0;malloc 3 5M 0;",
                                              orders[i], ";malloc 4 20M 0", NULL);
        assert_play(script,
                    "0 0 5242880; 0 5242880 5242880; 0 10485760 5242880; freed; freed; freed; "
                    "0 0 20971520");
    }
}

static void test_marks(void) {
    /* A marked block waits, and its end is seen by the next malloc only. */
    assert_report(
        "malloc 1 30M 0;record 1 1;record 1 1;record 1 0;free 1;malloc 2 30M 0;complete 1;"
        "malloc 3 30M 0",
        "cudaMalloc 31457280 = 0; 0 0 31457280; recorded; recorded; recorded; "
        "eventRecord 1 1; waiting; cudaMalloc 31457280 = 1; 1 0 31457280; completed 1; "
        "done 1; 0 0 31457280");
    /* On two streams: both must have passed. */
    assert_play(
        "malloc 1 30M 0;record 1 1;record 1 2;free 1;complete 2;malloc 2 30M 0;complete 1;"
        "malloc 3 30M 0",
        "0 0 31457280; recorded; recorded; waiting; completed 1; 1 0 31457280; completed 1; "
        "0 0 31457280");
    /* A mark lasts for one life of the block. */
    assert_play("malloc 1 30M 0;record 1 1;free 1;complete 1;malloc 2 30M 0;free 2",
                "0 0 31457280; recorded; waiting; completed 1; 0 0 31457280; freed");
    /* Waiting blocks do not merge. */
    assert_play("malloc 1 9M 0;malloc 2 5M 0;record 2 1;free 1;free 2;malloc 3 12M 0",
                "0 0 9437184; 0 9437184 5242880; recorded; freed; waiting; 1 0 12582912");
}

static void test_retry(void) {
    assert_report("set memory 100M;malloc 1 60M 0;record 1 2;free 1;malloc 2 50M 1",
                  "cudaMalloc 62914560 = 0; 0 0 62914560; recorded; eventRecord 2 1; waiting; "
                  "cudaMalloc 52428800 failed; eventSynchronize 2 1 waited; done 1; cudaFree 0; "
                  "cudaMalloc 52428800 = 1; 1 0 52428800");
    /* A piece in use keeps its segment. */
    assert_play(
        "set memory 30M;malloc 1 5M 0;malloc 2 5M 0;free 1;malloc 3 20M 1;free 2;malloc 4 20M 1",
        "0 0 5242880; 0 5242880 5242880; freed; OOM; freed; 1 0 20971520");
}

static void test_fraction(void) {
    /* The limit is not asked of the device. */
    assert_report("set memory 100M;set fraction 0.5;malloc 1 50M 0;malloc 2 512 0",
                  "cudaMalloc 52428800 = 0; 0 0 52428800; OOM");
}

static void test_max_split(void) {
    const char *conf = "set conf max_split_size_mb:64;";
    g_autofree char *oversize = g_strconcat(
        conf, "malloc 1 100M 0;free 1;malloc 2 60M 0;malloc 3 79M 0;malloc 4 81M 0", NULL);
    assert_play(oversize, "0 0 104857600; freed; 1 0 62914560; 2 0 83886080; 0 0 104857600");
    g_autofree char *release =
        g_strconcat("set memory 200M;", conf,
                    "malloc 1 100M 0;malloc 2 70M 0;free 1;free 2;malloc 3 165M 0", NULL);
    assert_report(release, "cudaMalloc 104857600 = 0; 0 0 104857600; cudaMalloc 73400320 = 1; "
                           "1 0 73400320; freed; freed; cudaMalloc 174063616 failed; cudaFree 0; "
                           "cudaFree 1; cudaMalloc 174063616 = 2; 2 0 174063616");
}

static void test_garbage(void) {
    /* Above half of the limit of 200 MiB a free segment goes although there is room, and nobody
     * waits. */
    assert_report("set memory 400M;set fraction 0.5;set conf garbage_collection_threshold:0.5;"
                  "malloc 1 60M 0;malloc 2 60M 0;free 1;malloc 3 61M 1;free 2;malloc 4 61M 2",
                  "cudaMalloc 62914560 = 0; 0 0 62914560; cudaMalloc 62914560 = 1; 1 0 62914560; "
                  "freed; cudaFree 0; cudaMalloc 65011712 = 2; 2 0 65011712; freed; cudaFree 1; "
                  "cudaMalloc 65011712 = 3; 3 0 65011712");
}

static void test_expandable(void) {
    const char *conf = "set memory 200M;set conf expandable_segments:True;";
    g_autofree char *grows =
        g_strconcat(conf, "malloc 1 30M 0;free 1;malloc 2 50M 0;malloc 3 5M 0", NULL);
    assert_report(grows, "cuMemAddressReserve 251658240 = 0; cuMemMap 0 0 41943040; 0 0 31457280; "
                         "freed; cuMemMap 0 41943040 20971520; 0 0 52428800; 0 52428800 5242880");
    g_autofree char *shrinks = g_strconcat(
        conf, "malloc 1 60M 0;malloc 2 1048577 0;free 1;empty_cache;free 2;empty_cache", NULL);
    assert_report(shrinks,
                  "cuMemAddressReserve 251658240 = 0; cuMemMap 0 0 62914560; 0 0 62914560; "
                  "cuMemMap 0 62914560 20971520; 0 62914560 1049088; freed; "
                  "streamSynchronize 0 idle; cuMemUnmap 0 0 62914560; emptied; freed; "
                  "streamSynchronize 0 idle; cuMemUnmap 0 62914560 20971520; "
                  "cuMemAddressFree 0; emptied");
}

static void test_throw(void) {
    const char *conf = "set memory 100M;set conf throw_on_cudamalloc_oom:True;";
    g_autofree char *script = g_strconcat(conf, "malloc 1 60M 0;free 1;malloc 2 70M 0;stats", NULL);
    g_autofree char *answer = play(script, false);
    g_assert_true(g_str_has_prefix(answer, "0 0 62914560; freed; OOM; stats allocated 0 "));
    g_assert_nonnull(strstr(answer, "segments 1 1 retries 0 ooms 0 device_alloc 1 device_free 0"));
}

static void test_statistics(void) {
    /* Allocated falls at the free, active only at the next malloc; requested is what was asked. */
    assert_report(
        "malloc 1 1000 0;record 1 1;reset_peak;free 1;stats;complete 1;malloc 2 2M 0;"
        "stats",
        "cudaMalloc 2097152 = 0; 0 0 1024; recorded; reset; eventRecord 1 1; waiting; "
        "inactive_split_peak 2096128; "
        "stats allocated 0 1024 active 1024 1024 reserved 2097152 2097152 requested 1000 1000 "
        "inactive_split 2096128 segments 1 1 retries 0 ooms 0 device_alloc 1 device_free 0 "
        "sync_all 0; "
        "completed 1; done 1; cudaMalloc 20971520 = 1; 1 0 2097152; "
        "inactive_split_peak 18874368; "
        "stats allocated 2097152 2097152 active 2097152 2097152 reserved 23068672 23068672 "
        "requested 2097152 2097152 inactive_split 18874368 segments 2 2 retries 0 ooms 0 "
        "device_alloc 2 device_free 0 sync_all 0");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/caching/no-bytes-and-too-many", test_no_bytes);
    g_test_add_func("/memory/caching/two-pools", test_pools);
    g_test_add_func("/memory/caching/streams-share-nothing", test_streams_apart);
    g_test_add_func("/memory/caching/best-fit-then-oldest", test_best_fit);
    g_test_add_func("/memory/caching/split-if-worth-it", test_split);
    g_test_add_func("/memory/caching/neighbours-merge", test_merge);
    g_test_add_func("/memory/caching/marked-blocks-wait", test_marks);
    g_test_add_func("/memory/caching/retry-after-release", test_retry);
    g_test_add_func("/memory/caching/fraction-limits", test_fraction);
    g_test_add_func("/memory/caching/max-split-size", test_max_split);
    g_test_add_func("/memory/caching/garbage-goes-by-age", test_garbage);
    g_test_add_func("/memory/caching/expandable-segments", test_expandable);
    g_test_add_func("/memory/caching/throw-on-oom", test_throw);
    g_test_add_func("/memory/caching/statistics", test_statistics);
    return g_test_run();
}
