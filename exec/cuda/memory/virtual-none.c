/* exec/cuda/memory/virtual-none.c - where the driver's interface is not there: the emulator. */
#include "exec/cuda/memory/virtual.h"

bool exec_cuda_virtual_is_here(void) {
    return false;
}

bool exec_cuda_virtual_reserve(uint64_t bytes, gpointer *ret_address) {
    g_assert_not_reached();
}

void exec_cuda_virtual_release(gpointer address, uint64_t bytes) {
    g_assert_not_reached();
}

bool exec_cuda_virtual_map(gpointer address, uint64_t page_bytes, uint64_t n_pages) {
    g_assert_not_reached();
}

void exec_cuda_virtual_unmap(gpointer address, uint64_t page_bytes, uint64_t n_pages) {
    g_assert_not_reached();
}
