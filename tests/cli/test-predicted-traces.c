/* What a predicted trace holds, and what each command makes of one, also where its play ended
 * early. Takes the path of foreshard as its argument.
 */
#include <string.h>

#include "tests/cli/shell.h"

/* A trace tells its own cluster file from another of the same name. */
static void clusters_of_one_name(void) {
    write_cluster("a100-node.ini", "a100-node", "memory_gb_per_s", "1000");
    expect("predict gpt-toy -n 8 --cluster ./a100-node.ini --trace own.trace", 0, "fits", "");
    expect("diagnose own.trace", 2, "", "predicted on another a100-node");
    expect("diagnose own.trace --cluster ./a100-node.ini", 0, "predicted on a100-node", "");
}

/* What stands at the end of the first line that has the word before it. */
static char *after(const char *text, const char *word) {
    const char *at = strstr(text, word);
    g_assert_nonnull(at);
    return g_strndup(at + strlen(word), strcspn(at + strlen(word), "\n"));
}

/* What a prediction was asked for stands in its trace, and neighbours are asked for it too: the
 * plan as it is takes what predict said. */
static void settings_are_kept(void) {
    static const char *const settings[] = {
        "--nccl-algo tree --nccl-proto ll",
        "--no-sharing",
        "--every-rank --jitter 7 --seed 3 --slow rank=3:1.5 --degrade nvlink=1:0.25 --steps 6",
    };
    g_auto(Result) plain = run("predict gpt2 -n 4 --cluster a100-node --trace plain.trace");
    g_autofree char *usual = after(plain.out, "  step ");
    for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
        g_autofree char *words = g_strdup_printf(
            "predict gpt2 -n 4 --cluster a100-node --trace asked.trace %s", settings[i]);
        g_auto(Result) asked = run(words);
        g_auto(Result) again = run("diagnose asked.trace");
        g_assert_cmpint(asked.status, ==, 0);
        g_assert_cmpint(again.status, ==, 0);
        g_autofree char *step = after(asked.out, "  step ");
        g_assert_cmpstr(step, !=, usual);
        g_autofree char *said = after(again.out, "where this plan takes ");
        step[strcspn(step, " ")] = '\0';
        said[strcspn(said, " ")] = '\0';
        g_assert_cmpstr(step, ==, said);
    }
}

/* A prediction that does not fit is a result: its trace goes up to the wall, and each command that
 * reads it says so. */
static void up_to_the_wall(void) {
    static const char oom[] = "out of memory in step 0, forward of unit root: no room for ";
    expect("predict gpt2-xl -n 2 --sharding none --micro-batch 16 --cluster a100-node --trace "
           "wall.trace",
           0, "fits: NO, out of memory", "");
    expect("predict gpt2-xl -n 2 --sharding none --micro-batch 16 --cluster b200-node --trace "
           "room.trace",
           0, "fits: yes", "");
    expect("plot wall.trace", 0, oom, "");
    expect("plot wall.trace -p lanes", 0, oom, "");
    expect("diagnose wall.trace", 0, oom, "");
    expect("explain oom wall.trace", 0, oom, "");
    expect("explain oom.bytes wall.trace", 0, "activations/saved ", "");
    expect("explain peak_allocated_bytes wall.trace", 0, "the rows end out of memory", "");
    expect("explain oom room.trace", 0, "did not run out of memory", "");
    expect("compare wall.trace room.trace", 0, "\nfirst ends out of memory in step 0, ", "");
    expect("report wall.trace -o wall.html", 0, "", "");
    g_autofree char *page = read_file("wall.html");
    g_assert_nonnull(strstr(page, oom));
}

/* So is one that ends before its first step, of which no figure of a step is known: every command
 * that reads the trace says so, and calls step -1 by its name. */
static void up_to_construction(void) {
    static const char oom[] = "out of memory in construction: no room for ";
    static const struct {
        const char *words, *said;
    } commands[] = {
        {"diagnose", "allocated 76.64 GiB, in construction, setup of unit root"},
        {"diagnose", "\n3. jitter: no steady step was recorded\n4. compute lane: no steady step "
                     "was recorded\n5. allocator: no retries"},
        {"explain step_ms", "step_ms: no steady step was recorded\n"},
        {"explain mfu", "mfu: no steady step with a kernel was recorded\n"},
        {"explain compute_ms", "compute_ms: no steady step was recorded\n"},
        {"explain bound_by", "the compute lane's time: no steady step was recorded\nbound_by = "},
        {"explain all_reduce", "all_reduce: no steady step was recorded\n"},
        {"explain linear", "\n     not recorded  linear  "},
        {"explain root", "\n     not recorded  linear  "},
        {"explain peak_allocated_bytes", " ms (host time), in construction, in setup of"},
        {"explain peak_by_category", "of allocated memory, in construction, in setup of unit root"},
        {"explain oom", oom},
        {"plot", oom},
        {"plot", "host time since the start of construction (ms)"},
        {"plot -p lanes", " time since the start of construction (ms)"},
        {"compare wall.trace", "peak allocated, first: construction, setup of unit root, "},
        {"export --chrome -o -", "\"construction\""},
    };
    expect("predict gpt-175b -n 8 --sharding none --cluster a100-node --trace wall.trace", 0,
           "fits: NO, out of memory during construction", "");
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autofree char *words = g_strconcat(commands[i].words, " wall.trace", NULL);
        g_auto(Result) result = run(words);
        g_test_message("%s", words);
        g_assert_cmpint(result.status, ==, 0);
        g_autofree char *whole = unbroken(result.out);
        g_assert_true(strstr(result.out, commands[i].said) || strstr(whole, commands[i].said));
        g_assert_null(strstr(result.out, "nan"));
        g_assert_null(strstr(result.out, "step -1"));
    }
    expect("plot -p jitter wall.trace", 2, "", "no rows to draw in construction");
    expect("report wall.trace -o wall.html", 0, "", "");
    g_autofree char *page = read_file("wall.html");
    g_assert_nonnull(strstr(page, oom));
    g_assert_nonnull(strstr(page, ">host time since the start of construction (ms)<"));
    g_assert_null(strstr(page, "nan %"));
    g_assert_null(strstr(page, "step -1"));
}

/* Step 0 began, and its first allocation found no room: memory has no row of it, the lanes have. */
static void up_to_a_first_gather(void) {
    expect("predict gpt-175b -n 512 --wrap whole --cluster a100-roce --trace first.trace", 0,
           "in step 0, forward, unit root (section first, instruction 4)", "");
    expect("plot first.trace", 0, "host time since the start of construction (ms)", "");
    expect("plot first.trace -o first.png", 0, "", "");
    expect("report first.trace -o first.html", 0, "", "");
    g_autofree char *page = read_file("first.html");
    g_assert_nonnull(strstr(page, ">host time since the start of construction (ms)<"));
}

int main(int argc, char **argv) {
    shell_init(&argc, &argv);
    g_test_add_func("/cli/predicted-traces/clusters of one name", clusters_of_one_name);
    g_test_add_func("/cli/predicted-traces/settings are kept", settings_are_kept);
    g_test_add_func("/cli/predicted-traces/up to the wall", up_to_the_wall);
    g_test_add_func("/cli/predicted-traces/up to construction", up_to_construction);
    g_test_add_func("/cli/predicted-traces/up to a first gather", up_to_a_first_gather);
    return shell_finish(g_test_run());
}
