/* kernels/cuda/attention/cudnn-library.h - cuDNN, loaded when attention first asks for it.
 *
 * A program that is linked against cuDNN does not begin where it is missing. This one does, and has
 * this room's own attention there. Its functions stand in one table, under their names without
 * "cudnn"; a test may fill it otherwise.
 */
#pragma once
#include <cudnn.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KERNEL_CUDNN_CALLS(CALL)                                                                   \
    CALL(GetVersion)                                                                               \
    CALL(GetErrorString)                                                                           \
    CALL(GetLastErrorString)                                                                       \
    CALL(Create)                                                                                   \
    CALL(Destroy)                                                                                  \
    CALL(SetStream)                                                                                \
    CALL(BackendCreateDescriptor)                                                                  \
    CALL(BackendDestroyDescriptor)                                                                 \
    CALL(BackendSetAttribute)                                                                      \
    CALL(BackendGetAttribute)                                                                      \
    CALL(BackendFinalize)                                                                          \
    CALL(BackendExecute)

typedef struct {
#define KERNEL_CUDNN_MEMBER(name) __typeof__(&cudnn##name) name;
    KERNEL_CUDNN_CALLS(KERNEL_CUDNN_MEMBER)
#undef KERNEL_CUDNN_MEMBER
} KernelCudnn;

/* NULL where it cannot be loaded; *ret_why then says why, for as long as the process lives. Looked
 * for once, where the loader looks (LD_LIBRARY_PATH). Any thread may ask. */
const KernelCudnn *kernel_cudnn(const char **ret_why);

#ifdef __cplusplus
}
#endif
