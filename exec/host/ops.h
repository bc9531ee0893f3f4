/* exec/host/ops.h - parts of exec_host_compute(): an op's operands and dims in the order that each
 * kernel takes them, in fp32 but where a file says so. What returns false has set the error: an
 * index outside its table, or what a rank would have to send.
 */
#pragma once

#include "exec/host/launch.h"
#include "exec/op-groups.h"
#include "kernels/host/attention/attention.h"

/* The shape of an attention op, whichever kind it is. */
KernelAttentionShape exec_host_attention_shape(const ExecTask *task);

/* The groups of exec/op-groups.h, */
void exec_host_attention(const ExecTask *task);
void exec_host_rotation(const ExecTask *task);
void exec_host_heads(const ExecTask *task);
bool exec_host_masks(const ExecTask *task, GError **error);
void exec_host_positions(const ExecTask *task);
bool exec_host_layers(const ExecTask *task, GError **error);
bool exec_host_loss(const ExecTask *task, GError **error);
void exec_host_activation(const ExecTask *task);
void exec_host_arithmetic(const ExecTask *task);
void exec_host_rows(const ExecTask *task);
void exec_host_pieces(const ExecTask *task);
bool exec_host_routing(const ExecTask *task, GError **error);
bool exec_host_experts(const ExecTask *task, GError **error);
/* and those of plan/op/ops.def. */
void exec_host_optimize(const ExecTask *task);
bool exec_host_share(const ExecTask *task, GError **error);
bool exec_host_latent(const ExecTask *task, GError **error);
void exec_host_ring(const ExecTask *task);
bool exec_host_exchange(const ExecTask *task, GError **error);
void exec_host_float8(const ExecTask *task);
void exec_host_four_bit(const ExecTask *task);
void exec_host_muon(const ExecTask *task);
void exec_host_eight_bit(const ExecTask *task);

/* The loss of layers that ranks share, op by op, and as a compiler makes it: parts of
 * exec_host_share(). False: an index outside its table. */
bool exec_host_shared_loss(const ExecTask *task);
bool exec_host_shared_compiled_loss(const ExecTask *task);
/* Rotary tables of a rank's tokens, which may be two parts of the sequences (ring.c). */
void exec_host_tables(const ExecTask *task);

/* What a kernel said of its indices: whether all lay inside; what: that holds them. */
bool exec_host_in_table(bool inside, const char *what, GError **error);
