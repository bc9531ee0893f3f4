/* kernels/cuda/attention/cudnn-library.cu - see cudnn-library.h. */
#include "kernels/cuda/attention/cudnn-library.h"

#include <dlfcn.h>

#include <mutex>
#include <string>

#define TEXT(number)  TEXT_OF(number)
#define TEXT_OF(word) #word

/* Of another major version neither functions nor their arguments need be these. */
static const char FILE_NAME[] = "libcudnn.so." TEXT(CUDNN_MAJOR);

static KernelCudnn table;
static std::string why_not; /* empty: it is here */

static void find(void *library, const char *name, void *to) {
    void *found = dlsym(library, name);
    if (!found) {
        why_not = std::string(FILE_NAME) + " has no " + name;
    }
    *(void **)to = found;
}

static void load(void) {
    void *library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL); /* kept until the process ends */
    if (!library) {
        why_not = std::string("cuDNN cannot be loaded: ") + dlerror();
        return;
    }
#define FIND(name) find(library, "cudnn" #name, &table.name);
    KERNEL_CUDNN_CALLS(FIND)
}

const KernelCudnn *kernel_cudnn(const char **ret_why) {
    static std::once_flag once;
    std::call_once(once, load);
    *ret_why = why_not.empty() ? NULL : why_not.c_str();
    return why_not.empty() ? &table : NULL;
}
