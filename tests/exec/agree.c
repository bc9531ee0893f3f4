#include "tests/exec/agree.h"

#include <math.h>

static char *folder;

void agree_begin(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 2);
    test_run_program = argv[1];
    folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
}

int agree_end(void) {
    int status = g_test_run();
    test_run_remove_folder(folder);
    g_free(folder);
    return status;
}

void agree_losses(const char *words, double *losses, unsigned n) {
    g_autofree char *plan = g_build_filename(folder, "x.plan", NULL);
    test_run_ok("plan %s -o %s", words, plan);
    test_run_bind(plan);
    test_run_losses(plan, losses, n);
    test_run_forks = false;
}

static void losses_agree(gconstpointer data) {
    enum {
        STEPS = 8
    };
    const AgreeFamily *family = data;
    const char *const *runs = family->runs;
    double expected[STEPS], losses[STEPS];
    for (unsigned i = 0; runs[i]; i++) {
        g_autofree char *words = g_strconcat(family->network, " ", runs[i], NULL);
        agree_losses(words, i ? losses : expected, STEPS);
        double worst = 0;
        for (unsigned step = 0; step < STEPS && i; step++) {
            worst = MAX(worst, fabs(losses[step] / expected[step] - 1));
        }
        g_test_message("%s: losses differ by at most %.2g relative", words, worst);
        g_assert_cmpfloat(worst, <=, 4e-7);
    }
    g_assert_cmpfloat(expected[STEPS - 1], <, expected[0]);
}

void agree_add(const char *tests, const AgreeFamily *families, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        g_autofree char *name = g_strconcat(tests, "/losses agree ", families[i].name, NULL);
        g_test_add_data_func(name, &families[i], losses_agree);
    }
}
