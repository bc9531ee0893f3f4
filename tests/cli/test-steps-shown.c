/* Which steps a picture shows, unless it is told. */
#include "cli/plot/pictures.h"
#include "trace/ended.h"

static Trace *of_steps(int32_t n) {
    Trace *trace = trace_new();
    for (int32_t step = 0; step < n; step++) {
        TraceMemoryRow row = {.step = step};
        trace_add_memory(trace, &row);
    }
    return trace;
}

static void expect(PlotPicture picture, Trace *trace, int32_t first, int32_t last) {
    PlotPanel panel = {trace, 0};
    PlotOptions options = {0};
    cli_choose_steps(picture, &panel, 1, &options);
    g_assert_cmpint(options.first_step, ==, first);
    g_assert_cmpint(options.last_step, ==, last);
    trace_free(trace);
}

static void of_few_all(void) {
    expect(PLOT_PICTURE_MEMORY, of_steps(1), 0, 0);
    expect(PLOT_PICTURE_MEMORY, of_steps(10), 0, 9);
}

static void of_many_the_first(void) {
    expect(PLOT_PICTURE_MEMORY, of_steps(11), 0, 3);
    expect(PLOT_PICTURE_MEMORY, of_steps(200), 0, 3);
}

static void of_many_the_end_if_it_ran_out(void) {
    Trace *trace = of_steps(20);
    TraceOom oom = {.step = 19, .buffer = "y"};
    trace_set_oom(trace, &oom);
    expect(PLOT_PICTURE_MEMORY, trace, 16, 19);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/steps-shown/of few all", of_few_all);
    g_test_add_func("/cli/steps-shown/of many the first", of_many_the_first);
    g_test_add_func("/cli/steps-shown/of many the end if it ran out",
                    of_many_the_end_if_it_ran_out);
    return g_test_run();
}
