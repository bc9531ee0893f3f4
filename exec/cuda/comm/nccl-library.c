#include "exec/cuda/comm/nccl-library.h"

#include <dlfcn.h>
#include <stdbool.h>

#include "exec/error.h"

/* A library of another major version may lack these functions, or take other arguments. */
#define FILE_NAME "libnccl.so." G_STRINGIFY(NCCL_MAJOR)

static bool find(gpointer library, const char *name, gpointer to, GError **error) {
    *(gpointer *)to = dlsym(library, name);
    if (!*(gpointer *)to) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_COMM, "%s is too old: it has no %s", FILE_NAME,
                    name);
    }
    return *(gpointer *)to != NULL;
}

const ExecCudaNccl *exec_cuda_nccl(GError **error) {
    static ExecCudaNccl table;
    gpointer library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL); /* kept until the process ends */
    if (!library) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_COMM, "NCCL cannot be loaded: %s", dlerror());
        return NULL;
    }
    bool has_all = true;
#define FIND(name) has_all = has_all && find(library, "nccl" #name, &table.name, error);
    EXEC_CUDA_NCCL_CALLS(FIND)
    return has_all ? &table : NULL;
}
