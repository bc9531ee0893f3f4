/* What offloaded training keeps on the host: the bytes that PyTorch does, and the numbers of a run
 * that keeps all on the device. Takes the path of foreshard as its argument; the environment says
 * where the recordings are.
 */
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>

#include "tests/exec/runs.h"

enum {
    STEPS = 20
};

/* The last line's host_bytes: parameters, gradients and the optimizer's state together. */
static uint64_t recorded(const char *name) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_RECORDINGS"), name, NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, &error));
    const char *last = strrchr(g_strchomp(text), '\n');
    g_autoptr(JsonNode) node = json_from_string(last, &error);
    g_assert_no_error(error);
    JsonObject *summary = json_object_get_object_member(json_node_get_object(node), "summary");
    JsonObject *host = json_object_get_object_member(summary, "host_bytes");
    return (uint64_t)(json_object_get_int_member(host, "parameters") +
                      json_object_get_int_member(host, "gradients") +
                      json_object_get_int_member(host, "optimizer"));
}

static void holds_what_pytorch_does(gconstpointer flavour) {
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("foreshard-on-host-XXXXXX", &error);
    g_assert_no_error(error);
    g_autofree char *path = g_build_filename(folder, "m.trace", NULL);
    g_autofree char *recording =
        g_strdup_printf("gpt-%s-offload-model-bf16.jsonl", (const char *)flavour);
    test_run_ok("run gpt-toy -n 4 --micro-batch 1 --flavour %s --model-dtype bf16 --offload params "
                "--steps 3 --trace %s",
                (const char *)flavour, path);
    g_autoptr(Trace) trace = test_run_take_trace(path);
    g_rmdir(folder);
    const char *host = trace_get(trace, "host_bytes");
    g_assert_nonnull(host);
    g_test_message("%s bytes on the host", host);
    g_assert_cmpuint(g_ascii_strtoull(host, NULL, 10), ==, recorded(recording));
}

/* Rounded where the device would round: after each step, not only when they come to it. */
static void learns_as_on_the_device(gconstpointer words) {
    static const char *const places[] = {"none", "params", "optimizer"};
    double losses[G_N_ELEMENTS(places)][STEPS];
    for (unsigned i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *run =
            g_strdup_printf("gpt-toy -n 2 --optimizer-kernel fused %s --offload %s",
                            (const char *)words, places[i]);
        test_run_losses(run, losses[i], STEPS);
    }
    for (unsigned step = 0; step < STEPS; step++) {
        g_assert_cmpfloat(losses[1][step], ==, losses[0][step]);
        g_assert_cmpfloat(losses[2][step], ==, losses[0][step]);
    }
    g_assert_cmpfloat(losses[0][STEPS - 1], <, losses[0][0]);
}

int main(int argc, char **argv) {
    static const char *const learns[] = {
        "--model-dtype bf16",
        "--model-dtype fp16 --flavour fsdp1 --optimizer sgd --lr 0.05",
        "--model-dtype bf16 --flavour fsdp1 --use-orig-params yes --optimizer momentum --lr 0.05",
        "--model-dtype bf16 --flavour fsdp1 --accumulate 2 --zero-grad keep",
    };
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(argc, ==, 2);
    test_run_program = argv[1];
    g_test_add_data_func("/exec/on-host/bytes/fsdp1", "fsdp1", holds_what_pytorch_does);
    g_test_add_data_func("/exec/on-host/bytes/fsdp2", "fsdp2", holds_what_pytorch_does);
    for (unsigned i = 0; i < G_N_ELEMENTS(learns); i++) {
        g_autofree char *name = g_strdup_printf("/exec/on-host/numbers/%s", learns[i]);
        g_test_add_data_func(name, learns[i], learns_as_on_the_device);
    }
    return g_test_run();
}
