/* Settings as a trace's header has them: taken apart, looked up, and as options again. */
#include "cli/options/setting.h"

static void pairs(void) {
    g_auto(GStrv) none = cli_settings_split(NULL);
    g_assert_cmpuint(g_strv_length(none), ==, 0);
    g_auto(GStrv) some =
        cli_settings_split("wrap=module=.*mlp  ranks=8 nothing network.loss=kernel");
    const char *const wanted[] = {"wrap",         "module=.*mlp", "ranks", "8",
                                  "network.loss", "kernel",       NULL};
    g_assert_cmpstrv(some, wanted);
    g_assert_cmpstr(cli_settings_value(some, "ranks"), ==, "8");
    g_assert_null(cli_settings_value(some, "8"));
    g_assert_null(cli_settings_value(some, "rank"));
}

static void networks(void) {
    g_assert_cmpstr(cli_setting_of_network("network.loss"), ==, "loss");
    g_assert_cmpstr(cli_setting_of_network("network.loss=kernel"), ==, "loss=kernel");
    g_assert_null(cli_setting_of_network("networks"));
    g_assert_null(cli_setting_of_network("wrap"));
}

static void options(void) {
    g_autofree char *text = cli_settings_as_options("ranks=8 micro_batch=2 network.loss=kernel");
    g_assert_cmpstr(text, ==, "-n 8 --micro-batch 2 --network-key loss=kernel");
    g_autofree char *none = cli_settings_as_options("");
    g_assert_cmpstr(none, ==, "");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/setting/pairs in their order, words that are none left out", pairs);
    g_test_add_func("/cli/setting/a network's is told from a strategy's", networks);
    g_test_add_func("/cli/setting/options", options);
    return g_test_run();
}
