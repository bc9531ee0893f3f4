/* exec/host/heads.h - attention as it is written in Python, op by op: rotary embedding, scores in
 * memory, relative bias. Layouts are those of plan/op/ops.def.
 */
#pragma once

#include "exec/host/launch.h"

/* A row is one head of one token. */
void exec_heads_negate_half(const ExecTask *task);
void exec_heads_join_halves(const ExecTask *task);
void exec_heads_negate_columns(const ExecTask *task);
void exec_heads_join_columns(const ExecTask *task);
void exec_heads_put_columns(const ExecTask *task);
void exec_heads_table_mul_columns(const ExecTask *task);
void exec_heads_turn(const ExecTask *task);
void exec_heads_table_mul(const ExecTask *task);
void exec_heads_table_mul_backward(const ExecTask *task);

void exec_heads_repeat_heads(const ExecTask *task);
void exec_heads_sum_heads(const ExecTask *task);
void exec_heads_copy(const ExecTask *task);
void exec_heads_matmul(const ExecTask *task);
void exec_heads_upper_mask(const ExecTask *task);
void exec_heads_masked_fill(const ExecTask *task);

void exec_heads_distances(const ExecTask *task);
void exec_heads_int64_numbers(const ExecTask *task); /* absolute, clamp */
void exec_heads_positive_mask(const ExecTask *task);
void exec_heads_bias_add(const ExecTask *task);
bool exec_heads_bias_backward(const ExecTask *task); /* false: an index outside its table */
