/* cli/what-if/simple.h - what a simple strategy has: choose and diagnose hold the same one against
 * another.
 */
#pragma once

/* What a simple strategy has, beside its sharding: PyTorch's defaults. */
#define CLI_PLAIN_SETTINGS                                                                         \
    "flavour=auto replicate=0 wrap=block wrap_ends=root backward_prefetch=pre "                    \
    "forward_prefetch=no "                                                                         \
    "reshard_after_forward=default limit_all_gathers=2 offload=none expert=1"

/* And where each rank has all layers and its own sequences. */
#define CLI_UNSHARED_SETTINGS                                                                      \
    "tensor=1 tensor_plan=torchtitan sequence_parallel=yes async_tensor=no context=1 pipeline=1 "  \
    "pipeline_schedule=1f1b pipeline_stages=1 pipeline_split=torchtitan"
