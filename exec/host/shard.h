/* exec/host/shard.h - copies between whole parameters and what ranks hold of them.
 *
 * Layouts are those of plan/flavours/fsdp2-gather.c and fsdp2-reduce.c. Numbers are moved as they
 * are stored, and converted where the two sides are stored differently.
 */
#pragma once

#include "exec/host/launch.h"

void exec_shard_copy(const ExecTask *task); /* a copy or a cast */
void exec_shard_part(const ExecTask *task); /* this rank's of a whole */
void exec_shard_flatten(const ExecTask *task);
void exec_shard_gather_copy_in(const ExecTask *task);
void exec_shard_gather_copy_out(const ExecTask *task);
void exec_shard_reduce_copy_in(const ExecTask *task);
void exec_shard_bucket_copy_out(const ExecTask *task);
