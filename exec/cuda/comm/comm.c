#include "exec/cuda/comm/comm.h"

#include "exec/error.h"
#include "plan/op/names.h"

uint64_t exec_cuda_comm_largest(const Plan *plan, uint32_t rank) {
    const PlanRole *role = &plan->roles[plan_role_of_rank(plan, rank)];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        if (plan_op_is_collective((PlanOpKind)op->kind) && plan->axes[op->axis] > 1) {
            bytes = MAX(bytes, (uint64_t)plan_op_dims(role, op)[COLLECTIVE_ELEMENTS] *
                                   plan_dtype_bytes((PlanDtype)op->dtype));
        }
    }
    return bytes;
}

bool exec_cuda_comm_kind(const char *name, ExecCudaCommKind *ret_kind, GError **error) {
    static const char *const names[] = {"auto", "nccl", "local"};
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_str_equal(name ? name : "auto", names[i])) {
            *ret_kind = (ExecCudaCommKind)i;
            return true;
        }
    }
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                "there is no communicator '%s'; give auto, nccl or local", name);
    return false;
}

/* All ranks must agree: one that cannot have NCCL takes the others along. */
static bool open_nccl(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                      bool *ret_open, GError **error) {
    g_autoptr(GError) why = NULL;
    bool mine = exec_cuda_nccl_open(ret_comm, plan, comm, &why);
    double share = mine;
    if (!comm->mean(comm->self, &share, 1, error)) {
        return false;
    }
    *ret_open = share == 1;
    if (mine && !*ret_open) {
        exec_cuda_comm_close(ret_comm);
        g_set_error_literal(&why, EXEC_ERROR, EXEC_ERROR_COMM, "another rank cannot have NCCL");
    }
    if (!*ret_open) {
        g_propagate_error(error, g_steal_pointer(&why));
    }
    return true;
}

/* Behind the name of what stands in for NCCL: why it has to. */
static bool say_why(ExecCudaComm *comm, const char *why) {
    g_autofree char *name = comm->name;
    comm->name = g_strdup_printf("%s; not NCCL: %s", name, why);
    g_strdelimit(comm->name, "\n", ' ');
    return true;
}

bool exec_cuda_comm_open(ExecCudaComm *ret_comm, ExecCudaCommKind kind, const Plan *plan,
                         const ExecComm *comm, uint64_t largest_bytes, GError **error) {
    if (comm->rehearsed) {
        return exec_cuda_standin_open(ret_comm, plan, comm, error);
    }
    if (kind == EXEC_CUDA_COMM_LOCAL || (kind == EXEC_CUDA_COMM_AUTO && comm->world == 1)) {
        return exec_cuda_local_open(ret_comm, plan, comm, largest_bytes, error);
    }
    g_autoptr(GError) why = NULL;
    bool open = false;
    if (!open_nccl(ret_comm, plan, comm, &open, &why)) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    if (open) {
        return true;
    }
    if (kind == EXEC_CUDA_COMM_NCCL) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    return exec_cuda_local_open(ret_comm, plan, comm, largest_bytes, error) &&
           say_why(ret_comm, why->message);
}

void exec_cuda_comm_close(ExecCudaComm *comm) {
    if (comm->close) {
        comm->close(comm->self);
    }
    g_free(comm->name);
    *comm = (ExecCudaComm){0};
}
