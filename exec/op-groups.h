/* exec/op-groups.h - ops that one file of each device carries out, as labels of a switch.
 *
 * Beside the groups that plan/op/ops.def names itself. A device's compute.c has each once, and
 * hands it to the file of that name (host/heads.c, cuda/ops/heads.c); there the compiler names an
 * op that stands in no group.
 */
#pragma once

#include "plan/op/op.h"

/* One kernel for all of a layer's heads. */
#define EXEC_ATTENTION_OPS                                                                         \
    case PLAN_OP_ATTENTION:                                                                        \
    case PLAN_OP_ATTENTION_BACKWARD:                                                               \
    case PLAN_OP_ATTENTION_BACKWARD_ORDERED:                                                       \
    case PLAN_OP_ATTENTION_BACKWARD_QKV

/* Rotary embedding, and attention with its scores in memory. */
#define EXEC_HEADS_OPS                                                                             \
    case PLAN_OP_ROPE:                                                                             \
    case PLAN_OP_ROPE_TABLES:                                                                      \
    case PLAN_OP_TURN_TABLE:                                                                       \
    case PLAN_OP_TURN:                                                                             \
    case PLAN_OP_CONJUGATE:                                                                        \
    case PLAN_OP_NEGATE_HALF:                                                                      \
    case PLAN_OP_JOIN_HALVES:                                                                      \
    case PLAN_OP_NEGATE_COLUMNS:                                                                   \
    case PLAN_OP_COPY_COLUMNS:                                                                     \
    case PLAN_OP_JOIN_COLUMNS:                                                                     \
    case PLAN_OP_PUT_COLUMNS:                                                                      \
    case PLAN_OP_TABLE_MUL_COLUMNS:                                                                \
    case PLAN_OP_TABLE_MUL:                                                                        \
    case PLAN_OP_TABLE_MUL_BACKWARD:                                                               \
    case PLAN_OP_REPEAT_HEADS:                                                                     \
    case PLAN_OP_SUM_HEADS:                                                                        \
    case PLAN_OP_HEADS_COPY:                                                                       \
    case PLAN_OP_HEADS_MATMUL

/* What is kept from attention, and what is added to its scores by distance. */
#define EXEC_MASK_OPS                                                                              \
    case PLAN_OP_ONES_MASK:                                                                        \
    case PLAN_OP_UPPER_MASK:                                                                       \
    case PLAN_OP_MASKED_FILL:                                                                      \
    case PLAN_OP_BACK:                                                                             \
    case PLAN_OP_LATER_MASK:                                                                       \
    case PLAN_OP_UPTO_MASK:                                                                        \
    case PLAN_OP_BOTH_MASK:                                                                        \
    case PLAN_OP_MASK_TO_BIAS:                                                                     \
    case PLAN_OP_DISTANCES:                                                                        \
    case PLAN_OP_ABSOLUTE:                                                                         \
    case PLAN_OP_CLAMP:                                                                            \
    case PLAN_OP_POSITIVE_MASK:                                                                    \
    case PLAN_OP_BIAS:                                                                             \
    case PLAN_OP_BIAS_ADD:                                                                         \
    case PLAN_OP_BIAS_BACKWARD

/* What a pass makes of nothing but positions and labels. */
#define EXEC_POSITION_OPS                                                                          \
    case PLAN_OP_ARANGE:                                                                           \
    case PLAN_OP_ROPE_FREQUENCIES:                                                                 \
    case PLAN_OP_SHIFT:                                                                            \
    case PLAN_OP_AS_NUMBER:                                                                        \
    case PLAN_OP_OUTER:                                                                            \
    case PLAN_OP_COS:                                                                              \
    case PLAN_OP_SIN:                                                                              \
    case PLAN_OP_PAD_TARGETS:                                                                      \
    case PLAN_OP_DROP_FIRST:                                                                       \
    case PLAN_OP_DROP_LAST

/* Layers that have parameters: tables, products, norms. */
#define EXEC_LAYER_OPS                                                                             \
    case PLAN_OP_EMBEDDING:                                                                        \
    case PLAN_OP_EMBEDDING_BACKWARD:                                                               \
    case PLAN_OP_LINEAR:                                                                           \
    case PLAN_OP_LINEAR_PARTS:                                                                     \
    case PLAN_OP_LINEAR_GELU:                                                                      \
    case PLAN_OP_LINEAR_DX:                                                                        \
    case PLAN_OP_LINEAR_DW:                                                                        \
    case PLAN_OP_LINEAR_DX_GELU:                                                                   \
    case PLAN_OP_LINEAR_DW_DB:                                                                     \
    case PLAN_OP_LAYERNORM:                                                                        \
    case PLAN_OP_ADD_LAYERNORM:                                                                    \
    case PLAN_OP_RMSNORM:                                                                          \
    case PLAN_OP_ADD_RMSNORM:                                                                      \
    case PLAN_OP_LAYERNORM_BACKWARD:                                                               \
    case PLAN_OP_ADD_LAYERNORM_BACKWARD:                                                           \
    case PLAN_OP_RMSNORM_BACKWARD:                                                                 \
    case PLAN_OP_ADD_RMSNORM_BACKWARD

/* Softmax, and losses. */
#define EXEC_LOSS_OPS                                                                              \
    case PLAN_OP_SOFTMAX:                                                                          \
    case PLAN_OP_SOFTMAX_BACKWARD:                                                                 \
    case PLAN_OP_LOG_SOFTMAX:                                                                      \
    case PLAN_OP_LOG_SOFTMAX_BACKWARD:                                                             \
    case PLAN_OP_NLL_LOSS:                                                                         \
    case PLAN_OP_NLL_LOSS_BACKWARD:                                                                \
    case PLAN_OP_CROSS_ENTROPY:                                                                    \
    case PLAN_OP_CROSS_ENTROPY_BACKWARD:                                                           \
    case PLAN_OP_COMPILED_LOSS:                                                                    \
    case PLAN_OP_COMPILED_LOSS_BACKWARD:                                                           \
    case PLAN_OP_CHUNKED_LOSS

/* Activations. */
#define EXEC_ACTIVATION_OPS                                                                        \
    case PLAN_OP_GELU_TANH:                                                                        \
    case PLAN_OP_GELU_TANH_BACKWARD:                                                               \
    case PLAN_OP_GELU_ERF:                                                                         \
    case PLAN_OP_GELU_ERF_BACKWARD:                                                                \
    case PLAN_OP_TANH:                                                                             \
    case PLAN_OP_TANH_BACKWARD:                                                                    \
    case PLAN_OP_RELU:                                                                             \
    case PLAN_OP_RELU_BACKWARD:                                                                    \
    case PLAN_OP_SILU:                                                                             \
    case PLAN_OP_SILU_BACKWARD:                                                                    \
    case PLAN_OP_SWIGLU:                                                                           \
    case PLAN_OP_SWIGLU_BACKWARD:                                                                  \
    case PLAN_OP_DROPOUT:                                                                          \
    case PLAN_OP_DROPOUT_BACKWARD

/* Arithmetic: element by element, by rows and columns, and over all. */
#define EXEC_ARITHMETIC_OPS                                                                        \
    case PLAN_OP_ADD:                                                                              \
    case PLAN_OP_MUL:                                                                              \
    case PLAN_OP_MUL_ROW:                                                                          \
    case PLAN_OP_MUL_COLUMN:                                                                       \
    case PLAN_OP_SUM_COLUMNS:                                                                      \
    case PLAN_OP_SPREAD:                                                                           \
    case PLAN_OP_SUM_ROWS:                                                                         \
    case PLAN_OP_MEAN:                                                                             \
    case PLAN_OP_MEAN_BACKWARD:                                                                    \
    case PLAN_OP_NORM:                                                                             \
    case PLAN_OP_FILL:                                                                             \
    case PLAN_OP_SCALE:                                                                            \
    case PLAN_OP_BUCKET_COPY_IN:                                                                   \
    case PLAN_OP_ACCUMULATE:                                                                       \
    case PLAN_OP_CAST:                                                                             \
    case PLAN_OP_POWER:                                                                            \
    case PLAN_OP_ADD_NUMBER:                                                                       \
    case PLAN_OP_TIMES_NUMBER:                                                                     \
    case PLAN_OP_AT_MOST:                                                                          \
    case PLAN_OP_UPDATE_SCALE

/* Copies between whole parameters and what ranks hold of them, and of parts side by side. */
#define EXEC_PIECES_OPS                                                                            \
    case PLAN_OP_COPY:                                                                             \
    case PLAN_OP_JOIN_REST:                                                                        \
    case PLAN_OP_PART:                                                                             \
    case PLAN_OP_FLATTEN:                                                                          \
    case PLAN_OP_GATHER_COPY_IN:                                                                   \
    case PLAN_OP_GATHER_COPY_OUT:                                                                  \
    case PLAN_OP_REDUCE_COPY_IN:                                                                   \
    case PLAN_OP_BUCKET_COPY_OUT:                                                                  \
    case PLAN_OP_CONCAT_COLUMNS

/* A mixture of experts. */
#define EXEC_EXPERTS_OPS                                                                           \
    case PLAN_OP_TOP_K:                                                                            \
    case PLAN_OP_PICK_COLUMNS:                                                                     \
    case PLAN_OP_PICK_COLUMNS_BACKWARD:                                                            \
    case PLAN_OP_TOTAL_COLUMNS:                                                                    \
    case PLAN_OP_ADD_COLUMN:                                                                       \
    case PLAN_OP_DIVIDE_COLUMN:                                                                    \
    case PLAN_OP_COUNT:                                                                            \
    case PLAN_OP_SORT:                                                                             \
    case PLAN_OP_DIVIDE_DOWN:                                                                      \
    case PLAN_OP_REMAINDER:                                                                        \
    case PLAN_OP_ENDS:                                                                             \
    case PLAN_OP_GROUPED_LINEAR:                                                                   \
    case PLAN_OP_GROUPED_LINEAR_DX:                                                                \
    case PLAN_OP_GROUPED_LINEAR_DW:                                                                \
    case PLAN_OP_GROUPED_PARTS:                                                                    \
    case PLAN_OP_ROWS_OF:                                                                          \
    case PLAN_OP_ADD_TO_ROWS:                                                                      \
    case PLAN_OP_NARROW:                                                                           \
    case PLAN_OP_TALLY:                                                                            \
    case PLAN_OP_TALLY_ENDS:                                                                       \
    case PLAN_OP_INVERT:                                                                           \
    case PLAN_OP_SUM_EACH:                                                                         \
    case PLAN_OP_REPEAT_EACH

/* What is no kernel, which a device's launch.c does: data, weights, the way to the host's memory,
 * and collectives. With the groups TRACED_OP and HOST_OP. */
#define EXEC_LAUNCH_OPS                                                                            \
    case PLAN_OP_BATCH:                                                                            \
    case PLAN_OP_INIT_NORMAL:                                                                      \
    case PLAN_OP_INIT_FILL:                                                                        \
    case PLAN_OP_TO_HOST:                                                                          \
    case PLAN_OP_FROM_HOST:                                                                        \
    case PLAN_OP_FILL_EMPTY
