#include "tests/exec/nccl-ranks.h"

#include <string.h>

Plan nccl_plan;
const Plan *nccl_opened = &nccl_plan;
bool nccl_another_machine;

static bool share(gpointer self, gpointer bytes, gsize n, GError **error) {
    memset(bytes, 42, sizeof(ncclUniqueId)); /* as rank 0 has it */
    return true;
}

/* What the others say: whether they have the library; where their GPUs sit, as this rank's own
 * was, by their slots. */
static bool mean(gpointer self, double *values, unsigned n, GError **error) {
    if (n == 1) {
        g_assert_cmpfloat(values[0], ==, nccl.lacks_it == nccl.asks_for ? 0 : 1);
        values[0] = nccl.lacks_it < 0 ? 1 : 1 - 1.0 / RANKS;
        return true;
    }
    double machine = values[2 * nccl.asks_for];
    g_assert_cmpuint(n, ==, 2 * RANKS);
    for (int i = 0; i < RANKS; i++) {
        bool is_far = nccl_another_machine && (i < 2) != (nccl.asks_for < 2);
        g_autofree char *bus = g_strdup_printf("0000:%02x:00.0", (unsigned)nccl.slots[i]);
        g_assert_true(i == nccl.asks_for || (values[2 * i] == 0 && values[2 * i + 1] == 0));
        values[2 * i] = (is_far ? machine + 1 : machine) / RANKS;
        values[2 * i + 1] = (double)g_str_hash(bus) / RANKS;
    }
    return true;
}

bool nccl_open_as(uint32_t rank, uint32_t local_world, ExecCudaComm *ret_comm, GError **error) {
    ExecComm comm = {
        .rank = rank, .world = RANKS, .local_world = local_world, .share = share, .mean = mean};
    nccl.asks_for = (int)rank;
    nccl.n_splits = 0;
    g_unsetenv("NCCL_HOSTID");
    g_unsetenv("NCCL_NET");
    g_unsetenv("NCCL_SOCKET_IFNAME");
    return exec_cuda_nccl_open(ret_comm, nccl_opened, &comm, error);
}

void nccl_ask(const ExecCudaComm *comm, ExecCudaCall call) {
    GError *error = NULL;
    g_assert_true(comm->run(comm->self, &call, (cudaStream_t)(gpointer)&nccl.last, &error));
    g_assert_no_error(error);
    g_assert_true(nccl.last.stream == (cudaStream_t)(gpointer)&nccl.last);
    g_assert_true(!nccl.last.comm ||
                  !nccl.last.comm->polls); /* what comes next finds it on its stream */
}
