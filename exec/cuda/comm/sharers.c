#include "exec/cuda/comm/sharers.h"

#include <math.h>

#include "exec/cuda/own-gpu.h"

/* A machine, or a container that has a name of its own: as NCCL tells them apart. */
static guint this_machine(void) {
    g_autofree char *boot = NULL;
    g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL);
    g_autofree char *text = g_strconcat(g_get_host_name(), " ", boot, NULL);
    return g_str_hash(text);
}

static bool this_gpu(guint *ret_gpu, GError **error) {
    char bus[EXEC_CUDA_BUS_TEXT];
    if (!exec_cuda_own_bus(bus, error)) {
        return false;
    }
    *ret_gpu = g_str_hash(bus);
    return true;
}

typedef struct {
    double machine, gpu; /* 32 bits each, so exact */
} Seat;

static unsigned count(const Seat *seats, uint32_t n, const Seat *like) {
    unsigned found = 0;
    for (uint32_t i = 0; i < n; i++) {
        found += seats[i].machine == like->machine && seats[i].gpu == like->gpu;
    }
    return found;
}

bool exec_cuda_sharers(const ExecComm *comm, unsigned *ret_most, GError **error) {
    guint gpu;
    *ret_most = 1;
    if (comm->world == 1 || comm->rehearsed) {
        return true;
    }
    if (!this_gpu(&gpu, error)) {
        return false;
    }
    g_autofree Seat *seats = g_new0(Seat, comm->world);
    Seat mine = {this_machine(), gpu};
    seats[comm->rank] = mine;
    /* The mean of one number and zeros. */
    if (!comm->mean(comm->self, (double *)seats, 2 * comm->world, error)) {
        return false;
    }
    for (uint32_t i = 0; i < comm->world; i++) {
        seats[i] = (Seat){round(seats[i].machine * comm->world), round(seats[i].gpu * comm->world)};
    }
    for (uint32_t i = 0; i < comm->world; i++) {
        if (seats[i].machine == mine.machine) {
            *ret_most = MAX(*ret_most, count(seats, comm->world, &seats[i]));
        }
    }
    return true;
}
