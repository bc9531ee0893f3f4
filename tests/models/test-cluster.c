/* Cluster files: what is read, and what is refused with which words. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "models/cluster.h"
#include "tests/models/clusters.h"

static char *replaced(const char *text, const char *from, const char *to) {
    const char *place = strstr(text, from);
    g_assert_nonnull(place);
    g_autofree char *head = g_strndup(text, (gsize)(place - text));
    return g_strconcat(head, to, place + strlen(from), NULL);
}

static unsigned line_of(const char *text, const char *words) {
    unsigned line = 1;
    for (const char *c = text, *end = strstr(text, words); c < end; c++) {
        line += *c == '\n';
    }
    return line;
}

/* Replacing from by to in the A100's file is refused at the line of at (in the new text), with
 * these words in the message. */
static void assert_refused(const char *from, const char *to, const char *at, const char *words) {
    g_autofree char *good = clusters_text("a100-node.ini");
    g_autofree char *bad = replaced(good, from, to);
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) cluster = model_cluster_read(bad, strlen(bad), "bad.ini", &error);
    g_assert_null(cluster);
    g_assert_nonnull(error);
    g_autofree char *place = g_strdup_printf("bad.ini:%u: ", line_of(bad, at));
    if (!g_str_has_prefix(error->message, place) || !strstr(error->message, words)) {
        g_test_message("expected '%s...%s', got '%s'", place, words, error->message);
        g_test_fail();
    }
}

static void test_files_are_read(void) {
    const char *names[] = {"a100-node.ini", "this-machine.ini"};
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(clusters_folder(), names[i], NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelCluster) cluster = model_cluster_read_file(path, &error);
        g_assert_no_error(error);
        g_assert_cmpstr(cluster->name, ==, i ? "this-machine" : "a100-node");
        g_assert_cmpint(cluster->device_kind, ==, i ? MODEL_DEVICE_CPU : MODEL_DEVICE_GPU);
    }
}

static void test_numbers(void) {
    g_autofree char *text = clusters_text("a100-node.ini");
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) cluster = model_cluster_read(text, strlen(text), "a.ini", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(model_cluster_ranks(cluster), ==, 8);
    g_assert_cmpfloat(model_cluster_peak_flops(cluster, PLAN_BF16), ==, 312e12);
    g_assert_cmpfloat(model_cluster_peak_flops(cluster, PLAN_INT64), ==, 0);
    g_assert_cmpuint(cluster->device_memory_bytes, ==, 84986626048);
    g_assert_cmpuint(model_cluster_allocator_bytes(cluster), ==,
                     cluster->device_memory_bytes - cluster->device_outside_allocator_bytes -
                         17039360);
    /* Not in the file, so as bus_gb_per_s, whoever changes that. */
    g_assert_cmpfloat(model_cluster_bus_gb_per_s(cluster, true), ==, 218);
    cluster->intra_node_bus_gb_per_s = 100;
    g_assert_cmpfloat(model_cluster_bus_gb_per_s(cluster, true), ==, 100);
    cluster->intra_node_reduce_bus_gb_per_s = 90;
    g_assert_cmpfloat(model_cluster_bus_gb_per_s(cluster, true), ==, 90);
    g_assert_cmpfloat(model_cluster_bus_gb_per_s(cluster, false), ==, 100);
}

/* Two of what PyTorch's test_cublas_workspace_explicit_allocation expects of one. */
static void test_workspaces(void) {
    static const struct {
        uint32_t capability;
        uint64_t bytes;
    } known[] = {{0, 0}, {80, 17039360}, {89, 17039360}, {90, 67108864}, {100, 67108864}};
    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        ModelCluster cluster = {.device_compute_capability = known[i].capability};
        g_assert_cmpuint(model_cluster_workspace_bytes(&cluster), ==, known[i].bytes);
    }
}

static void test_refusals(void) {
    assert_refused("nodes = 1", "nodes = 0", "nodes = 0",
                   "a whole number from 1 to 1000000 (nodes)");
    assert_refused("memory_efficiency = 0.85", "memory_efficiency = 85", "memory_efficiency = 85",
                   "out of bounds");
    assert_refused("matmul_efficiency = 0.85", "matmul_efficiency = 1.3", "matmul_efficiency = 1.3",
                   "out of bounds");
    assert_refused("launch_us = 9", "launch_us = -9", "launch_us = -9", "out of bounds");
    assert_refused("memory_bytes = 84986626048", "memory_bytes = -1", "memory_bytes = -1",
                   "no whole number");
    assert_refused("memory_bytes = 84986626048", "memory_bytes = 80GB", "memory_bytes = 80GB",
                   "no whole number");
    assert_refused("bus_gb_per_s = 218", "bus_gb_per_s = 0", "bus_gb_per_s = 0", "out of bounds");
    assert_refused("bus_gb_per_s = 218", "bus_gb_per_s = nan", "bus_gb_per_s = nan", "no number");
    assert_refused("bus_gb_per_s = 218", "bus_gb_per_s = fast", "bus_gb_per_s = fast", "no number");
    assert_refused("kind = gpu", "kind = tpu", "kind = tpu", "give gpu or cpu");
    assert_refused("kind = gpu\n", "", "model =", "lacks the key kind");
    assert_refused("free_us = 0.5", "free_ms = 0.5", "free_ms", "unknown key 'free_ms'");
    assert_refused("[topology]", "[topologie]", "nodes = 1",
                   "'nodes' stands in [topologie], and a cluster's file has no such section");
    assert_refused("record_us = 1\n", "", "queue_depth", "lacks the key record_us");
    assert_refused("launch_us = 9", "launch_us = 9\nlaunch_us = 6", "launch_us = 6", "twice");
    assert_refused("[topology]", "[kernels]\ngelu = 1\n[topology]", "gelu = 1", "no op 'gelu'");
    assert_refused("[topology]", "[kernels]\nsilu = 0\n[topology]", "silu = 0", "give GB/s");
    assert_refused("compute_capability = 80", "compute_capability = 8", "compute_capability = 8",
                   "compute_capability 8 is of GPUs before Volta, which are not known; PyTorch's");
    assert_refused("compute_capability = 80", "compute_capability = 69", "compute_capability = 69",
                   "before Volta");
    assert_refused("nccl_channels = 12", "nccl_channels = 0", "nccl_channels = 0", "more than 0");
    assert_refused("nccl_channel_gb_per_s = 20", "nccl_channel_gb_per_s = 0",
                   "nccl_channel_gb_per_s = 0", "more than 0");
    assert_refused("nccl_channel_gb_per_s = 20", "nccl_channel_gb_per_s = 1e-9",
                   "nccl_channel_gb_per_s = 1e-9", "give 0, or a number from 1e-06 to ");
    assert_refused("nodes = 1\n", "nodes = 1000001\n", "nodes = 1000001",
                   "give a whole number from 1 to 1000000 (");
    assert_refused("outside_allocator_bytes = 1342177280", "outside_allocator_bytes = 90000000000",
                   "outside_allocator_bytes = 9", "leaves nothing");
}

/* How many of a GPU's rings its fellows and it have, of those a whole node has: "6/18" for two of
 * four that are all joined by six links. The cube mesh's are as NCCL was seen to use them. */
static void test_links_share(void) {
    static const struct {
        const char *file;
        uint32_t gpus;
        double share;
    } cases[] = {
        {"a100-node.ini", 0x03, 1},
        {"a100-perlmutter.ini", 0x03, 1 / 3.0},
        {"a100-perlmutter.ini", 0x0b, 2 / 3.0},
        {"a100-perlmutter.ini", 0x0f, 1},
        {"a100-perlmutter.ini", 0x04, 1},
        {"v100-dgx.ini", 0x03, 1 / 6.0},
        {"v100-dgx.ini", 0x09, 2 / 6.0},
        {"v100-dgx.ini", 0x07, 2 / 6.0},
        {"v100-dgx.ini", 0x0f, 4 / 6.0},
        {"v100-dgx.ini", 0x1f, 2 / 6.0},
        {"v100-dgx.ini", 0x3f, 2 / 6.0},
        {"v100-dgx.ini", 0x7f, 4 / 6.0},
        {"v100-dgx.ini", 0xff, 1},
        {"v100-dgx.ini", 0x21, 0},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_build_filename(clusters_folder(), cases[i].file, NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelCluster) cluster = model_cluster_read_file(path, &error);
        g_assert_no_error(error);
        double off = model_cluster_links_share(cluster, cases[i].gpus) - cases[i].share;
        g_test_message("%s, GPUs %02x", cases[i].file, cases[i].gpus);
        g_assert_cmpfloat(off < 0 ? -off : off, <, 1e-12);
    }
}

/* Several nodes need a network; the message stands where it would be added, or names the file. */
static void test_network_is_needed(void) {
    assert_refused("nodes = 1\n", "nodes = 2\n[inter_node]\nstep_latency_us = 14\n[topology]\n",
                   "step_latency_us = 14", "lacks the key nic_gb_per_s");
    g_autofree char *good = clusters_text("a100-node.ini");
    g_autofree char *bad = replaced(good, "nodes = 1\n", "nodes = 2\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) cluster = model_cluster_read(bad, strlen(bad), "bad.ini", &error);
    g_assert_null(cluster);
    g_assert_nonnull(strstr(error->message, "bad.ini: section [inter_node] lacks"));
}

/* ---- nodes of several kinds ----------------------------------------------------------------- */

/* The 64 nodes of a100-roce.ini, then these lines; file is where `like` looks beside. */
static ModelCluster *read_with(const char *lines, char **ret_text, GError **error) {
    g_autofree char *text = clusters_text("a100-roce.ini");
    g_autofree char *file = g_build_filename(clusters_folder(), "mixed.ini", NULL);
    *ret_text = g_strconcat(text, lines, NULL);
    return model_cluster_read(*ret_text, strlen(*ret_text), file, error);
}

static void test_kinds(void) {
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) cluster =
        read_with("[nodes old]\nat = 2-3, 7\ndevice.sms = 70\nlike = v100-dgx.ini\n"
                  "inter_node.nic_gb_per_s = 12.5\n[nodes tired]\nat = 0\n"
                  "device.matmul_bf16_tflops = 100\n",
                  &text, &error);
    g_assert_no_error(error);
    g_autoptr(ModelCluster) copy = model_cluster_copy(cluster);
    const ModelCluster *old = model_cluster_node(copy, 7), *tired = model_cluster_node(copy, 0);
    g_assert_true(model_cluster_node(copy, 1) == copy);
    g_assert_true(model_cluster_node(copy, 64) == copy);
    g_assert_true(model_cluster_node(copy, 2) == old && model_cluster_node(copy, 3) == old);
    g_assert_cmpstr(old->name, ==, "old");
    g_assert_cmpstr(old->model, ==, "V100-SXM2-32GB");
    g_assert_cmpfloat(old->device_matmul_bf16_tflops, ==, 0); /* as V100 */
    g_assert_cmpuint(old->device_memory_bytes, ==, 34080565493);
    g_assert_cmpuint(old->device_sms, ==, 70); /* but for this */
    g_assert_cmpfloat(old->inter_node_nic_gb_per_s, ==, 12.5);
    g_assert_cmpuint(old->topology_nodes, ==, 64); /* what lies between is the cluster's */
    g_assert_cmpfloat(old->collectives_far_extra_us, ==, cluster->collectives_far_extra_us);
    g_assert_cmpstr(tired->model, ==, "A100-SXM4-80GB");
    g_assert_cmpfloat(tired->device_matmul_bf16_tflops, ==, 100);
    model_cluster_force_nccl(copy, "ring", NULL);
    g_assert_cmpstr(old->nccl_algo, ==, "ring");
}

/* A kind says one number, and what is as that one changes with it. */
static void test_kind_as_another(void) {
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) cluster =
        read_with("[collectives]\ncore_gb_per_s = 5\n[nodes a]\nat = 1\n"
                  "device.memory_efficiency = 0.5\ndevice.attention_efficiency = 0.25\n"
                  "device.attention_backward_efficiency = 0\nintra_node.bus_gb_per_s = 7\n",
                  &text, &error);
    g_assert_no_error(error);
    const ModelCluster *kind = model_cluster_node(cluster, 1);
    g_assert_cmpfloat(model_cluster_reduction_efficiency(cluster), ==, 0.85);
    g_assert_cmpfloat(model_cluster_reduction_efficiency(kind), ==, 0.5);
    g_assert_cmpfloat(model_cluster_attention_efficiency(cluster, true), ==, 0.526);
    g_assert_cmpfloat(model_cluster_attention_efficiency(kind, true), ==, 0.25);
    g_assert_cmpfloat(model_cluster_bus_gb_per_s(kind, true), ==, 7);
    g_assert_cmpfloat(model_cluster_core_gb_per_s(kind, true), ==, 5);
}

static void assert_kind_refused(const char *lines, const char *at, const char *words) {
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) cluster = read_with(lines, &text, &error);
    g_assert_null(cluster);
    g_autofree char *place = g_strdup_printf("mixed.ini:%u: ", line_of(text, at));
    if (!strstr(error->message, place) || !strstr(error->message, words)) {
        g_test_message("expected '%s...%s', got '%s'", place, words, error->message);
        g_test_fail();
    }
}

static void test_kinds_refused(void) {
    assert_kind_refused("[nodes a]\nat = 64\n", "at = 64", "there is no node 64");
    assert_kind_refused("[nodes a]\nat = last\n", "at = last", "names no nodes");
    assert_kind_refused("[nodes a]\nat = 3-1\n", "at = 3-1", "names no nodes");
    assert_kind_refused("[nodes a]\nat = 1\n[nodes b]\nat = 0-1\n", "at = 0-1", "of two kinds");
    assert_kind_refused("[nodes a]\ndevice.sms = 80\n", "device.sms", "lacks the key at");
    assert_kind_refused("[nodes a]\nat = 1\ndevice.sms = -1\n", "device.sms", "no whole number");
    assert_kind_refused("[nodes a]\nat = 1\nsms = 80\n", "sms = 80", "no number 'sms'");
    assert_kind_refused("[nodes a]\nat = 1\ntopology.nodes = 2\n", "topology.nodes",
                        "is one for all nodes");
    assert_kind_refused("[nodes a]\nat = 1\ndevice.memory_bytes = 1000\n", "device.memory_bytes",
                        "leaves nothing");
    assert_kind_refused("[nodes a]\nat = 1\nlike = nowhere.ini\n", "like = nowhere",
                        "lies beside this one");
    assert_kind_refused("[nodes a]\nat = 1\nlike = two-laptops.ini\n"
                        "device.compute_capability = 80\nhost.launch_us = 7\n",
                        "device.compute_capability = 80\nhost", "nccl_channels");
    assert_kind_refused("[nodes a]\nat = 1\nintra_node.nccl_channels = 0\n",
                        "intra_node.nccl_channels = 0", "more than 0");
    assert_kind_refused("[inter_node]\noversubscription = 0.5\n", "oversubscription",
                        "out of bounds");
    assert_kind_refused("[jitter]\nkernel_percent = -5\n", "kernel_percent", "out of bounds");
}

/* In the file of a node whose eight GPUs a switch joins. */
static void test_links_refused(void) {
    static const char *const bad[] = {"0-1",    "0:6",    "0-1:x",   "1-1:6",  "0-8:6",
                                      "0-1:0",  "0-1:65", "0-1:6, ", "a-b:6",  "0-1-2:6",
                                      "0-1:6;", "",       "-1-0:6",  "0-1:6.5"};
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *line = g_strdup_printf("nccl_channels = 12\nnvlinks = %s", bad[i]);
        assert_refused("nccl_channels = 12", line, "nvlinks", "");
    }
    assert_refused("nccl_channels = 12", "nccl_channels = 12\nnvlinks = 0-1:6, 1-0:6", "nvlinks",
                   "twice");
    assert_refused("nccl_channels = 12", "nccl_channels = 12\nnvlinks = 0-1:6", "nvlinks",
                   "as pcie_gb_per_s");
    assert_refused("nccl_channels = 12",
                   "nccl_channels = 12\nnvlinks = 0-1:6\npcie_gb_per_s = 12\nnvls_heads = 8",
                   "nvlinks", "a switch's");
    assert_refused("gpus_per_node = 8",
                   "gpus_per_node = 4\n[intra_node]\nnvlinks = 0-7:6\npcie_gb_per_s = 12",
                   "nvlinks", "name GPU 7");
    assert_refused("gpus_per_node = 8",
                   "gpus_per_node = 33\n[intra_node]\nnvlinks = 0-7:6\npcie_gb_per_s = 12",
                   "nvlinks", "nodes of up to 32 GPUs");
    assert_kind_refused("[nodes a]\nat = 1\nlike = v100-dgx.ini\nintra_node.nvls_heads = 8\n",
                        "intra_node.nvls_heads", "a switch's");
}

static void test_no_file(void) {
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) cluster = model_cluster_read_file("no/such/cluster.ini", &error);
    g_assert_null(cluster);
    g_assert_nonnull(strstr(error->message, "no/such/cluster.ini"));
}

/* Any mutation of what lies from a place on is read or refused, never worse; this runs under the
 * sanitizers too. */
static void mutate_from(const char *text, gsize first, const char *file) {
    gsize length = strlen(text);
    g_autoptr(GRand) dice = g_rand_new_with_seed(7);
    for (int round = 0; round < 400; round++) {
        g_autofree char *copy = g_strndup(text, length);
        for (int i = 0; i < 4; i++) {
            copy[g_rand_int_range(dice, (gint32)first, (gint32)length)] =
                (char)g_rand_int_range(dice, 1, 128);
        }
        gsize cut = (gsize)g_rand_int_range(dice, (gint32)first, (gint32)length + 1);
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelCluster) cluster =
            model_cluster_read(copy, round % 2 ? cut : length, file, &error);
        g_assert_true((cluster == NULL) == (error != NULL));
    }
}

static void test_mutations(void) {
    g_autofree char *text = clusters_text("a100-node.ini");
    mutate_from(text, 0, "mutant.ini");
    g_autofree char *roce = clusters_text("a100-roce.ini");
    g_autofree char *file = g_build_filename(clusters_folder(), "mutant.ini", NULL);
    g_autofree char *mixed =
        g_strconcat(roce,
                    "[nodes a]\nat = 1-2, 5\nlike = v100-dgx.ini\ndevice.sms = 80\n"
                    "[nodes b]\nat = 0\nhost.launch_us = 7\n",
                    NULL);
    mutate_from(mixed, strlen(roce), file);
}

int main(int argc, char **argv) {
    clusters_init(&argc, &argv);
    g_test_add_func("/models/cluster/links refused", test_links_refused);
    g_test_add_func("/models/cluster/links share", test_links_share);
    g_test_add_func("/models/cluster/files_are_read", test_files_are_read);
    g_test_add_func("/models/cluster/numbers", test_numbers);
    g_test_add_func("/models/cluster/workspaces", test_workspaces);
    g_test_add_func("/models/cluster/refusals", test_refusals);
    g_test_add_func("/models/cluster/network_is_needed", test_network_is_needed);
    g_test_add_func("/models/cluster/no_file", test_no_file);
    g_test_add_func("/models/cluster/mutations", test_mutations);
    g_test_add_func("/models/cluster/nodes of several kinds", test_kinds);
    g_test_add_func("/models/cluster/kinds refused", test_kinds_refused);
    g_test_add_func("/models/cluster/kinds: as another key", test_kind_as_another);
    return g_test_run();
}
