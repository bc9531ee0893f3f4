/* exec/cuda/measure/costs.h - what a GPU takes for each piece of a training step, measured.
 *
 * Beside the lines of exec/costs.h:
 *   gpu NAME; fact NAME NUMBER              multiprocessors, capability, bytes, GB/s
 *   product DTYPE m n k us                  [m, k] times [n, k]^T
 *   attention DTYPE batch heads kv_heads seq head_dim causal backward us
 * What takes more than an eighth of the GPU's memory is left out. Threads: the host's.
 */
#pragma once

#include "exec/costs.h"

bool exec_cuda_costs(const ExecCosts *costs, GError **error);
