/* exec/host/fused.h - the ops of fused kernels (kernels = fused in a strategy).
 *
 * Each is one kernel of kernels/host or a row of them over rows that stay in cache, so that on the
 * host too an op's memory is what the plan says and nothing more.
 */
#pragma once

#include "exec/host/launch.h"

void exec_fused_rope(const ExecTask *task);
void exec_fused_swiglu(const ExecTask *task);
void exec_fused_swiglu_backward(const ExecTask *task);
void exec_fused_add_norm(const ExecTask *task); /* RMSNorm or LayerNorm, as the op says */
void exec_fused_add_norm_backward(const ExecTask *task);
void exec_fused_linear_gelu(const ExecTask *task);
void exec_fused_linear_dx_gelu(const ExecTask *task);
void exec_fused_linear_dw_db(const ExecTask *task);
/* False: a target outside the classes. */
bool exec_fused_cross_entropy(const ExecTask *task);
bool exec_fused_cross_entropy_backward(const ExecTask *task);
bool exec_fused_compiled_loss(const ExecTask *task);
bool exec_fused_compiled_loss_backward(const ExecTask *task);
bool exec_fused_chunked_loss(const ExecTask *task);
