/* Networks: exact parameter counts, and messages that name file, line and remedy. */
#include "models/network.h"

#include <string.h>

static uint64_t parameters_of(const char *text) {
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", &error);
    g_assert_no_error(error);
    g_autoptr(PlanGraph) graph = model_network_emit(network, 1, 0, PLAN_FP32, &error);
    g_assert_no_error(error);
    uint64_t total = 0;
    for (uint32_t i = 0; i < graph->parameters->len; i++) {
        total += plan_graph_at(graph->parameters, PlanGraphParameter, i)->elements;
    }
    return total;
}

/* GPT-2 124M as published; minGPT-175B as real PyTorch counts it (tests/oracle, 96 layers). */
static void counts(void) {
    g_assert_cmpuint(parameters_of("[network]\nfamily=gpt\nlayers=12\nwidth=768\nheads=12\n"
                                   "vocab=50257\nseq=1024\ntied=yes\n"),
                     ==, 124439808);
    g_assert_cmpuint(parameters_of("[network]\nfamily=gpt\nlayers=96\nwidth=12288\nheads=96\n"
                                   "vocab=50000\nseq=2048\n"),
                     ==, 175215501312);
    g_assert_cmpuint(parameters_of("[network]\nfamily=mlp\nlayers=3\nwidth=64\nseq=1\n"), ==,
                     3 * (64 * 64 + 64));
}

static void names(void) {
    const char *text = "[network]\nfamily=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\n";
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
    g_autoptr(PlanGraph) graph = model_network_emit(network, 1, 0, PLAN_FP32, NULL);
    static const char *const expected[] = {
        "wte.weight",
        "wpe.weight",
        "layers.0.ln_1.weight",
        "layers.0.ln_1.bias",
        "layers.0.attn.qkv.weight",
        "layers.0.attn.qkv.bias",
        "layers.0.attn.proj.weight",
        "layers.0.attn.proj.bias",
        "layers.0.ln_2.weight",
        "layers.0.ln_2.bias",
        "layers.0.mlp.up.weight",
        "layers.0.mlp.up.bias",
        "layers.0.mlp.down.weight",
        "layers.0.mlp.down.bias",
        "ln_f.weight",
        "ln_f.bias",
        "head.weight",
    };
    g_assert_cmpuint(graph->parameters->len, ==, G_N_ELEMENTS(expected));
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_assert_cmpstr(plan_graph_at(graph->parameters, PlanGraphParameter, i)->name, ==,
                        expected[i]);
    }
}

static void bad_files(void) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"[network]\nlayers=2\n", "n.ini: [network] has no 'family'"},
        {"[network]\nfamily=gtp\n", "n.ini:2: unknown family 'gtp'; it is one of gpt, mlp"},
        {"[network]\nfamily=mlp\nlayers=2\nwidth=8\n", "n.ini: [network] lacks 'seq'"},
        {"[network]\nfamily=mlp\nlayers=0\nwidth=8\nseq=1\n", "n.ini:3: layers must be"},
        {"[network]\nfamily=mlp\nlayers=2\nwidth=8\nseq=1\nheads=2\n",
         "n.ini:6: family mlp has no key 'heads'"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=3\nvocab=4\nseq=4\n",
         "n.ini:5: width 8 does not divide by 3 heads"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\ntied=maybe\n",
         "n.ini:8: tied must be yes or no"},
        {"[strategy]\nranks=2\n", "n.ini: [network] has no 'family'"},
        {"family=gpt\n", "n.ini: [network] has no 'family'"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network =
            model_network_read(cases[i].text, strlen(cases[i].text), "n.ini", &error);
        g_assert_null(network);
        g_assert_nonnull(error);
        if (!g_str_has_prefix(error->message, cases[i].expected)) {
            g_test_message("expected '%s', got '%s'", cases[i].expected, error->message);
            g_test_fail();
        }
    }
}

static void too_long(void) {
    const char *text = "[network]\nfamily=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\n";
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(PlanGraph) graph = model_network_emit(network, 1, 5, PLAN_FP32, &error);
    g_assert_null(graph);
    g_assert_true(g_str_has_prefix(error->message, "seq 5 is longer than the 4 positions"));
}

static void mutated(void) {
    static const char text[] =
        "[network]\nfamily = gpt\nlayers = 1\nwidth = 8\nheads = 2\nvocab = 4\nseq = 4\n";
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    unsigned n_refused = 0;
    for (unsigned i = 0; i < 2000; i++) {
        char copy[sizeof text];
        memcpy(copy, text, sizeof text);
        gsize length = (gsize)g_rand_int_range(rand, 1, sizeof text);
        copy[g_rand_int_range(rand, 0, (gint32)length)] = (char)g_rand_int_range(rand, 0, 256);
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = model_network_read(copy, length, "n.ini", &error);
        g_assert_true((network == NULL) == (error != NULL));
        n_refused += network == NULL;
    }
    g_assert_cmpuint(n_refused, >, 1000);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/models/network/parameter counts are exact", counts);
    g_test_add_func("/models/network/names are PyTorch's", names);
    g_test_add_func("/models/network/bad files name line and remedy", bad_files);
    g_test_add_func("/models/network/too long a sequence", too_long);
    g_test_add_func("/models/network/mutations end in a message", mutated);
    return g_test_run();
}
