/* Linear layers in float8: which they are, what is cast how often, and what lives until backward.
 */
#include <string.h>

#include "plan/check/check.h"
#include "plan/op/float8.h"
#include "plan/op/names.h"
#include "plan/text/text.h"
#include "tests/plan/plans.h"

#define TOY(ffn)                                                                                   \
    "[network]\nfamily=llama\nlayers=2\nwidth=64\nheads=4\nffn=" #ffn "\nvocab=48\nseq=8\n"
#define WORDS "ranks=2 kernels=compiled param_dtype=bf16 float8="

enum {
    BLOCKS = 2,
    LAYERS = 7, /* of a block: q, k, v, o, gate, up, down */
    INPUTS = 4  /* what q, k and v share, o's, what gate and up share, down's */
};

static unsigned n_in(const Plan *plan, PlanPhase phase, PlanOpKind kind) {
    const PlanRole *role = &plan->roles[0];
    unsigned n = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        n += instr->kind == PLAN_LAUNCH && instr->phase == phase &&
             role->ops[instr->arg].kind == kind;
    }
    return n;
}

static void assert_counts(const Plan *plan, PlanPhase phase, PlanOpKind kind, unsigned a_block) {
    g_assert_cmpuint(n_in(plan, phase, kind), ==, BLOCKS * a_block);
}

/* The head stays as it is, and so do layers with a side that 16 does not divide. */
static void which(void) {
    g_autoptr(Plan) all = test_plan(TOY(96), WORDS "tensorwise");
    assert_counts(all, PLAN_PHASE_FORWARD, PLAN_OP_FLOAT8_LINEAR, LAYERS);
    assert_counts(all, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_LINEAR_DX, LAYERS);
    assert_counts(all, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_LINEAR_DW, LAYERS);
    g_assert_cmpuint(n_in(all, PLAN_PHASE_FORWARD, PLAN_OP_LINEAR), ==, 1);
    g_autoptr(Plan) odd = test_plan(TOY(90), WORDS "tensorwise");
    assert_counts(odd, PLAN_PHASE_FORWARD, PLAN_OP_FLOAT8_LINEAR, LAYERS - 3);
    g_assert_cmpuint(n_in(odd, PLAN_PHASE_FORWARD, PLAN_OP_LINEAR), ==, 1 + 3 * BLOCKS);
}

/* An input is cast once for all layers that take it; backward a gradient, a weight, and an input
 * again. */
static void how_often(void) {
    g_autoptr(Plan) whole = test_plan(TOY(96), WORDS "tensorwise");
    assert_counts(whole, PLAN_PHASE_FORWARD, PLAN_OP_FLOAT8_CAST, INPUTS + LAYERS);
    assert_counts(whole, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_CAST, 2 * LAYERS + INPUTS);
    g_assert_cmpuint(n_in(whole, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_CAST_ROWS), ==, 0);
    g_autoptr(Plan) rows = test_plan(TOY(96), WORDS "rowwise");
    assert_counts(rows, PLAN_PHASE_FORWARD, PLAN_OP_FLOAT8_CAST_ROWS, INPUTS + LAYERS);
    g_assert_cmpuint(n_in(rows, PLAN_PHASE_FORWARD, PLAN_OP_FLOAT8_CAST), ==, 0);
    assert_counts(rows, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_CAST_ROWS, LAYERS);
    assert_counts(rows, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_CAST, 2 * LAYERS + INPUTS);
    assert_counts(rows, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_UNSCALE, LAYERS);
}

/* How often kernels work out the scales of numbers of dx, which products by rows leave to them. */
static int64_t n_scaled(const char *words) {
    g_autoptr(Plan) plan = test_plan(TOY(96), words);
    const PlanRole *role = &plan->roles[0];
    int64_t n = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        bool is_op = instr->kind == PLAN_LAUNCH;
        const PlanOp *op = is_op ? &role->ops[instr->arg] : NULL;
        n += is_op && op->kind == PLAN_OP_FLOAT8_LINEAR_DX
                 ? plan_op_dims(role, op)[FLOAT8_LINEAR_DX_SCALED]
                 : 0;
    }
    return n;
}

/* Once, but for the gradients of tokens that two ranks shared: of several sequences the kernel that
 * puts them in order adds q's to the sum of k's and v's, and works it out for either rank. */
static void scaled_behind(void) {
    g_assert_cmpint(n_scaled(WORDS "tensorwise micro_batch=2"), ==, 0);
    g_assert_cmpint(n_scaled(WORDS "rowwise micro_batch=2"), ==, BLOCKS * LAYERS);
    g_assert_cmpint(n_scaled(WORDS "tensorwise tensor=2 micro_batch=2"), ==, 0);
    g_assert_cmpint(n_scaled(WORDS "rowwise tensor=2 micro_batch=1"), ==, BLOCKS * LAYERS);
    g_assert_cmpint(n_scaled(WORDS "rowwise tensor=2 micro_batch=2"), ==, BLOCKS * (LAYERS + 1));
}

/* What is recomputed stops short of the last layer, and casts weights for backward. */
static void computed_again(void) {
    g_autoptr(Plan) plan = test_plan(TOY(96), WORDS "tensorwise checkpointing=full");
    assert_counts(plan, PLAN_PHASE_RECOMPUTE, PLAN_OP_FLOAT8_LINEAR, LAYERS - 1);
    assert_counts(plan, PLAN_PHASE_RECOMPUTE, PLAN_OP_FLOAT8_CAST, INPUTS - 1 + LAYERS - 1);
    assert_counts(plan, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_CAST, LAYERS + 1 + INPUTS);
}

/* Bytes of casts that forward leaves alive. */
static uint64_t left_by_forward(const Plan *plan) {
    const PlanRole *role = &plan->roles[0];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        bool is_memory = instr->kind == PLAN_ALLOC || instr->kind == PLAN_FREE;
        if (instr->phase != PLAN_PHASE_FORWARD || !is_memory) {
            continue;
        }
        const PlanBuffer *buffer = &role->buffers[instr->arg];
        bool is_cast = plan_dtype_is_float8((PlanDtype)buffer->dtype) &&
                       buffer->sub != PLAN_PARAMETERS_UNSHARDED;
        if (is_cast) {
            bytes += instr->kind == PLAN_ALLOC ? buffer->bytes : -buffer->bytes;
        }
    }
    return bytes;
}

/* But of weights, where they are views of a flat parameter. */
static void no_cast_is_kept(void) {
    static const char *const words[] = {WORDS "tensorwise", WORDS "rowwise",
                                        WORDS "tensorwise checkpointing=full",
                                        WORDS "rowwise checkpointing=selective-op"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(Plan) plan = test_plan(TOY(96), words[i]);
        g_assert_cmpuint(n_in(plan, PLAN_PHASE_FORWARD, PLAN_OP_FLOAT8_LINEAR), >, 0);
        g_assert_cmpuint(left_by_forward(plan), ==, 0);
    }
    const uint64_t weights = 4 * 64 * 64 + 3 * 96 * 64;
    g_autoptr(Plan) views = test_plan(TOY(96), WORDS "tensorwise flavour=fsdp1");
    g_assert_cmpuint(left_by_forward(views), ==, BLOCKS * weights);
}

/* ---- dims ------------------------------------------------------------------------------------ */

/* Changes dim i of the first op of a kind, and asks for the complaint. */
static void expect_refused(Plan *plan, PlanOpKind kind, unsigned i, int64_t to, const char *why) {
    PlanRole *role = &plan->roles[0];
    uint32_t at = 0;
    while (role->ops[at].kind != kind) {
        at++;
    }
    int64_t *dim = (int64_t *)plan_op_dims(role, &role->ops[at]) + i, was = *dim;
    g_autoptr(GError) error = NULL;
    *dim = to;
    g_assert_false(plan_check(plan, &error));
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, plan_op_info(kind)->name));
    g_assert_nonnull(strstr(error->message, why));
    *dim = was;
}

#define CONTRADICTS "contradict"

/* What a kernel would read or write beyond, or not find. */
static void dims_are_held(void) {
    g_autoptr(Plan) rows = test_plan(TOY(96), WORDS "rowwise");
    g_assert_true(plan_check(rows, NULL));
    expect_refused(rows, PLAN_OP_FLOAT8_CAST_ROWS, 1, 65, "needs");
    expect_refused(rows, PLAN_OP_FLOAT8_LINEAR, 0, 9, CONTRADICTS); /* rows are not as many */
    expect_refused(rows, PLAN_OP_FLOAT8_LINEAR, 3, 2, CONTRADICTS);
    expect_refused(rows, PLAN_OP_FLOAT8_LINEAR_DX, 5, 63, CONTRADICTS);
    expect_refused(rows, PLAN_OP_FLOAT8_LINEAR_DW, 3, 2, CONTRADICTS);
    expect_refused(rows, PLAN_OP_FLOAT8_UNSCALE, 0, 65, "needs");
    expect_refused(rows, PLAN_OP_FLOAT8_SCALE, 3, PLAN_FLOAT8_EACH_ROW, CONTRADICTS);
    expect_refused(rows, PLAN_OP_FLOAT8_SCALE, 4, PLAN_N_FLOAT8_MADE, CONTRADICTS);
    g_autoptr(Plan) whole = test_plan(TOY(96), WORDS "tensorwise float8_gather=yes");
    g_assert_true(plan_check(whole, NULL));
    expect_refused(whole, PLAN_OP_FLOAT8_CAST, 2, 2, CONTRADICTS);
    expect_refused(whole, PLAN_OP_FLOAT8_CAST, 4, PLAN_FLOAT8_BY_SWIGLU, "is not given");
    expect_refused(whole, PLAN_OP_FLOAT8_CAST, 4, PLAN_FLOAT8_BY_NORM, "is not given");
    expect_refused(whole, PLAN_OP_FLOAT8_TURN, 2, 2, "needs");
    expect_refused(whole, PLAN_OP_FLOAT8_PASS, 1, PLAN_N_FLOAT8_STEPS, CONTRADICTS);
    expect_refused(whole, PLAN_OP_FLOAT8_PASS, 1, PLAN_FLOAT8_TIMES_SCALE, "is not given");
}

/* ---- gathered in float8 ---------------------------------------------------------------------- */

static unsigned n_gathers_of(const Plan *plan, uint64_t bytes) {
    const PlanRole *role = &plan->roles[0];
    unsigned n = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        if (instr->kind != PLAN_LAUNCH || role->ops[instr->arg].kind != PLAN_OP_ALL_GATHER) {
            continue;
        }
        const PlanOp *op = &role->ops[instr->arg];
        n += (uint64_t)plan_op_dims(role, op)[COLLECTIVE_ELEMENTS] *
                 plan_dtype_bytes((PlanDtype)op->dtype) ==
             bytes;
    }
    return n;
}

/* Half the bytes, but for norms; a rank's shard of each weight is cast for each gather, nothing
 * whole; and the largest numbers of all weights are found one by one, or behind the step. */
static void gathered(void) {
    const unsigned gathers = 2 * BLOCKS, weights = 4 * 64 * 64 + 3 * 96 * 64, norms = 2 * 64 * 2;
    g_autoptr(Plan) no = test_plan(TOY(96), WORDS "tensorwise");
    g_assert_cmpuint(n_gathers_of(no, 2 * weights + norms), ==, gathers);
    static const char *const words[] = {WORDS "tensorwise float8_gather=yes",
                                        WORDS "tensorwise float8_gather=precomputed"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(Plan) plan = test_plan(TOY(96), words[i]);
        g_autoptr(GError) error = NULL;
        g_assert_true(plan_check(plan, &error));
        g_assert_no_error(error);
        g_assert_cmpuint(n_gathers_of(plan, weights + norms), ==, gathers);
        g_assert_cmpuint(n_gathers_of(plan, 2 * weights + norms), ==, 0);
        unsigned casts = n_in(plan, PLAN_PHASE_FORWARD, PLAN_OP_FLOAT8_CAST) +
                         n_in(plan, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_CAST);
        /* backward has a gradient a layer, and inputs again */
        g_assert_cmpuint(casts, ==, gathers * LAYERS + BLOCKS * (INPUTS + LAYERS + INPUTS));
        unsigned searched = n_in(plan, PLAN_PHASE_FORWARD, PLAN_OP_FLOAT8_LARGEST) +
                            n_in(plan, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_LARGEST);
        g_assert_cmpuint(searched, ==, i == 0 ? gathers * LAYERS : 0);
        g_assert_cmpuint(n_in(plan, PLAN_PHASE_OPTIMIZER, PLAN_OP_FLOAT8_LARGEST), ==, i);
        g_assert_cmpuint(n_in(plan, PLAN_PHASE_OPTIMIZER, PLAN_OP_ALL_REDUCE), ==, i);
    }
}

/* Scales live on from step to step; of units that are gathered once a step two take turns. */
static void scales_live_on(void) {
    static const char *const more[] = {" sharding=grad-op", " reshard_last=no",
                                       " sharding=hybrid replicate=2 ranks=4", " accumulate=3",
                                       " sharding=grad-op accumulate=2"};
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(more); i++) {
        g_autofree char *words = g_strconcat(
            WORDS "tensorwise float8_gather=", i % 2 ? "yes" : "precomputed", more[i / 2], NULL);
        g_autoptr(Plan) plan = test_plan(TOY(96), words);
        g_autoptr(GError) error = NULL;
        g_assert_true(plan_check(plan, &error));
        g_assert_no_error(error);
    }
}

/* What forward leaves of weights, turned: v's, gate's, up's and down's where cosines and sines are
 * two inputs, those of the hidden layer where they are one; nothing where blocks are computed
 * again. */
static void keeps_some(void) {
    const uint64_t hidden = 3 * 96 * 64, v = 64 * 64;
    static const char *const more[] = {"", " checkpointing=full", " checkpointing=selective-op"};
    for (unsigned i = 0; i < G_N_ELEMENTS(more); i++) {
        g_autofree char *words =
            g_strconcat(WORDS "tensorwise float8_gather=precomputed", more[i], NULL);
        g_autoptr(Plan) real = test_plan(TOY(96), words);
        g_assert_cmpuint(left_by_forward(real), ==, i == 0 ? BLOCKS * (hidden + v) : 0);
        g_autoptr(Plan) complex = test_plan(TOY(96) "rope=complex\n", words);
        g_assert_cmpuint(left_by_forward(complex), ==, i == 0 ? BLOCKS * hidden : 0);
    }
}

/* ---- of layers that ranks share -------------------------------------------------------------- */

#define SHARED "ranks=4 tensor=2 kernels=compiled param_dtype=bf16 float8="

/* Collectives over the ranks that share layers, of so many bytes; 0: of any. */
static unsigned n_shared(const Plan *plan, PlanPhase phase, PlanOpKind kind, uint64_t bytes) {
    const PlanRole *role = &plan->roles[0];
    unsigned n = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        if (instr->kind != PLAN_LAUNCH || instr->phase != phase) {
            continue;
        }
        const PlanOp *op = &role->ops[instr->arg];
        n += op->kind == kind && op->axis == PLAN_AXIS_TENSOR &&
             (uint64_t)plan_op_dims(role, op)[COLLECTIVE_ELEMENTS] *
                     plan_dtype_bytes((PlanDtype)op->dtype) ==
                 bytes;
    }
    return n;
}

/* A toy of 8 tokens, of which a rank has 4: tokens and gradients are gathered in a byte a number,
 * and scattered in two. The scale of each input, weight and gradient is joined once. */
static void shared_tensorwise(void) {
    const uint64_t tokens = 8 * 64, scale = 8;
    g_autoptr(Plan) plan = test_plan(TOY(96), SHARED "tensorwise");
    g_assert_cmpuint(n_shared(plan, PLAN_PHASE_FORWARD, PLAN_OP_ALL_GATHER, tokens), ==,
                     BLOCKS * 2);
    g_assert_cmpuint(n_shared(plan, PLAN_PHASE_BACKWARD, PLAN_OP_ALL_GATHER, tokens), ==,
                     BLOCKS * 2);
    g_assert_cmpuint(n_shared(plan, PLAN_PHASE_FORWARD, PLAN_OP_ALL_REDUCE, scale), ==,
                     BLOCKS * (INPUTS + LAYERS));
    g_assert_cmpuint(n_shared(plan, PLAN_PHASE_BACKWARD, PLAN_OP_ALL_REDUCE, scale), ==,
                     BLOCKS * LAYERS);
    g_autoptr(Plan) again = test_plan(TOY(96), SHARED "tensorwise checkpointing=full");
    unsigned joined = n_shared(again, PLAN_PHASE_RECOMPUTE, PLAN_OP_ALL_REDUCE, scale) +
                      n_shared(again, PLAN_PHASE_BACKWARD, PLAN_OP_ALL_REDUCE, scale);
    g_assert_cmpuint(joined, ==, BLOCKS * (INPUTS + LAYERS + LAYERS));
}

/* By rows tokens stay in two bytes; a scale for each token is joined before o and down, and of dq,
 * dk, dv, dgate and dup; one for each of a weight's rows before o and down, and for each of its
 * columns of the five others, of which two are found once more, for their casts are not kept. */
static void shared_by_rows(void) {
    const uint64_t tokens = 2 * 8 * 64, of_tokens = 8 * 8, of_width = 8 * 64;
    g_autoptr(Plan) plan = test_plan(TOY(96), SHARED "rowwise");
    g_assert_cmpuint(n_shared(plan, PLAN_PHASE_FORWARD, PLAN_OP_ALL_GATHER, tokens), ==,
                     BLOCKS * 2 + 1); /* the head's */
    g_assert_cmpuint(n_shared(plan, PLAN_PHASE_FORWARD, PLAN_OP_ALL_REDUCE, of_tokens), ==,
                     BLOCKS * 2);
    g_assert_cmpuint(n_shared(plan, PLAN_PHASE_FORWARD, PLAN_OP_ALL_REDUCE, of_width), ==,
                     BLOCKS * LAYERS);
    g_assert_cmpuint(n_shared(plan, PLAN_PHASE_BACKWARD, PLAN_OP_ALL_REDUCE, of_tokens), ==,
                     BLOCKS * 5);
    g_assert_cmpuint(n_shared(plan, PLAN_PHASE_BACKWARD, PLAN_OP_ALL_REDUCE, of_width), ==,
                     BLOCKS * 2);
}

/* A compiler repeats no collective, and so keeps what hangs on them: a byte for each number of a
 * rank's part of the weights (by rows those that it does not take for parameters, and o's and
 * down's), of all tokens twice; tensorwise of what o and down take, too. */
static void shared_keeps_casts(void) {
    const uint64_t weights = (4 * 64 * 64 + 3 * 96 * 64) / 2, tokens = 2 * 8 * 64;
    g_autoptr(Plan) tensorwise = test_plan(TOY(96), SHARED "tensorwise");
    g_assert_cmpuint(left_by_forward(tensorwise), ==,
                     BLOCKS * (weights + tokens + 8 * 64 / 2 + 8 * 96 / 2));
    g_autoptr(Plan) rows = test_plan(TOY(96), SHARED "rowwise");
    g_assert_cmpuint(left_by_forward(rows), ==, BLOCKS * (weights - 2 * 64 * 64 / 2 + tokens));
    static const char *const again[] = {
        SHARED "tensorwise checkpointing=full", SHARED "tensorwise checkpointing=selective-op",
        SHARED "rowwise checkpointing=full", SHARED "rowwise checkpointing=selective-op"};
    for (unsigned i = 0; i < G_N_ELEMENTS(again); i++) {
        g_autoptr(Plan) plan = test_plan(TOY(96), again[i]);
        g_autoptr(GError) error = NULL;
        g_assert_true(plan_check(plan, &error));
        g_assert_no_error(error);
        g_assert_cmpuint(left_by_forward(plan), ==, 0);
    }
}

/* Reads back from its text as it was. */
static void written(void) {
    g_autoptr(Plan) plan = test_plan(TOY(96), WORDS "tensorwise checkpointing=selective-op "
                                                    "float8_gather=precomputed");
    g_autoptr(GString) text = plan_text(plan);
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) read = plan_read(text->str, text->len, "written", &error);
    g_assert_no_error(error);
    g_assert_true(plan_check(read, &error));
    g_assert_no_error(error);
    g_assert_nonnull(strstr(text->str, " e5m2 "));
    g_assert_cmpstr(plan_digest(read), ==, plan_digest(plan));
}

static void refused(void) {
    static const struct {
        const char *keys, *words, *expected;
    } cases[] = {
        {"family=llama\nffn=32\n", "kernels=eager param_dtype=bf16",
         "float8 is planned only with compiled"},
        {"family=llama\nffn=32\n", "kernels=compiled",
         "float8 is planned only where all else is computed in bf16"},
        {"family=llama\nffn=32\n", "kernels=compiled compile=network param_dtype=bf16",
         "float8 is planned only with compiled blocks"},
        {"family=llama\nffn=32\n", "kernels=compiled param_dtype=bf16 autocast=bf16",
         "float8 is planned only where all else is computed in bf16"},
        {"family=llama\nffn=32\n", "kernels=compiled param_dtype=bf16 sharding=optimizer-only",
         "float8 is not planned with sharding=optimizer-only"},
        {"family=llama\nffn=32\n", "kernels=compiled param_dtype=bf16 flavour=fsdp1 float8=rowwise",
         "float8 by rows is not planned for FSDP1"},
        {"family=llama\nffn=32\n",
         "kernels=compiled param_dtype=bf16 float8=rowwise float8_gather=yes",
         "float8_gather needs one scale per weight"},
        {"family=llama\nffn=32\n",
         "kernels=compiled param_dtype=bf16 flavour=fsdp1 float8_gather=yes",
         "float8_gather is FSDP2's"},
        {"family=llama\nffn=32\n",
         "kernels=compiled param_dtype=bf16 ranks=1 float8_gather=precomputed",
         "float8_gather is FSDP2's"},
        {"family=llama\nffn=32\n",
         "kernels=compiled param_dtype=bf16 ranks=4 reshard_after_forward=2 float8_gather=yes",
         "float8_gather is not planned with reshard_after_forward=N"},
        {"family=llama\nffn=32\n",
         "kernels=compiled param_dtype=bf16 offload=params "
         "float8_gather=yes",
         "float8_gather is not planned with parameters on the host"},
        {"family=llama\nffn=32\n", "kernels=compiled model_dtype=bf16 float8_gather=yes",
         "float8_gather is planned only with shards in fp32"},
        {"family=llama\nffn=32\n",
         "kernels=compiled param_dtype=bf16 ranks=3 float8_gather=precomputed",
         "float8_gather wants shards of one size, and a weight's 16 rows do not divide by 3 ranks"},
        {"family=llama\nffn=32\n",
         "kernels=compiled param_dtype=bf16 ranks=4 tensor=2 float8_gather=yes",
         "float8_gather is not planned with layers that ranks share"},
        {"family=llama\nffn=32\n",
         "kernels=compiled model_dtype=bf16 tensor=2 sharding=none flavour=plain",
         "float8 with tensor is planned only for FSDP2"},
        {"family=llama\nffn=32\n",
         "kernels=compiled param_dtype=bf16 ranks=4 tensor=2 tensor_plan=kempnerforge",
         "float8 is planned only with torchtitan's way"},
        {"family=llama\nffn=32\n", "kernels=compiled param_dtype=bf16 ranks=4 tensor=2",
         "multiplies sides that 16 divides, and a rank's part of q is 8"},
        {"family=gpt\n", "kernels=compiled param_dtype=bf16", "float8 is not planned for families"},
        {"family=llama\nffn=32\nqkv_bias=yes\n", "kernels=compiled param_dtype=bf16",
         "float8 is not planned for biases"},
        {"family=llama\nffn=32\nnorm_at=after\n", "kernels=compiled param_dtype=bf16",
         "float8 is not planned for norms after"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strconcat("[network]\n", cases[i].keys,
                                            "layers=1\nwidth=16\nheads=2\nvocab=4\nseq=4\n", NULL);
        g_autofree char *words = g_strconcat("ranks=2 float8=tensorwise ", cases[i].words, NULL);
        g_autoptr(GError) error = test_plan_error(text, words);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
    }
}

/* ---- scales of passes before ----------------------------------------------------------------- */

#define GPT     "[network]\nfamily=gpt\nlayers=2\nwidth=64\nheads=4\nvocab=48\nseq=16\n"
#define DELAYED "param_dtype=bf16 flavour=fsdp1 float8=delayed "

enum {
    GPT_LAYERS = 4 /* of a block: qkv, proj, up, down */
};

static void delayed(void) {
    g_autoptr(Plan) plan = test_plan(GPT, "ranks=2 " DELAYED);
    assert_counts(plan, PLAN_PHASE_FORWARD, PLAN_OP_FLOAT8_LINEAR_BIAS, GPT_LAYERS);
    g_assert_cmpuint(n_in(plan, PLAN_PHASE_FORWARD, PLAN_OP_LINEAR), ==, 1); /* the head */
    assert_counts(plan, PLAN_PHASE_FORWARD, PLAN_OP_FLOAT8_DELAYED_CAST, 2 * GPT_LAYERS);
    assert_counts(plan, PLAN_PHASE_FORWARD, PLAN_OP_FLOAT8_DELAY, GPT_LAYERS);
    assert_counts(plan, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_DELAYED_CAST, GPT_LAYERS);
    assert_counts(plan, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_DELAY, GPT_LAYERS);
    assert_counts(plan, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_LINEAR_DX, GPT_LAYERS);
    assert_counts(plan, PLAN_PHASE_BACKWARD, PLAN_OP_FLOAT8_LINEAR_DW, GPT_LAYERS);
    g_assert_cmpuint(n_in(plan, PLAN_PHASE_FORWARD, PLAN_OP_ALL_REDUCE), ==, 1);
    g_assert_cmpuint(n_in(plan, PLAN_PHASE_BACKWARD, PLAN_OP_ALL_REDUCE), ==, 1);
    g_autoptr(Plan) alone = test_plan(GPT, "ranks=1 sharding=none model_dtype=bf16 float8=delayed");
    g_assert_cmpuint(n_in(alone, PLAN_PHASE_FORWARD, PLAN_OP_ALL_REDUCE), ==, 0);
}

/* Casts of input and weight for backward, a byte each; scales stay those of forward. */
static void kept_of_delayed(void) {
    g_autoptr(Plan) plan = test_plan(GPT, "ranks=2 micro_batch=2 " DELAYED);
    uint64_t tokens = 2 * 16, width = 64, inputs = tokens * (3 + 4) * width,
             weights = (3 + 1 + 4 + 4) * width * width;
    g_assert_cmpuint(left_by_forward(plan), ==, BLOCKS * (inputs + weights));
    g_autoptr(Plan) again = test_plan(GPT, "ranks=2 checkpointing=full " DELAYED);
    g_assert_cmpuint(left_by_forward(again), ==, 0);
    assert_counts(again, PLAN_PHASE_RECOMPUTE, PLAN_OP_FLOAT8_DELAYED_CAST, 2 * GPT_LAYERS);
    assert_counts(again, PLAN_PHASE_RECOMPUTE, PLAN_OP_FLOAT8_DELAY, 0);
}

/* ---- a scale for each 32 numbers ------------------------------------------------------------- */

#define WIDE "[network]\nfamily=llama\nlayers=2\nwidth=128\nheads=2\nffn=256\nvocab=48\nseq=128\n"

/* Each layer casts its own input and weight, and what norms and SwiGLU made once more for dw;
 * backward a gradient twice, a weight, and attention's result. */
static void mxfp8(void) {
    g_autoptr(Plan) plan = test_plan(WIDE, WORDS "mxfp8");
    assert_counts(plan, PLAN_PHASE_FORWARD, PLAN_OP_MXFP8_PRODUCT, LAYERS);
    assert_counts(plan, PLAN_PHASE_FORWARD, PLAN_OP_MXFP8_CAST, 2 * LAYERS + INPUTS - 1);
    assert_counts(plan, PLAN_PHASE_BACKWARD, PLAN_OP_MXFP8_PRODUCT, 2 * LAYERS);
    assert_counts(plan, PLAN_PHASE_BACKWARD, PLAN_OP_MXFP8_CAST, 3 * LAYERS + 1);
    uint64_t tokens = 128, made = 2 * 128 + 256;
    g_assert_cmpuint(left_by_forward(plan), ==, BLOCKS * tokens * made);
}

/* Nothing is kept then, and all inputs are cast along columns in backward. */
static void mxfp8_again(void) {
    g_autoptr(Plan) plan = test_plan(WIDE, WORDS "mxfp8 checkpointing=full");
    g_assert_cmpuint(left_by_forward(plan), ==, 0);
    assert_counts(plan, PLAN_PHASE_FORWARD, PLAN_OP_MXFP8_CAST, 2 * LAYERS);
    assert_counts(plan, PLAN_PHASE_RECOMPUTE, PLAN_OP_MXFP8_PRODUCT, LAYERS - 1);
    assert_counts(plan, PLAN_PHASE_RECOMPUTE, PLAN_OP_MXFP8_CAST, 2 * (LAYERS - 1));
    assert_counts(plan, PLAN_PHASE_BACKWARD, PLAN_OP_MXFP8_CAST, 3 * LAYERS + INPUTS);
}

static void mxfp8_refused(void) {
    static const char *const cases[][2] = {
        {"micro_batch=1 flavour=fsdp1", "float8 in MXFP8 is not planned for FSDP1"},
        {"ranks=4 tensor=2", "float8 in MXFP8 is planned only where each rank computes the whole"},
        {"ranks=4 context=2", "float8 in MXFP8 is planned only where each rank computes the whole"},
        {"float8_gather=yes", "float8_gather needs one scale per weight"},
        {"kernels=eager", "float8 is planned only with compiled blocks"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *words = g_strconcat(WORDS "mxfp8 ", cases[i][0], NULL);
        g_autoptr(GError) error = test_plan_error(WIDE, words);
        g_assert_nonnull(strstr(error->message, cases[i][1]));
    }
    g_autoptr(GError) error = test_plan_error(TOY(96), WORDS "mxfp8");
    g_assert_nonnull(strstr(error->message,
                            "as many tokens, and sides, as 128 divides, and a layer "
                            "has 8 tokens and a weight of 64 x 64"));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/float8/dims are held", dims_are_held);
    g_test_add_func("/plan/float8/which layers", which);
    g_test_add_func("/plan/float8/how often is cast", how_often);
    g_test_add_func("/plan/float8/scaled behind a product", scaled_behind);
    g_test_add_func("/plan/float8/computed again", computed_again);
    g_test_add_func("/plan/float8/no cast is kept", no_cast_is_kept);
    g_test_add_func("/plan/float8/gathered", gathered);
    g_test_add_func("/plan/float8/scales live on", scales_live_on);
    g_test_add_func("/plan/float8/some copies of weights are kept", keeps_some);
    g_test_add_func("/plan/float8/shared, one scale a tensor", shared_tensorwise);
    g_test_add_func("/plan/float8/shared, by rows", shared_by_rows);
    g_test_add_func("/plan/float8/casts that are kept of shared layers", shared_keeps_casts);
    g_test_add_func("/plan/float8/scales of passes before", delayed);
    g_test_add_func("/plan/float8/a scale for each 32 numbers", mxfp8);
    g_test_add_func("/plan/float8/a scale for each 32 numbers, computed again", mxfp8_again);
    g_test_add_func("/plan/float8/a scale for each 32 numbers, refused", mxfp8_refused);
    g_test_add_func("/plan/float8/what they keep", kept_of_delayed);
    g_test_add_func("/plan/float8/written", written);
    g_test_add_func("/plan/float8/refused", refused);
    return g_test_run();
}
