/* exec/cuda/comm/nccl.c against a stand-in for NCCL that is as strict as NCCL's documentation: a
 * call that is not blocking is at work until it was asked about a few times, and nothing else may
 * be asked of its communicator until then; a split's communicator is there only at its end, and the
 * call may have said long before that all is well, as NCCL 2.28 does; one that is well is finalized
 * before it is destroyed, and its end comes only when all others of the rank end, since its other
 * ranks may wait in those; one that has failed is aborted; what is called within a group is at work
 * from the group's end on, and a group that began must end. What reaches NCCL is looked at: counts,
 * places, types, colors. CUDA's part is stood in for too, so that neither needs a GPU.
 */
#include <cuda_runtime_api.h>
#include <glib.h>
#include <string.h>

#include "exec/cuda/comm/comm.h"
#include "exec/cuda/comm/nccl-library.h"
#include "exec/error.h"

enum {
    POLLS = 3,           /* questions until a call is through */
    MOST_WAITS = 100000, /* questions to one whose end waits for that of others */
    RANKS = 4,
};

struct ncclComm {
    int ranks, rank, polls; /* polls left of the call at work */
    ncclComm_t *ret_split;  /* where a split is to show */
    ncclComm_t split;
    ncclResult_t result; /* of the call at work, and of all after it */
    bool finalized;
};

typedef struct {
    const char *name;
    ncclComm_t comm;
    const void *in;
    void *out;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    cudaStream_t stream;
} Call;

static Call last;
static int alive, n_ending;      /* communicators; those of them whose end has begun */
static int n_waits;              /* questions in vain since */
static const char *fails, *died; /* the call that fails; what the last communicator died of */
static bool split_says_success;  /* while it is at work */
static bool lone_says_success;   /* likewise a send or receive outside of a group */
static int colors[8][PLAN_N_AXES], keys[8][PLAN_N_AXES], n_splits;
static bool in_group;
static Call grouped[2 * RANKS]; /* what was called within the last group */
static int n_grouped;
static ncclComm_t sick; /* of a call that failed within it */

/* ---- NCCL ----------------------------------------------------------------------------------- */

static ncclComm_t new_comm(int ranks, int rank) {
    ncclComm_t comm = g_new0(struct ncclComm, 1);
    comm->ranks = ranks;
    comm->rank = rank;
    alive++;
    return comm;
}

/* A call begins; what comes of it shows later. */
static ncclResult_t begin(ncclComm_t comm, const char *name) {
    g_assert_nonnull(comm);
    g_assert_cmpint(comm->polls, ==, 0);
    g_assert_cmpint(comm->result, ==, ncclSuccess);
    comm->polls = POLLS;
    comm->result = g_strcmp0(fails, name) == 0 ? ncclRemoteError : ncclSuccess;
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
    g_assert_nonnull(comm);
    if (comm->finalized && n_ending < alive) {
        g_assert_cmpint(++n_waits, <, MOST_WAITS);
        *result = ncclInProgress;
        return ncclSuccess;
    }
    if (comm->polls && --comm->polls) {
        *result = ncclInProgress;
        return ncclSuccess;
    }
    if (comm->ret_split) {
        if (comm->split) {
            comm->split->result = comm->result; /* a child of a split that failed is sick as well */
        }
        *comm->ret_split = comm->split;
        comm->ret_split = NULL;
    }
    *result = comm->result;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    memset(id, 42, sizeof *id);
    return ncclSuccess;
}

static void check_config(const ncclConfig_t *config) {
    g_assert_cmpuint(config->size, ==, sizeof *config);
    g_assert_cmpuint(config->magic, ==, 0xcafebeef);
    g_assert_cmpint(config->blocking, ==, 0);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    check_config(config);
    for (unsigned i = 0; i < sizeof id; i++) {
        g_assert_cmpint(((char *)&id)[i], ==, 42); /* rank 0's, whoever this is */
    }
    *comm = new_comm(ranks, rank);
    return begin(*comm, "init");
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *ret,
                           ncclConfig_t *config) {
    check_config(config);
    g_assert_true(color >= 0 || color == NCCL_SPLIT_NOCOLOR);
    colors[comm->rank][n_splits] = color;
    keys[comm->rank][n_splits++] = key;
    *ret = NULL;
    comm->ret_split = ret;
    comm->split = color == NCCL_SPLIT_NOCOLOR ? NULL : new_comm(2, key);
    return begin(comm, "split") == ncclInProgress && split_says_success ? ncclSuccess
                                                                        : ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    comm->finalized = true;
    n_ending++;
    return begin(comm, "finalize");
}

static void end(ncclComm_t comm) {
    g_assert_null(comm->ret_split);
    n_ending -= comm->finalized;
    g_free(comm);
    alive--;
    n_waits = 0;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    g_assert_true(comm->finalized && !comm->polls && comm->result == ncclSuccess);
    died = "destroyed";
    end(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    g_assert_cmpint(comm->result, !=, ncclSuccess);
    died = "aborted";
    end(comm);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclRemoteError ? "a planted error" : "no error";
}

const char *ncclGetLastError(ncclComm_t comm) {
    return "planted";
}

ncclResult_t ncclGetVersion(int *version) {
    *version = 22809;
    return ncclSuccess;
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
    last = (Call){"all_gather", comm, in, out, count, type, ncclSum, 0, stream};
    return begin(comm, "all_gather");
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    last = (Call){"reduce_scatter", comm, in, out, count, type, op, 0, stream};
    return begin(comm, "reduce_scatter");
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    last = (Call){"all_reduce", comm, in, out, count, type, op, 0, stream};
    return begin(comm, "all_reduce");
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
    last = (Call){"broadcast", comm, in, out, count, type, ncclSum, root, stream};
    return begin(comm, "broadcast");
}

ncclResult_t ncclGroupStart(void); /* which the header declares as C++ does */
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGroupStart(void) {
    g_assert_false(in_group);
    in_group = true;
    n_grouped = 0;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    g_assert_true(in_group);
    in_group = false;
    if (sick) { /* a call within has failed: so has the group, whose calls are dropped */
        sick->result = ncclInvalidArgument;
        sick = NULL;
        return ncclInvalidArgument;
    }
    for (int i = 1; i < n_grouped; i++) {
        g_assert_true(grouped[i].comm == grouped[0].comm);
    }
    return n_grouped ? begin(grouped[0].comm, "group") : ncclSuccess;
}

static ncclResult_t to_or_from(Call call) {
    g_assert_cmpint(call.root, >=, 0);
    last = call;
    if (!in_group) {
        ncclResult_t result = begin(call.comm, call.name);
        return lone_says_success ? ncclSuccess : result;
    }
    if (g_strcmp0(fails, call.name) == 0) {
        sick = call.comm;
        return ncclInvalidArgument;
    }
    g_assert_cmpint(n_grouped, <, G_N_ELEMENTS(grouped));
    grouped[n_grouped++] = call;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return to_or_from((Call){"send", comm, in, NULL, count, type, ncclSum, peer, stream});
}

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return to_or_from((Call){"receive", comm, NULL, out, count, type, ncclSum, peer, stream});
}

/* ---- that it is here ------------------------------------------------------------------------ */

static int lacks_it = -1; /* the rank that cannot load it */
static int asks_for;      /* the rank that is being played */

const ExecCudaNccl *exec_cuda_nccl(GError **error) {
#define STAND_IN(name) .name = nccl##name,
    static const ExecCudaNccl stand_ins = {EXEC_CUDA_NCCL_CALLS(STAND_IN)};
    if (lacks_it == asks_for) {
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_COMM, "NCCL cannot be loaded: not here");
        return NULL;
    }
    return &stand_ins;
}

/* ---- CUDA ----------------------------------------------------------------------------------- */

/* Each rank sees one GPU, number 0, wherever it sits. */
static int slots[RANKS];

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

/* Of own-gpu.c, and not asked here. */
cudaError_t cudaSetDevice(int device) {
    g_assert_not_reached();
}

cudaError_t cudaGetDeviceCount(int *n) {
    g_assert_not_reached();
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    g_assert_not_reached();
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device) {
    g_assert_cmpint(device, ==, 0);
    g_snprintf(text, (gulong)length, "0000:%02x:00.0", (unsigned)slots[asks_for]);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    g_assert_cmpint(kind, ==, cudaMemcpyDeviceToDevice);
    last = (Call){.name = "copy", .in = from, .out = to, .count = bytes, .stream = stream};
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error) {
    return "no error";
}

const char *cudaGetErrorName(cudaError_t error) {
    return "cudaSuccess";
}

/* ---- what comm.c might open instead --------------------------------------------------------- */

bool exec_cuda_local_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                          uint64_t largest_bytes, GError **error) {
    g_assert_not_reached();
}

bool exec_cuda_standin_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                            GError **error) {
    g_assert_not_reached();
}

/* ---- tests ---------------------------------------------------------------------------------- */

static Plan plan;                 /* 2 replicas of 2 shards */
static Plan staged, staged_twice; /* one stage a rank, and two: so many roots */
static PlanUnit roots[2 * RANKS];

static void make_plans(void) {
    plan = staged = plan_line(RANKS);
    plan.axes[PLAN_AXIS_REPLICATE] = plan.axes[PLAN_AXIS_SHARD] = 2;
    staged.axes[PLAN_AXIS_SHARD] = 1;
    staged.axes[PLAN_AXIS_PIPELINE] = RANKS;
    staged_twice = staged;
    staged_twice.units = roots;
    staged_twice.n_units = G_N_ELEMENTS(roots);
}

static const Plan *opened = &plan;

static bool share(gpointer self, gpointer bytes, gsize n, GError **error) {
    memset(bytes, 42, sizeof(ncclUniqueId)); /* as rank 0 has it */
    return true;
}

static bool another_machine; /* for ranks 2 and 3 */

/* What the others say: whether they have the library; where their GPUs sit, as this rank's own
 * was, by their slots. */
static bool mean(gpointer self, double *values, unsigned n, GError **error) {
    if (n == 1) {
        g_assert_cmpfloat(values[0], ==, lacks_it == asks_for ? 0 : 1);
        values[0] = lacks_it < 0 ? 1 : 1 - 1.0 / RANKS;
        return true;
    }
    double machine = values[2 * asks_for];
    g_assert_cmpuint(n, ==, 2 * RANKS);
    for (int i = 0; i < RANKS; i++) {
        bool is_far = another_machine && (i < 2) != (asks_for < 2);
        g_autofree char *bus = g_strdup_printf("0000:%02x:00.0", (unsigned)slots[i]);
        g_assert_true(i == asks_for || (values[2 * i] == 0 && values[2 * i + 1] == 0));
        values[2 * i] = (is_far ? machine + 1 : machine) / RANKS;
        values[2 * i + 1] = (double)g_str_hash(bus) / RANKS;
    }
    return true;
}

static bool open_as(uint32_t rank, uint32_t local_world, ExecCudaComm *ret_comm, GError **error) {
    ExecComm comm = {
        .rank = rank, .world = RANKS, .local_world = local_world, .share = share, .mean = mean};
    asks_for = (int)rank;
    n_splits = 0;
    g_unsetenv("NCCL_HOSTID");
    g_unsetenv("NCCL_NET");
    g_unsetenv("NCCL_SOCKET_IFNAME");
    return exec_cuda_nccl_open(ret_comm, opened, &comm, error);
}

static void test_axes(gconstpointer says_success) {
    split_says_success = says_success != NULL;
    slots[0] = slots[1] = 7, slots[2] = 8, slots[3] = 9;
    another_machine = true;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ExecCudaComm comm = {0};
        GError *error = NULL;
        g_assert_true(open_as(rank, rank < 2 ? RANKS : 1, &comm, &error));
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
        g_assert_cmpint(n_splits, ==, 2); /* an axis of one rank needs none */
        g_assert_cmpint(alive, ==, 3);
        g_assert_true(comm.healthy(comm.self, &error));
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(alive, ==, 0);
        g_assert_cmpstr(died, ==, "destroyed");
    }
    for (int a = 0; a < 4; a++) { /* two ranks meet on one axis, or on none */
        for (int b = 0; b < a; b++) {
            int met = 0;
            for (int axis = 0; axis < 2; axis++) {
                bool together = colors[a][axis] == colors[b][axis];
                met += together;
                g_assert_true(!together || keys[a][axis] != keys[b][axis]);
            }
            g_assert_cmpint(met, <=, 1);
        }
        for (int axis = 0; axis < 2; axis++) {
            g_assert_cmpint(keys[a][axis], >=, 0);
            g_assert_cmpint(keys[a][axis], <, 2);
        }
    }
}

static void ask(const ExecCudaComm *comm, ExecCudaCall call) {
    GError *error = NULL;
    g_assert_true(comm->run(comm->self, &call, (cudaStream_t)(gpointer)&last, &error));
    g_assert_no_error(error);
    g_assert_true(last.stream == (cudaStream_t)(gpointer)&last);
    g_assert_true(!last.comm || !last.comm->polls); /* what comes next finds it on its stream */
}

static void test_calls(void) {
    ExecCudaComm comm = {0};
    GError *error = NULL;
    char in[64], out[64];
    g_assert_true(open_as(3, 4, &comm, &error)); /* second of its shards, second of its replicas */
    ask(&comm, (ExecCudaCall){PLAN_OP_ALL_GATHER, PLAN_AXIS_SHARD, PLAN_BF16, PLAN_REDUCTION_SUM,
                              16, in, out});
    g_assert_cmpstr(last.name, ==, "all_gather");
    g_assert_cmpuint(last.count, ==, 8); /* what one rank gives */
    g_assert_true(last.in == in && last.out == out && last.type == ncclBfloat16);
    ask(&comm, (ExecCudaCall){PLAN_OP_ALL_GATHER, PLAN_AXIS_SHARD, PLAN_FP32, PLAN_REDUCTION_SUM,
                              16, NULL, out});
    g_assert_true(last.in == out + 8 * 4 && last.type == ncclFloat32); /* its slice, in place */
    ask(&comm, (ExecCudaCall){PLAN_OP_REDUCE_SCATTER, PLAN_AXIS_SHARD, PLAN_FP16,
                              PLAN_REDUCTION_MEAN, 16, in, out});
    g_assert_cmpstr(last.name, ==, "reduce_scatter");
    g_assert_cmpuint(last.count, ==, 8); /* what one rank gets */
    g_assert_true(last.op == ncclAvg && last.type == ncclFloat16);
    ncclComm_t of_shards = last.comm;
    ask(&comm, (ExecCudaCall){PLAN_OP_ALL_REDUCE, PLAN_AXIS_REPLICATE, PLAN_FP32,
                              PLAN_REDUCTION_SUM, 16, out, out});
    g_assert_cmpuint(last.count, ==, 16);
    g_assert_true(last.op == ncclSum && last.in == out && last.out == out &&
                  last.comm != of_shards);
    ask(&comm, (ExecCudaCall){PLAN_OP_ALL_REDUCE, PLAN_AXIS_SHARD, PLAN_FP32, PLAN_REDUCTION_MAX,
                              16, out, out});
    g_assert_true(last.op == ncclMax && last.comm == of_shards);
    ask(&comm, (ExecCudaCall){PLAN_OP_ALL_REDUCE, PLAN_AXIS_SHARD, PLAN_FP64, PLAN_REDUCTION_MAX, 8,
                              out, out});
    g_assert_true(last.op == ncclMax && last.type == ncclFloat64 && last.count == 8);
    static const PlanDtype of_bytes[] = {PLAN_UINT8, PLAN_E4M3, PLAN_E5M2};
    for (unsigned i = 0; i < G_N_ELEMENTS(of_bytes); i++) {
        ask(&comm, (ExecCudaCall){PLAN_OP_ALL_GATHER, PLAN_AXIS_SHARD, of_bytes[i],
                                  PLAN_REDUCTION_SUM, 16, in, out});
        g_assert_true(last.type == ncclUint8 && last.count == 8);
    }
    ask(&comm, (ExecCudaCall){PLAN_OP_BROADCAST, PLAN_AXIS_REPLICATE, PLAN_INT64,
                              PLAN_REDUCTION_SUM, 8, out, out});
    g_assert_true(last.root == 0 && last.type == ncclInt64 && last.count == 8);
    ask(&comm, (ExecCudaCall){PLAN_OP_REDUCE_SCATTER, PLAN_AXIS_PART, PLAN_FP32,
                              PLAN_REDUCTION_MEAN, 16, in, out});
    g_assert_cmpstr(last.name, ==, "copy"); /* alone on that axis */
    g_assert_cmpuint(last.count, ==, 64);
    exec_cuda_comm_close(&comm);
    g_assert_cmpint(alive, ==, 0);
}

/* What fails is named, its communicator is aborted, and none is left. */
static void test_failures(void) {
    ExecCudaComm comm = {0};
    GError *error = NULL;
    static const char *const early[] = {"init", "split"};
    for (unsigned i = 0; i < G_N_ELEMENTS(early); i++) {
        fails = early[i];
        g_assert_false(open_as(0, 4, &comm, &error));
        g_assert_error(error, EXEC_ERROR, EXEC_ERROR_COMM);
        g_assert_nonnull(strstr(error->message, i ? "ncclCommSplit" : "ncclCommInitRankConfig"));
        g_assert_nonnull(strstr(error->message, "a planted error (planted)"));
        g_clear_error(&error);
    }
    fails = NULL;
    g_assert_cmpint(alive, ==, 0);
    g_assert_cmpstr(died, ==, "aborted");
    g_assert_true(open_as(0, 4, &comm, &error));
    fails = "all_reduce";
    char buffer[64];
    ExecCudaCall call = {
        PLAN_OP_ALL_REDUCE, PLAN_AXIS_SHARD, PLAN_FP32, PLAN_REDUCTION_MEAN, 16, buffer, buffer};
    g_assert_false(comm.run(comm.self, &call, NULL, &error));
    g_assert_nonnull(strstr(error->message, "ncclAllReduce failed: a planted error"));
    g_clear_error(&error);
    g_assert_false(comm.healthy(comm.self, &error)); /* and later on */
    g_assert_nonnull(strstr(error->message, "axis shard: "));
    g_clear_error(&error);
    fails = NULL;
    exec_cuda_comm_close(&comm);
    g_assert_cmpint(alive, ==, 0);
}

/* Where one rank cannot load it none opens it, so that none waits for that one; each says why. */
static void test_missing(void) {
    for (lacks_it = 0; lacks_it < RANKS; lacks_it++) {
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            ExecCudaComm comm = {0};
            g_autoptr(GError) error = NULL;
            g_assert_false(open_as(rank, RANKS, &comm, &error));
            g_assert_cmpstr(error->message, ==,
                            (int)rank == lacks_it ? "NCCL cannot be loaded: not here"
                                                  : "another rank cannot load NCCL");
            g_assert_cmpint(alive, ==, 0);
        }
    }
    lacks_it = -1;
}

/* A GPU each, of which none sees another's: nothing keeps them from talking directly. Nor do GPUs
 * of two machines that sit alike. */
static void test_bound(void) {
    for (int far = 0; far < 2; far++) {
        another_machine = far != 0;
        for (int i = 0; i < RANKS; i++) {
            slots[i] = far ? i % 2 : i;
        }
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            ExecCudaComm comm = {0};
            GError *error = NULL;
            g_assert_true(open_as(rank, far ? 2 : RANKS, &comm, &error));
            g_assert_null(g_getenv("NCCL_HOSTID"));
            g_assert_null(g_getenv("NCCL_NET"));
            g_assert_cmpstr(comm.name, ==, "NCCL 2.28.9");
            exec_cuda_comm_close(&comm);
        }
    }
    /* One GPU that two share: all of the machine are told apart, so that they talk alike. */
    another_machine = false;
    slots[0] = slots[3] = 1, slots[1] = 2, slots[2] = 3;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ExecCudaComm comm = {0};
        GError *error = NULL;
        g_assert_true(open_as(rank, RANKS, &comm, &error));
        g_assert_nonnull(g_getenv("NCCL_HOSTID"));
        g_assert_cmpstr(g_getenv("NCCL_NET"), ==, "Socket");
        exec_cuda_comm_close(&comm);
    }
}

/* ---- stages --------------------------------------------------------------------------------- */

static void open_stages(const Plan *stages, uint32_t rank, ExecCudaComm *ret_comm) {
    GError *error = NULL;
    opened = stages;
    g_assert_true(open_as(rank, RANKS, ret_comm, &error));
    g_assert_no_error(error);
    opened = &plan;
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
        g_assert_cmpint(n_splits, ==, 3);
        for (int i = 0; i < 3; i++) {
            g_assert_cmpint(colors[rank][i], ==, expected[rank][i]);
            g_assert_true(expected[rank][i] < 0 || keys[rank][i] == places[rank][i]);
        }
        g_assert_cmpint(alive, ==, rank == 0 || rank == RANKS - 1 ? 3 : 4);
        g_assert_true(comm.healthy(comm.self, &error));
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(alive, ==, 0);
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
    ask(&comm, call);
    g_assert_cmpstr(last.name, ==, "send");
    g_assert_true(last.in == in && last.count == 16 && last.type == ncclBfloat16);
    g_assert_cmpint(last.root, ==, 1);
    g_assert_cmpint(last.comm->rank, ==, 0);
    ncclComm_t behind = last.comm;
    call = (ExecCudaCall){.kind = PLAN_OP_RECEIVE,
                          .axis = PLAN_AXIS_PIPELINE,
                          .dtype = PLAN_FP32,
                          .elements = 8,
                          .out = out,
                          .peer = 0};
    ask(&comm, call);
    g_assert_cmpstr(last.name, ==, "receive");
    g_assert_true(last.out == out && last.count == 8 && last.type == ncclFloat32);
    g_assert_cmpint(last.root, ==, 0);
    g_assert_cmpint(last.comm->rank, ==, 1);
    g_assert_true(last.comm != behind);
    ncclComm_t before = last.comm;
    call.peer = 2; /* the gradient: by the communicator over which the hidden states went there */
    call.behind = true;
    ask(&comm, call);
    g_assert_true(last.comm == behind && last.root == 1);
    call = (ExecCudaCall){.kind = PLAN_OP_EXCHANGE,
                          .axis = PLAN_AXIS_PIPELINE,
                          .dtype = PLAN_BF16,
                          .elements = 16,
                          .in = in,
                          .out = out,
                          .peer = 2,
                          .behind = true};
    ask(&comm, call);
    g_assert_cmpint(n_grouped, ==, 2);
    g_assert_cmpstr(grouped[0].name, ==, "send");
    g_assert_cmpstr(grouped[1].name, ==, "receive");
    for (int i = 0; i < 2; i++) {
        g_assert_true(grouped[i].root == 2 && grouped[i].count == 16);
        g_assert_true(grouped[i].comm != before && grouped[i].comm != behind);
        g_assert_cmpint(grouped[i].comm->rank, ==, 1);
    }
    exec_cuda_comm_close(&comm);
    g_assert_cmpint(alive, ==, 0);
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
        g_assert_cmpint(n_splits, ==, 4);
        g_assert_cmpint(colors[rank][3], ==, last_split[rank]);
        g_assert_true(last_split[rank] < 0 || keys[rank][3] == (rank == 0));
        g_assert_cmpint(alive, ==, 4);
        for (int behind = 0; behind < 2; behind++) {
            ExecCudaCall call = {.kind = PLAN_OP_SEND,
                                 .axis = PLAN_AXIS_PIPELINE,
                                 .dtype = PLAN_FP32,
                                 .elements = 16,
                                 .in = in,
                                 .peer = (rank + (behind ? 1 : RANKS - 1)) % RANKS,
                                 .behind = behind};
            lone_says_success = rank % 2;
            ask(&comm, call);
            lone_says_success = false;
            g_assert_cmpint(last.root, ==, behind);
            g_assert_cmpint(last.comm->rank, ==, !behind);
        }
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(alive, ==, 0);
    }
}

/* A group of as many sends and receives as ranks, this one's own among them, over the axis. */
static void test_all_to_all(void) {
    ExecCudaComm comm = {0};
    GError *error = NULL;
    char in[64], out[64];
    g_assert_true(open_as(1, 4, &comm, &error)); /* second of its shards */
    ExecCudaCall call = {.kind = PLAN_OP_ALL_TO_ALL,
                         .axis = PLAN_AXIS_SHARD,
                         .dtype = PLAN_INT64,
                         .elements = 6,
                         .in = in,
                         .out = out};
    ask(&comm, call);
    g_assert_cmpint(n_grouped, ==, 4);
    for (int i = 0; i < n_grouped; i++) {
        bool sends = i % 2 == 0;
        g_assert_cmpstr(grouped[i].name, ==, sends ? "send" : "receive");
        g_assert_true(grouped[i].in == (sends ? in + i / 2 * 24 : NULL));
        g_assert_true(grouped[i].out == (sends ? NULL : out + i / 2 * 24));
        g_assert_true(grouped[i].root == i / 2 && grouped[i].count == 3);
        g_assert_true(grouped[i].type == ncclInt64 && grouped[i].comm->ranks == 2);
    }
    for (unsigned i = 0; i < 2; i++) {
        fails = i ? "group" : "receive";
        g_assert_false(comm.run(comm.self, &call, NULL, &error));
        fails = NULL;
        g_assert_nonnull(strstr(error->message, "an all-to-all failed"));
        g_assert_false(in_group);
        g_clear_error(&error);
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(alive, ==, 0);
        g_assert_true(open_as(1, 4, &comm, &error));
    }
    exec_cuda_comm_close(&comm);
    g_assert_cmpint(alive, ==, 0);
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
        opened = &ring;
        g_assert_true(open_as(rank, RANKS, &comm, &error));
        ExecCudaCall call = {.kind = PLAN_OP_PASS_ON,
                             .axis = PLAN_AXIS_CONTEXT,
                             .dtype = PLAN_FP32,
                             .elements = 16,
                             .in = in,
                             .out = out};
        ask(&comm, call);
        g_assert_cmpint(n_grouped, ==, 2);
        g_assert_true(grouped[0].in == in && grouped[0].root == (int)(rank + 1) % RANKS);
        g_assert_true(grouped[1].out == out && grouped[1].root == (int)(rank + RANKS - 1) % RANKS);
        g_assert_true(grouped[0].count == 16 && grouped[1].count == 16);
        ExecCudaCall pull = call;
        pull.kind = PLAN_OP_PULL;
        pull.ahead = 1; /* from the next one, and so to the one before */
        ask(&comm, pull);
        g_assert_true(grouped[0].in == in && grouped[0].root == (int)(rank + RANKS - 1) % RANKS);
        g_assert_true(grouped[1].out == out && grouped[1].root == (int)(rank + 1) % RANKS);
        fails = "receive";
        g_assert_false(comm.run(comm.self, &call, NULL, &error));
        fails = NULL;
        g_assert_nonnull(strstr(error->message, "what ranks pass on failed"));
        g_clear_error(&error);
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(alive, ==, 0);
        opened = &plan;
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
        fails = cases[i].fails;
        g_assert_false(comm.run(comm.self, &call, NULL, &error));
        fails = NULL;
        g_assert_nonnull(strstr(error->message, cases[i].expected));
        g_assert_false(in_group);
        g_clear_error(&error);
        g_assert_false(comm.healthy(comm.self, &error));
        g_assert_nonnull(strstr(error->message, "axis pipeline: "));
        g_clear_error(&error);
        exec_cuda_comm_close(&comm);
        g_assert_cmpint(alive, ==, 0);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    make_plans();
    g_test_add_data_func("/exec/nccl/a communicator an axis", NULL, test_axes);
    g_test_add_data_func("/exec/nccl/a communicator an axis, splits that say success", "yes",
                         test_axes);
    g_test_add_func("/exec/nccl/ranks that see one GPU each", test_bound);
    g_test_add_func("/exec/nccl/calls", test_calls);
    g_test_add_func("/exec/nccl/failures", test_failures);
    g_test_add_func("/exec/nccl/an all-to-all", test_all_to_all);
    g_test_add_func("/exec/nccl/what is passed on", test_pass_on);
    g_test_add_func("/exec/nccl/one that is missing", test_missing);
    g_test_add_func("/exec/nccl/communicators of stages", test_stages);
    g_test_add_func("/exec/nccl/what stages give each other", test_talks);
    g_test_add_func("/exec/nccl/failures between stages", test_talks_fail);
    g_test_add_func("/exec/nccl/several stages a rank", test_a_ring);
    return g_test_run();
}
