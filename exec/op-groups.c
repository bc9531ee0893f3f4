#include "exec/op-groups.h"

ExecOpGroup exec_op_group(PlanOpKind kind) {
    switch (kind) {
        EXEC_ATTENTION_OPS(EXEC_CASE)
        return EXEC_GROUP_ATTENTION;
        EXEC_ROTATION_OPS(EXEC_CASE)
        return EXEC_GROUP_ROTATION;
        EXEC_HEADS_OPS(EXEC_CASE)
        return EXEC_GROUP_HEADS;
        EXEC_MASK_OPS(EXEC_CASE)
        return EXEC_GROUP_MASK;
        EXEC_POSITION_OPS(EXEC_CASE)
        return EXEC_GROUP_POSITION;
        EXEC_LAYER_OPS(EXEC_CASE)
        return EXEC_GROUP_LAYER;
        EXEC_LOSS_OPS(EXEC_CASE)
        return EXEC_GROUP_LOSS;
        EXEC_ACTIVATION_OPS(EXEC_CASE)
        return EXEC_GROUP_ACTIVATION;
        EXEC_ARITHMETIC_OPS(EXEC_CASE)
        return EXEC_GROUP_ARITHMETIC;
        EXEC_ROWS_OPS(EXEC_CASE)
        return EXEC_GROUP_ROWS;
        EXEC_PIECES_OPS(EXEC_CASE)
        return EXEC_GROUP_PIECES;
        EXEC_ROUTING_OPS(EXEC_CASE)
        return EXEC_GROUP_ROUTING;
        EXEC_EXPERTS_OPS(EXEC_CASE)
        return EXEC_GROUP_EXPERTS;
#define LIST_OP(id, ...) EXEC_CASE(id)
#include "plan/op/ops.def"
        return EXEC_GROUP_LIST;
#define SHARE_OP(id, ...) EXEC_CASE(id)
#include "plan/op/ops.def"
        return EXEC_GROUP_SHARE;
#define LATENT_OP(id, ...) EXEC_CASE(id)
#include "plan/op/ops.def"
        return EXEC_GROUP_LATENT;
#define RING_OP(id, ...) EXEC_CASE(id)
#include "plan/op/ops.def"
        return EXEC_GROUP_RING;
    case PLAN_OP_PLACE_ROWS:
#define EXCHANGE_OP(id, ...) EXEC_CASE(id)
#include "plan/op/ops.def"
        return EXEC_GROUP_EXCHANGE;
#define FLOAT8_OP(id, ...) EXEC_CASE(id)
#include "plan/op/ops.def"
        return EXEC_GROUP_FLOAT8;
#define FOUR_BIT_OP(id, ...) EXEC_CASE(id)
#include "plan/op/ops.def"
        return EXEC_GROUP_FOUR_BIT;
#define MUON_OP(id, ...) EXEC_CASE(id)
#include "plan/op/ops.def"
        return EXEC_GROUP_MUON;
#define EIGHT_BIT_OP(id, ...) EXEC_CASE(id)
#include "plan/op/ops.def"
        return EXEC_GROUP_EIGHT_BIT;
        EXEC_LAUNCH_OPS(EXEC_CASE)
#define HOST_OP(id, ...) EXEC_CASE(id)
#include "plan/op/ops.def"
#define TRACED_OP(id, ...) EXEC_CASE(id)
#include "plan/op/ops.def"
#define COLLECTIVE(id, ...) EXEC_CASE(id)
#include "plan/op/collectives.def"
#undef COLLECTIVE
        return EXEC_GROUP_LAUNCH;
    case PLAN_N_OP_KINDS:
        break;
    }
    g_assert_not_reached();
}
