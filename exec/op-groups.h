/* exec/op-groups.h - ops that one file of each device carries out.
 *
 * A device's compute.c hands an op to the file of its group (host/heads.c, cuda/ops/heads.c). Some
 * groups are those that plan/op/ops.def names itself, the others stand here. Each is a type, by
 * which its files switch without `default`. So the compiler names an op that is in no group (by
 * op-groups.c), or in two (its name is there already), an op that a group's file lacks, and one
 * that a file has and its group has not.
 */
#pragma once

#include "plan/op/op.h"

/* One kernel for all of a layer's heads. */
#define EXEC_ATTENTION_OPS(X)                                                                      \
    X(ATTENTION)                                                                                   \
    X(ATTENTION_BACKWARD)                                                                          \
    X(ATTENTION_BACKWARD_ORDERED)                                                                  \
    X(ATTENTION_BACKWARD_QKV)

/* Rotary embedding, and columns of heads of which a part is turned. */
#define EXEC_ROTATION_OPS(X)                                                                       \
    X(ROPE)                                                                                        \
    X(ROPE_TABLES)                                                                                 \
    X(TURN_TABLE)                                                                                  \
    X(TURN)                                                                                        \
    X(CONJUGATE)                                                                                   \
    X(NEGATE_HALF)                                                                                 \
    X(JOIN_HALVES)                                                                                 \
    X(NEGATE_COLUMNS)                                                                              \
    X(COPY_COLUMNS)                                                                                \
    X(JOIN_COLUMNS)                                                                                \
    X(PUT_COLUMNS)                                                                                 \
    X(TABLE_MUL_COLUMNS)                                                                           \
    X(TABLE_MUL_PART)                                                                              \
    X(TIMES_COLUMNS)                                                                               \
    X(TABLE_MUL)                                                                                   \
    X(TABLE_MUL_BACKWARD)

/* Attention with its scores in memory, and heads that several share. */
#define EXEC_HEADS_OPS(X)                                                                          \
    X(REPEAT_HEADS)                                                                                \
    X(SUM_HEADS)                                                                                   \
    X(HEADS_COPY)                                                                                  \
    X(HEADS_MATMUL)                                                                                \
    X(JOIN_SINKS)                                                                                  \
    X(SUM_SINKS)

/* What is kept from attention, and what is added to its scores by distance. */
#define EXEC_MASK_OPS(X)                                                                           \
    X(ONES_MASK)                                                                                   \
    X(UPPER_MASK)                                                                                  \
    X(MASKED_FILL)                                                                                 \
    X(BACK)                                                                                        \
    X(LATER_MASK)                                                                                  \
    X(UPTO_MASK)                                                                                   \
    X(BOTH_MASK)                                                                                   \
    X(MASK_TO_BIAS)                                                                                \
    X(DISTANCES)                                                                                   \
    X(ABSOLUTE)                                                                                    \
    X(CLAMP)                                                                                       \
    X(POSITIVE_MASK)                                                                               \
    X(BIAS)                                                                                        \
    X(BIAS_ADD)                                                                                    \
    X(BIAS_BACKWARD)

/* What a pass makes of nothing but positions and labels. */
#define EXEC_POSITION_OPS(X)                                                                       \
    X(ARANGE)                                                                                      \
    X(ROPE_FREQUENCIES)                                                                            \
    X(SHIFT)                                                                                       \
    X(AS_NUMBER)                                                                                   \
    X(OUTER)                                                                                       \
    X(COS)                                                                                         \
    X(SIN)                                                                                         \
    X(PAD_TARGETS)                                                                                 \
    X(DROP_FIRST)                                                                                  \
    X(DROP_LAST)

/* Layers that have parameters: tables, products, norms. */
#define EXEC_PRODUCT_OPS(X)                                                                        \
    X(LINEAR)                                                                                      \
    X(LINEAR_PARTS)                                                                                \
    X(LINEAR_GELU)                                                                                 \
    X(LINEAR_DX)                                                                                   \
    X(LINEAR_DW)                                                                                   \
    X(LINEAR_DX_GELU)                                                                              \
    X(LINEAR_DW_DB)
#define EXEC_NORM_OPS(X)                                                                           \
    X(LAYERNORM)                                                                                   \
    X(ADD_LAYERNORM)                                                                               \
    X(RMSNORM)                                                                                     \
    X(ADD_RMSNORM)                                                                                 \
    X(LAYERNORM_BACKWARD)                                                                          \
    X(ADD_LAYERNORM_BACKWARD)                                                                      \
    X(RMSNORM_BACKWARD)                                                                            \
    X(ADD_RMSNORM_BACKWARD)
#define EXEC_LAYER_OPS(X)                                                                          \
    X(EMBEDDING)                                                                                   \
    X(EMBEDDING_BACKWARD)                                                                          \
    EXEC_PRODUCT_OPS(X)                                                                            \
    EXEC_NORM_OPS(X)

/* Softmax, and losses. */
#define EXEC_LOSS_OPS(X)                                                                           \
    X(SOFTMAX)                                                                                     \
    X(SOFTMAX_BACKWARD)                                                                            \
    X(LOG_SOFTMAX)                                                                                 \
    X(LOG_SOFTMAX_BACKWARD)                                                                        \
    X(NLL_LOSS)                                                                                    \
    X(NLL_LOSS_BACKWARD)                                                                           \
    X(CROSS_ENTROPY)                                                                               \
    X(CROSS_ENTROPY_BACKWARD)                                                                      \
    X(COMPILED_LOSS)                                                                               \
    X(COMPILED_LOSS_BACKWARD)                                                                      \
    X(CHUNKED_LOSS)

/* Activations. */
#define EXEC_ACTIVATION_OPS(X)                                                                     \
    X(GELU_TANH)                                                                                   \
    X(GELU_TANH_BACKWARD)                                                                          \
    X(GELU_ERF)                                                                                    \
    X(GELU_ERF_BACKWARD)                                                                           \
    X(TANH)                                                                                        \
    X(TANH_BACKWARD)                                                                               \
    X(RELU)                                                                                        \
    X(RELU_BACKWARD)                                                                               \
    X(SILU)                                                                                        \
    X(SILU_BACKWARD)                                                                               \
    X(SWIGLU)                                                                                      \
    X(SWIGLU_BACKWARD)                                                                             \
    X(DROPOUT)                                                                                     \
    X(DROPOUT_BACKWARD)                                                                            \
    X(CLAMP_COLUMNS)                                                                               \
    X(LIMIT_MASK)                                                                                  \
    X(WHERE_MASK)

/* Arithmetic, element by element. */
#define EXEC_ARITHMETIC_OPS(X)                                                                     \
    X(ADD)                                                                                         \
    X(MUL)                                                                                         \
    X(SUB)                                                                                         \
    X(FILL)                                                                                        \
    X(SCALE)                                                                                       \
    X(BUCKET_COPY_IN)                                                                              \
    X(ACCUMULATE)                                                                                  \
    X(CAST)                                                                                        \
    X(POWER)                                                                                       \
    X(ADD_NUMBER)                                                                                  \
    X(TIMES_NUMBER)                                                                                \
    X(ADD_SCALED)                                                                                  \
    X(ADD_SCALED_BACKWARD)                                                                         \
    X(AT_MOST)                                                                                     \
    X(UPDATE_SCALE)

/* Arithmetic by rows and columns, and over all. */
#define EXEC_ROWS_OPS(X)                                                                           \
    X(MUL_ROW)                                                                                     \
    X(MUL_COLUMN)                                                                                  \
    X(SUM_COLUMNS)                                                                                 \
    X(SPREAD)                                                                                      \
    X(SUM_ROWS)                                                                                    \
    X(MEAN)                                                                                        \
    X(MEAN_BACKWARD)                                                                               \
    X(NORM)

/* Copies between whole parameters and what ranks hold of them, and of parts side by side. */
#define EXEC_PIECES_OPS(X)                                                                         \
    X(COPY)                                                                                        \
    X(JOIN_REST)                                                                                   \
    X(PART)                                                                                        \
    X(FLATTEN)                                                                                     \
    X(GATHER_COPY_IN)                                                                              \
    X(GATHER_COPY_OUT)                                                                             \
    X(REDUCE_COPY_IN)                                                                              \
    X(BUCKET_COPY_OUT)                                                                             \
    X(CONCAT_COLUMNS)

/* A mixture of experts: which rows go to which, and in what order; */
#define EXEC_ROUTING_OPS(X)                                                                        \
    X(TOP_K)                                                                                       \
    X(PICK_COLUMNS)                                                                                \
    X(PICK_COLUMNS_BACKWARD)                                                                       \
    X(TOTAL_COLUMNS)                                                                               \
    X(ADD_COLUMN)                                                                                  \
    X(DIVIDE_COLUMN)                                                                               \
    X(COUNT)                                                                                       \
    X(SORT)                                                                                        \
    X(DIVIDE_DOWN)                                                                                 \
    X(REMAINDER)                                                                                   \
    X(ENDS)                                                                                        \
    X(NARROW)                                                                                      \
    X(TALLY)                                                                                       \
    X(TALLY_ENDS)                                                                                  \
    X(INVERT)

/* and what is done to the rows. */
#define EXEC_EXPERTS_OPS(X)                                                                        \
    X(GROUPED_LINEAR)                                                                              \
    X(GROUPED_LINEAR_DX)                                                                           \
    X(GROUPED_LINEAR_DW)                                                                           \
    X(GROUPED_PARTS)                                                                               \
    X(GROUPED_PRODUCT)                                                                             \
    X(ROWS_OF)                                                                                     \
    X(ADD_TO_ROWS)                                                                                 \
    X(SUM_EACH)                                                                                    \
    X(REPEAT_EACH)

/* What is no kernel, which a device's launch.c does: data, weights, the way to the host's memory,
 * and collectives. With the groups TRACED_OP and HOST_OP. */
#define EXEC_LAUNCH_OPS(X)                                                                         \
    X(BATCH)                                                                                       \
    X(INIT_NORMAL)                                                                                 \
    X(INIT_FILL)                                                                                   \
    X(INIT_NIBBLES)                                                                                \
    X(TO_HOST)                                                                                     \
    X(FROM_HOST)                                                                                   \
    X(FILL_EMPTY)

/* Parts of groups of ops.def that have a function of their own: of LIST_OP a foreach optimizer's
 * steps; of SHARE_OP the loss of logits of which each rank has some columns, op by op, and as a
 * compiler makes it. */
#define EXEC_FOREACH_OPS(X)                                                                        \
    X(ADAM_DECAY)                                                                                  \
    X(ADAM_MOMENT)                                                                                 \
    X(ADAM_SQUARE_DECAY)                                                                           \
    X(ADAM_SQUARE)                                                                                 \
    X(ADAM_SQRT)                                                                                   \
    X(ADAM_DIVIDE)                                                                                 \
    X(ADAM_CORRECT)                                                                                \
    X(ADAM_EPS)                                                                                    \
    X(ADAM_UPDATE)                                                                                 \
    X(GRADIENT_DECAY)                                                                              \
    X(SGD_UPDATE)                                                                                  \
    X(MOMENTUM_DECAY)                                                                              \
    X(MOMENTUM_START)                                                                              \
    X(MOMENTUM_ADD)
#define EXEC_SHARED_LOSS_OPS(X)                                                                    \
    X(MAX_COLUMNS)                                                                                 \
    X(SUB_COLUMN)                                                                                  \
    X(EXP)                                                                                         \
    X(LOG)                                                                                         \
    X(SAFE_TARGET)                                                                                 \
    X(PICK_COLUMN)                                                                                 \
    X(KEEP_COUNTED)                                                                                \
    X(COUNT_TARGETS)                                                                               \
    X(DIVIDE)                                                                                      \
    X(PICKED_GRADIENT)                                                                             \
    X(PUT_COLUMN)                                                                                  \
    X(SPREAD_COUNTED)
#define EXEC_SHARED_COMPILED_LOSS_OPS(X)                                                           \
    X(LARGEST)                                                                                     \
    X(SUM_OF_EXPS)                                                                                 \
    X(PICK_TARGETS)                                                                                \
    X(MEAN_PICKED)                                                                                 \
    X(ADD_SOFTMAX)                                                                                 \
    X(SCALE_COUNTED)

/* ---- groups as types ------------------------------------------------------------------------ */

#define EXEC_VALUE(id)      EXEC_OP_##id = PLAN_OP_##id,
#define EXEC_PART_VALUE(id) EXEC_PART_OP_##id = PLAN_OP_##id, /* of a part of a group */
#define EXEC_CASE(id)       case PLAN_OP_##id:                /* of a switch, for all of a group */

typedef enum {
    EXEC_ATTENTION_OPS(EXEC_VALUE)
} ExecAttentionOp;
typedef enum {
    EXEC_ROTATION_OPS(EXEC_VALUE)
} ExecRotationOp;
typedef enum {
    EXEC_HEADS_OPS(EXEC_VALUE)
} ExecHeadsOp;
typedef enum {
    EXEC_MASK_OPS(EXEC_VALUE)
} ExecMaskOp;
typedef enum {
    EXEC_POSITION_OPS(EXEC_VALUE)
} ExecPositionOp;
typedef enum {
    EXEC_LAYER_OPS(EXEC_VALUE)
} ExecLayerOp;
typedef enum {
    EXEC_PRODUCT_OPS(EXEC_PART_VALUE)
} ExecProductOp;
typedef enum {
    EXEC_NORM_OPS(EXEC_PART_VALUE)
} ExecNormOp;
typedef enum {
    EXEC_LOSS_OPS(EXEC_VALUE)
} ExecLossOp;
typedef enum {
    EXEC_ACTIVATION_OPS(EXEC_VALUE)
} ExecActivationOp;
typedef enum {
    EXEC_ARITHMETIC_OPS(EXEC_VALUE)
} ExecArithmeticOp;
typedef enum {
    EXEC_ROWS_OPS(EXEC_VALUE)
} ExecRowsOp;
typedef enum {
    EXEC_PIECES_OPS(EXEC_VALUE)
} ExecPiecesOp;
typedef enum {
    EXEC_ROUTING_OPS(EXEC_VALUE)
} ExecRoutingOp;
typedef enum {
    EXEC_EXPERTS_OPS(EXEC_VALUE)
} ExecExpertsOp;
typedef enum {
#define LIST_OP(id, ...) EXEC_VALUE(id)
#include "plan/op/ops.def"
} ExecListOp;
typedef enum {
    EXEC_FOREACH_OPS(EXEC_PART_VALUE)
} ExecForeachOp;
typedef enum {
#define SHARE_OP(id, ...) EXEC_VALUE(id)
#include "plan/op/ops.def"
} ExecShareOp;
typedef enum {
    EXEC_SHARED_LOSS_OPS(EXEC_PART_VALUE)
} ExecSharedLossOp;
typedef enum {
    EXEC_SHARED_COMPILED_LOSS_OPS(EXEC_PART_VALUE)
} ExecSharedCompiledLossOp;
typedef enum {
#define LATENT_OP(id, ...) EXEC_VALUE(id)
#include "plan/op/ops.def"
} ExecLatentOp;
typedef enum {
#define RING_OP(id, ...) EXEC_VALUE(id)
#include "plan/op/ops.def"
} ExecRingOp;
typedef enum {
    EXEC_VALUE(PLACE_ROWS)
#define EXCHANGE_OP(id, ...) EXEC_VALUE(id)
#include "plan/op/ops.def"
} ExecExchangeOp;
typedef enum {
#define FLOAT8_OP(id, ...) EXEC_VALUE(id)
#include "plan/op/ops.def"
} ExecFloat8Op;
typedef enum {
#define FOUR_BIT_OP(id, ...) EXEC_VALUE(id)
#include "plan/op/ops.def"
} ExecFourBitOp;
typedef enum {
#define MUON_OP(id, ...) EXEC_VALUE(id)
#include "plan/op/ops.def"
} ExecMuonOp;
typedef enum {
#define EIGHT_BIT_OP(id, ...) EXEC_VALUE(id)
#include "plan/op/ops.def"
} ExecEightBitOp;
typedef enum {
    EXEC_LAUNCH_OPS(EXEC_VALUE)
#define HOST_OP(id, ...) EXEC_VALUE(id)
#include "plan/op/ops.def"
#define TRACED_OP(id, ...) EXEC_VALUE(id)
#include "plan/op/ops.def"
#define COLLECTIVE(id, ...) EXEC_VALUE(id)
#include "plan/op/collectives.def"
#undef COLLECTIVE
} ExecLaunchOp;

typedef enum {
    EXEC_GROUP_ATTENTION,
    EXEC_GROUP_ROTATION,
    EXEC_GROUP_HEADS,
    EXEC_GROUP_MASK,
    EXEC_GROUP_POSITION,
    EXEC_GROUP_LAYER,
    EXEC_GROUP_LOSS,
    EXEC_GROUP_ACTIVATION,
    EXEC_GROUP_ARITHMETIC,
    EXEC_GROUP_ROWS,
    EXEC_GROUP_PIECES,
    EXEC_GROUP_ROUTING,
    EXEC_GROUP_EXPERTS,
    EXEC_GROUP_LIST,
    EXEC_GROUP_SHARE,
    EXEC_GROUP_LATENT,
    EXEC_GROUP_RING,
    EXEC_GROUP_EXCHANGE,
    EXEC_GROUP_FLOAT8,
    EXEC_GROUP_FOUR_BIT,
    EXEC_GROUP_MUON,
    EXEC_GROUP_EIGHT_BIT,
    EXEC_GROUP_LAUNCH /* no kernel */
} ExecOpGroup;

ExecOpGroup exec_op_group(PlanOpKind kind);
