/* exec/program/gpu-module.c - gpu.h where this was built with CUDA: finds the module and loads it.
 */
#include "exec/program/gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "exec/error.h"

#define MODULE "foreshard-cuda.so"

/* Beside this program (a build tree, an unpacked bundle); from there on as installed, wherever that
 * was moved to; or where it was installed. */
static char *find_module(void) {
    g_autofree char *self = realpath((const char *)getauxval(AT_EXECFN), NULL);
    g_autofree char *folder = g_path_get_dirname(self ? self : ".");
    const char *const places[] = {".", "../" EXEC_LIBRARIES "/foreshard"};
    for (unsigned i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *path = g_build_filename(folder, places[i], MODULE, NULL);
        if (g_file_test(path, G_FILE_TEST_EXISTS)) {
            return g_steal_pointer(&path);
        }
    }
    return g_build_filename(EXEC_PREFIX, EXEC_LIBRARIES, "foreshard", MODULE, NULL);
}

const ExecDevice *exec_gpu_device(GError **error) {
    g_autofree char *path = find_module();
    gpointer module = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* kept until the process ends */
    const ExecDevice *device = module ? dlsym(module, "exec_cuda") : NULL;
    if (!device) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED,
                    "the GPU's part of this program cannot be loaded: %s; CUDA's libraries, cuDNN "
                    "and NCCL are looked for where LD_LIBRARY_PATH says, too",
                    dlerror());
    }
    return device;
}
