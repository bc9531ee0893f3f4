/* exec/cuda/memory/virtual.h - addresses of the GPU, and pages of memory mapped over them.
 *
 * The driver's interface for it (cuMem...) is asked for at run time, so that the program starts
 * where there is no driver. Of the current device. Threads: the host's.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

bool exec_cuda_virtual_is_here(void);
/* These four may be called only if it is here. False with an error: the driver has failed; false
 * without one: there is no room. */
bool exec_cuda_virtual_reserve(uint64_t bytes, gpointer *ret_address, GError **error);
bool exec_cuda_virtual_release(gpointer address, uint64_t bytes, GError **error);
/* All pages or none. */
bool exec_cuda_virtual_map(gpointer address, uint64_t page_bytes, uint64_t n_pages, GError **error);
bool exec_cuda_virtual_unmap(gpointer address, uint64_t page_bytes, uint64_t n_pages,
                             GError **error);
