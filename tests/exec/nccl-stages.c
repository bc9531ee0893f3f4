/* Communicators of pipeline stages, and what stages give each other, over a stand-in for NCCL. */
#include <string.h>

#include "plan/mesh.h"
#include "tests/exec/nccl-ranks.h"

static Plan staged, staged_twice; /* one stage a rank, and two: so many roots */
static PlanUnit roots[2 * RANKS];

static void open_stages(const Plan *stages, uint32_t rank, ExecCudaComm *ret_comm) {
    GError *error = NULL;
    nccl_opened = stages;
    g_assert_true(nccl_open_as(rank, RANKS, ret_comm, &error));
    g_assert_no_error(error);
    nccl_opened = &nccl_plan;
}

static void open_staged(uint32_t rank, ExecCudaComm *ret_comm) {
    open_stages(&staged, rank, ret_comm);
}

/* Of four stages: their axis's, the first and second, the third and fourth; and of the second and
 * third, in which the others are not. */
static void test_stages(void) {
    static const int expected[RANKS][3] = {{0, 0, -1}, {0, 0, 1}, {0, 2, 1}, {0, 2, -1}};
    static const int places[RANKS][3] = {{0, 0}, {1, 1, 0}, {2, 0, 1}, {3, 1}};
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ExecCudaComm comm = {0};
        GError *error = NULL;
        open_staged(rank, &comm);
        g_assert_cmpint(nccl.n_splits, ==, 3);
        for (int i = 0; i < 3; i++) {
            g_assert_cmpint(nccl.colors[rank][i], ==, expected[rank][i]);
            g_assert_true(expected[rank][i] < 0 || nccl.keys[rank][i] == places[rank][i]);
        }
        g_assert_cmpint(nccl.alive, ==, rank == 0 || rank == RANKS - 1 ? 3 : 4);
        g_assert_true(comm.healthy(comm.self, &error));
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(nccl.alive, ==, 0);
    }
}

/* The second of four: what goes one way has a communicator with each neighbour, and the other's
 * place in it; an exchange is a group on that of all stages. */
static void test_talks(void) {
    ExecCudaComm comm = {0};
    char in[64], out[64];
    open_staged(1, &comm);
    ExecCudaCall call = {.kind = PLAN_OP_SEND,
                         .axis = PLAN_AXIS_PIPELINE,
                         .dtype = PLAN_BF16,
                         .elements = 16,
                         .in = in,
                         .peer = 2,
                         .behind = true};
    nccl_ask(&comm, call);
    g_assert_cmpstr(nccl.last.name, ==, "send");
    g_assert_true(nccl.last.in == in && nccl.last.count == 16 && nccl.last.type == ncclBfloat16);
    g_assert_cmpint(nccl.last.root, ==, 1);
    g_assert_cmpint(nccl.last.comm->rank, ==, 0);
    ncclComm_t behind = nccl.last.comm;
    call = (ExecCudaCall){.kind = PLAN_OP_RECEIVE,
                          .axis = PLAN_AXIS_PIPELINE,
                          .dtype = PLAN_FP32,
                          .elements = 8,
                          .out = out,
                          .peer = 0};
    nccl_ask(&comm, call);
    g_assert_cmpstr(nccl.last.name, ==, "receive");
    g_assert_true(nccl.last.out == out && nccl.last.count == 8 && nccl.last.type == ncclFloat32);
    g_assert_cmpint(nccl.last.root, ==, 0);
    g_assert_cmpint(nccl.last.comm->rank, ==, 1);
    g_assert_true(nccl.last.comm != behind);
    ncclComm_t before = nccl.last.comm;
    call.peer = 2; /* the gradient: by the communicator over which the hidden states went there */
    call.behind = true;
    nccl_ask(&comm, call);
    g_assert_true(nccl.last.comm == behind && nccl.last.root == 1);
    call = (ExecCudaCall){.kind = PLAN_OP_EXCHANGE,
                          .axis = PLAN_AXIS_PIPELINE,
                          .dtype = PLAN_BF16,
                          .elements = 16,
                          .in = in,
                          .out = out,
                          .peer = 2,
                          .behind = true};
    nccl_ask(&comm, call);
    g_assert_cmpint(nccl.n_grouped, ==, 2);
    g_assert_cmpstr(nccl.grouped[0].name, ==, "send");
    g_assert_cmpstr(nccl.grouped[1].name, ==, "receive");
    for (int i = 0; i < 2; i++) {
        g_assert_true(nccl.grouped[i].root == 2 && nccl.grouped[i].count == 16);
        g_assert_true(nccl.grouped[i].comm != before && nccl.grouped[i].comm != behind);
        g_assert_cmpint(nccl.grouped[i].comm->rank, ==, 1);
    }
    exec_cuda_comm_close(&comm);
    g_assert_cmpint(nccl.alive, ==, 0);
}

/* Of several stages a rank the last and the first have one, too, of which the last is the first. */
static void test_a_ring(void) {
    static const int last_split[RANKS] = {3, -1, -1, 3};
    for (unsigned i = 0; i < G_N_ELEMENTS(roots); i++) {
        roots[i].name = "root";
    }
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ExecCudaComm comm = {0};
        char in[64];
        open_stages(&staged_twice, rank, &comm);
        g_assert_cmpint(nccl.n_splits, ==, 4);
        g_assert_cmpint(nccl.colors[rank][3], ==, last_split[rank]);
        g_assert_true(last_split[rank] < 0 || nccl.keys[rank][3] == (rank == 0));
        g_assert_cmpint(nccl.alive, ==, 4);
        for (int behind = 0; behind < 2; behind++) {
            ExecCudaCall call = {.kind = PLAN_OP_SEND,
                                 .axis = PLAN_AXIS_PIPELINE,
                                 .dtype = PLAN_FP32,
                                 .elements = 16,
                                 .in = in,
                                 .peer = (rank + (behind ? 1 : RANKS - 1)) % RANKS,
                                 .behind = behind};
            nccl.lone_says_success = rank % 2;
            nccl_ask(&comm, call);
            nccl.lone_says_success = false;
            g_assert_cmpint(nccl.last.root, ==, behind);
            g_assert_cmpint(nccl.last.comm->rank, ==, !behind);
        }
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(nccl.alive, ==, 0);
    }
}

/* A call that fails within a group, or the group itself; and a send, which healthy() finds too. */
static void test_talks_fail(void) {
    static const struct {
        const char *fails, *expected;
        PlanOpKind kind;
    } cases[] = {{"receive", "an exchange failed", PLAN_OP_EXCHANGE},
                 {"group", "an exchange failed: a planted error", PLAN_OP_EXCHANGE},
                 {"send", "ncclSend failed: a planted error", PLAN_OP_SEND}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        ExecCudaComm comm = {0};
        GError *error = NULL;
        char in[64], out[64];
        open_staged(2, &comm);
        ExecCudaCall call = {.kind = cases[i].kind,
                             .axis = PLAN_AXIS_PIPELINE,
                             .dtype = PLAN_FP32,
                             .elements = 16,
                             .in = in,
                             .out = out,
                             .peer = 1};
        nccl.fails = cases[i].fails;
        g_assert_false(comm.run(comm.self, &call, NULL, &error));
        nccl.fails = NULL;
        g_assert_nonnull(strstr(error->message, cases[i].expected));
        g_assert_false(nccl.in_group);
        g_clear_error(&error);
        g_assert_false(comm.healthy(comm.self, &error));
        g_assert_nonnull(strstr(error->message, "axis pipeline: "));
        g_clear_error(&error);
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(nccl.alive, ==, 0);
    }
}

void nccl_add_stages(void) {
    staged = plan_line(RANKS);
    staged.axes[PLAN_AXIS_SHARD] = 1;
    staged.axes[PLAN_AXIS_PIPELINE] = RANKS;
    staged_twice = staged;
    staged_twice.units = roots;
    staged_twice.n_units = G_N_ELEMENTS(roots);
    g_test_add_func("/exec/nccl/communicators of stages", test_stages);
    g_test_add_func("/exec/nccl/what stages give each other", test_talks);
    g_test_add_func("/exec/nccl/failures between stages", test_talks_fail);
    g_test_add_func("/exec/nccl/several stages a rank", test_a_ring);
}
