/* exec/cuda/comm/nccl.c over a stand-in for NCCL (nccl-stand-in.h): what reaches NCCL is looked at:
 * counts, places, types, colors.
 */
#include <string.h>

#include "exec/error.h"
#include "plan/mesh.h"
#include "tests/exec/nccl-ranks.h"

static void test_axes(gconstpointer says_success) {
    nccl.split_says_success = says_success != NULL;
    nccl.slots[0] = nccl.slots[1] = 7, nccl.slots[2] = 8, nccl.slots[3] = 9;
    nccl_another_machine = true;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ExecCudaComm comm = {0};
        GError *error = NULL;
        g_assert_true(nccl_open_as(rank, rank < 2 ? RANKS : 1, &comm, &error));
        g_assert_no_error(error);
        /* Those on one GPU: told apart, and said. */
        g_assert_cmpstr(g_getenv("NCCL_HOSTID"), ==,
                        rank == 0   ? "foreshard-0"
                        : rank == 1 ? "foreshard-1"
                                    : NULL);
        g_assert_cmpstr(g_getenv("NCCL_NET"), ==, rank < 2 ? "Socket" : NULL);
        g_assert_cmpstr(g_getenv("NCCL_SOCKET_IFNAME"), ==, rank < 2 ? "lo" : NULL);
        g_assert_true(g_str_has_prefix(comm.name, "NCCL 2.28.9"));
        g_assert_true((strstr(comm.name, "NCCL_HOSTID") != NULL) == (rank < 2));
        g_assert_cmpint(nccl.n_splits, ==, 2); /* an axis of one rank needs none */
        g_assert_cmpint(nccl.alive, ==, 3);
        g_assert_true(comm.healthy(comm.self, &error));
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(nccl.alive, ==, 0);
        g_assert_cmpstr(nccl.died, ==, "destroyed");
    }
    for (int a = 0; a < 4; a++) { /* two ranks meet on one axis, or on none */
        for (int b = 0; b < a; b++) {
            int met = 0;
            for (int axis = 0; axis < 2; axis++) {
                bool together = nccl.colors[a][axis] == nccl.colors[b][axis];
                met += together;
                g_assert_true(!together || nccl.keys[a][axis] != nccl.keys[b][axis]);
            }
            g_assert_cmpint(met, <=, 1);
        }
        for (int axis = 0; axis < 2; axis++) {
            g_assert_cmpint(nccl.keys[a][axis], >=, 0);
            g_assert_cmpint(nccl.keys[a][axis], <, 2);
        }
    }
}

static void test_calls(void) {
    ExecCudaComm comm = {0};
    GError *error = NULL;
    char in[64], out[64];
    g_assert_true(
        nccl_open_as(3, 4, &comm, &error)); /* second of its shards, second of its replicas */
    nccl_ask(&comm, (ExecCudaCall){PLAN_OP_ALL_GATHER, PLAN_AXIS_SHARD, PLAN_BF16,
                                   PLAN_REDUCTION_SUM, 16, in, out});
    g_assert_cmpstr(nccl.last.name, ==, "all_gather");
    g_assert_cmpuint(nccl.last.count, ==, 8); /* what one rank gives */
    g_assert_true(nccl.last.in == in && nccl.last.out == out && nccl.last.type == ncclBfloat16);
    nccl_ask(&comm, (ExecCudaCall){PLAN_OP_ALL_GATHER, PLAN_AXIS_SHARD, PLAN_FP32,
                                   PLAN_REDUCTION_SUM, 16, NULL, out});
    g_assert_true(nccl.last.in == out + 8 * 4 &&
                  nccl.last.type == ncclFloat32); /* its slice, in place */
    nccl_ask(&comm, (ExecCudaCall){PLAN_OP_REDUCE_SCATTER, PLAN_AXIS_SHARD, PLAN_FP16,
                                   PLAN_REDUCTION_MEAN, 16, in, out});
    g_assert_cmpstr(nccl.last.name, ==, "reduce_scatter");
    g_assert_cmpuint(nccl.last.count, ==, 8); /* what one rank gets */
    g_assert_true(nccl.last.op == ncclAvg && nccl.last.type == ncclFloat16);
    ncclComm_t of_shards = nccl.last.comm;
    nccl_ask(&comm, (ExecCudaCall){PLAN_OP_ALL_REDUCE, PLAN_AXIS_REPLICATE, PLAN_FP32,
                                   PLAN_REDUCTION_SUM, 16, out, out});
    g_assert_cmpuint(nccl.last.count, ==, 16);
    g_assert_true(nccl.last.op == ncclSum && nccl.last.in == out && nccl.last.out == out &&
                  nccl.last.comm != of_shards);
    nccl_ask(&comm, (ExecCudaCall){PLAN_OP_ALL_REDUCE, PLAN_AXIS_SHARD, PLAN_FP32,
                                   PLAN_REDUCTION_MAX, 16, out, out});
    g_assert_true(nccl.last.op == ncclMax && nccl.last.comm == of_shards);
    nccl_ask(&comm, (ExecCudaCall){PLAN_OP_ALL_REDUCE, PLAN_AXIS_SHARD, PLAN_FP64,
                                   PLAN_REDUCTION_MAX, 8, out, out});
    g_assert_true(nccl.last.op == ncclMax && nccl.last.type == ncclFloat64 && nccl.last.count == 8);
    static const PlanDtype of_bytes[] = {PLAN_UINT8, PLAN_E4M3, PLAN_E5M2};
    for (unsigned i = 0; i < G_N_ELEMENTS(of_bytes); i++) {
        nccl_ask(&comm, (ExecCudaCall){PLAN_OP_ALL_GATHER, PLAN_AXIS_SHARD, of_bytes[i],
                                       PLAN_REDUCTION_SUM, 16, in, out});
        g_assert_true(nccl.last.type == ncclUint8 && nccl.last.count == 8);
    }
    nccl_ask(&comm, (ExecCudaCall){PLAN_OP_BROADCAST, PLAN_AXIS_REPLICATE, PLAN_INT64,
                                   PLAN_REDUCTION_SUM, 8, out, out});
    g_assert_true(nccl.last.root == 0 && nccl.last.type == ncclInt64 && nccl.last.count == 8);
    nccl_ask(&comm, (ExecCudaCall){PLAN_OP_REDUCE_SCATTER, PLAN_AXIS_PART, PLAN_FP32,
                                   PLAN_REDUCTION_MEAN, 16, in, out});
    g_assert_cmpstr(nccl.last.name, ==, "copy"); /* alone on that axis */
    g_assert_cmpuint(nccl.last.count, ==, 64);
    exec_cuda_comm_close(&comm);
    g_assert_cmpint(nccl.alive, ==, 0);
}

/* What fails is named, its communicator is aborted, and none is left. */
static void test_failures(void) {
    ExecCudaComm comm = {0};
    GError *error = NULL;
    static const char *const early[] = {"init", "split"};
    for (unsigned i = 0; i < G_N_ELEMENTS(early); i++) {
        nccl.fails = early[i];
        g_assert_false(nccl_open_as(0, 4, &comm, &error));
        g_assert_error(error, EXEC_ERROR, EXEC_ERROR_COMM);
        g_assert_nonnull(strstr(error->message, i ? "ncclCommSplit" : "ncclCommInitRankConfig"));
        g_assert_nonnull(strstr(error->message, "a planted error (planted)"));
        g_clear_error(&error);
    }
    nccl.fails = NULL;
    g_assert_cmpint(nccl.alive, ==, 0);
    g_assert_cmpstr(nccl.died, ==, "aborted");
    g_assert_true(nccl_open_as(0, 4, &comm, &error));
    nccl.fails = "all_reduce";
    char buffer[64];
    ExecCudaCall call = {
        PLAN_OP_ALL_REDUCE, PLAN_AXIS_SHARD, PLAN_FP32, PLAN_REDUCTION_MEAN, 16, buffer, buffer};
    g_assert_false(comm.run(comm.self, &call, NULL, &error));
    g_assert_nonnull(strstr(error->message, "ncclAllReduce failed: a planted error"));
    g_clear_error(&error);
    g_assert_false(comm.healthy(comm.self, &error)); /* and later on */
    g_assert_nonnull(strstr(error->message, "axis shard: "));
    g_clear_error(&error);
    nccl.fails = NULL;
    exec_cuda_comm_close(&comm);
    g_assert_cmpint(nccl.alive, ==, 0);
}

/* Where one rank cannot load it none opens it, so that none waits for that one; each says why. */
static void test_missing(void) {
    for (nccl.lacks_it = 0; nccl.lacks_it < RANKS; nccl.lacks_it++) {
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            ExecCudaComm comm = {0};
            g_autoptr(GError) error = NULL;
            g_assert_false(nccl_open_as(rank, RANKS, &comm, &error));
            g_assert_cmpstr(error->message, ==,
                            (int)rank == nccl.lacks_it ? "NCCL cannot be loaded: not here"
                                                       : "another rank cannot load NCCL");
            g_assert_cmpint(nccl.alive, ==, 0);
        }
    }
    nccl.lacks_it = -1;
}

/* A GPU each, of which none sees another's: nothing keeps them from talking directly. Nor do GPUs
 * of two machines that sit alike. */
static void test_bound(void) {
    for (int far = 0; far < 2; far++) {
        nccl_another_machine = far != 0;
        for (int i = 0; i < RANKS; i++) {
            nccl.slots[i] = far ? i % 2 : i;
        }
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            ExecCudaComm comm = {0};
            GError *error = NULL;
            g_assert_true(nccl_open_as(rank, far ? 2 : RANKS, &comm, &error));
            g_assert_null(g_getenv("NCCL_HOSTID"));
            g_assert_null(g_getenv("NCCL_NET"));
            g_assert_cmpstr(comm.name, ==, "NCCL 2.28.9");
            exec_cuda_comm_close(&comm);
        }
    }
    /* One GPU that two share: all of the machine are told apart, so that they talk alike. */
    nccl_another_machine = false;
    nccl.slots[0] = nccl.slots[3] = 1, nccl.slots[1] = 2, nccl.slots[2] = 3;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ExecCudaComm comm = {0};
        GError *error = NULL;
        g_assert_true(nccl_open_as(rank, RANKS, &comm, &error));
        g_assert_nonnull(g_getenv("NCCL_HOSTID"));
        g_assert_cmpstr(g_getenv("NCCL_NET"), ==, "Socket");
        exec_cuda_comm_close(&comm);
    }
}

/* A group of as many sends and receives as ranks, this one's own among them, over the axis. */
static void test_all_to_all(void) {
    ExecCudaComm comm = {0};
    GError *error = NULL;
    char in[64], out[64];
    g_assert_true(nccl_open_as(1, 4, &comm, &error)); /* second of its shards */
    ExecCudaCall call = {.kind = PLAN_OP_ALL_TO_ALL,
                         .axis = PLAN_AXIS_SHARD,
                         .dtype = PLAN_INT64,
                         .elements = 6,
                         .in = in,
                         .out = out};
    nccl_ask(&comm, call);
    g_assert_cmpint(nccl.n_grouped, ==, 4);
    for (int i = 0; i < nccl.n_grouped; i++) {
        bool sends = i % 2 == 0;
        g_assert_cmpstr(nccl.grouped[i].name, ==, sends ? "send" : "receive");
        g_assert_true(nccl.grouped[i].in == (sends ? in + i / 2 * 24 : NULL));
        g_assert_true(nccl.grouped[i].out == (sends ? NULL : out + i / 2 * 24));
        g_assert_true(nccl.grouped[i].root == i / 2 && nccl.grouped[i].count == 3);
        g_assert_true(nccl.grouped[i].type == ncclInt64 && nccl.grouped[i].comm->ranks == 2);
    }
    for (unsigned i = 0; i < 2; i++) {
        nccl.fails = i ? "group" : "receive";
        g_assert_false(comm.run(comm.self, &call, NULL, &error));
        nccl.fails = NULL;
        g_assert_nonnull(strstr(error->message, "an all-to-all failed"));
        g_assert_false(nccl.in_group);
        g_clear_error(&error);
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(nccl.alive, ==, 0);
        g_assert_true(nccl_open_as(1, 4, &comm, &error));
    }
    exec_cuda_comm_close(&comm);
    g_assert_cmpint(nccl.alive, ==, 0);
}

/* To the next rank of the axis and from the one before, whichever side of the other it sits; what
 * is pulled goes the other way. */
static void test_pass_on(void) {
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ExecCudaComm comm = {0};
        GError *error = NULL;
        char in[64], out[64];
        Plan ring = plan_line(RANKS);
        ring.axes[PLAN_AXIS_SHARD] = 1;
        ring.axes[PLAN_AXIS_CONTEXT] = RANKS;
        nccl_opened = &ring;
        g_assert_true(nccl_open_as(rank, RANKS, &comm, &error));
        ExecCudaCall call = {.kind = PLAN_OP_PASS_ON,
                             .axis = PLAN_AXIS_CONTEXT,
                             .dtype = PLAN_FP32,
                             .elements = 16,
                             .in = in,
                             .out = out};
        nccl_ask(&comm, call);
        g_assert_cmpint(nccl.n_grouped, ==, 2);
        g_assert_true(nccl.grouped[0].in == in && nccl.grouped[0].root == (int)(rank + 1) % RANKS);
        g_assert_true(nccl.grouped[1].out == out &&
                      nccl.grouped[1].root == (int)(rank + RANKS - 1) % RANKS);
        g_assert_true(nccl.grouped[0].count == 16 && nccl.grouped[1].count == 16);
        ExecCudaCall pull = call;
        pull.kind = PLAN_OP_PULL;
        pull.ahead = 1; /* from the next one, and so to the one before */
        nccl_ask(&comm, pull);
        g_assert_true(nccl.grouped[0].in == in &&
                      nccl.grouped[0].root == (int)(rank + RANKS - 1) % RANKS);
        g_assert_true(nccl.grouped[1].out == out &&
                      nccl.grouped[1].root == (int)(rank + 1) % RANKS);
        nccl.fails = "receive";
        g_assert_false(comm.run(comm.self, &call, NULL, &error));
        nccl.fails = NULL;
        g_assert_nonnull(strstr(error->message, "what ranks pass on failed"));
        g_clear_error(&error);
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(nccl.alive, ==, 0);
        nccl_opened = &nccl_plan;
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    nccl_plan = plan_line(RANKS);
    nccl_plan.axes[PLAN_AXIS_REPLICATE] = nccl_plan.axes[PLAN_AXIS_SHARD] = 2;
    g_test_add_data_func("/exec/nccl/a communicator an axis", NULL, test_axes);
    g_test_add_data_func("/exec/nccl/a communicator an axis, splits that say success", "yes",
                         test_axes);
    g_test_add_func("/exec/nccl/ranks that see one GPU each", test_bound);
    g_test_add_func("/exec/nccl/calls", test_calls);
    g_test_add_func("/exec/nccl/failures", test_failures);
    g_test_add_func("/exec/nccl/an all-to-all", test_all_to_all);
    g_test_add_func("/exec/nccl/what is passed on", test_pass_on);
    g_test_add_func("/exec/nccl/one that is missing", test_missing);
    nccl_add_stages();
    return g_test_run();
}
