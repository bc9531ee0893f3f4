#include "models/layers/chunked-loss.h"

#include "models/known-private.h"
#include "plan/plan.h"

/* What PyTorch's allocator gives is rounded up to so much. */
enum {
    GRAIN = 512,
    TORCHTITANS_CHUNKS = 8
};

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

static uint64_t next_power_of_two(uint64_t at_least) {
    uint64_t power = 1;
    while (power < at_least) {
        power *= 2;
    }
    return power;
}

static uint64_t largest_power_of_two(uint64_t at_most) {
    return next_power_of_two(at_most / 2 + 1);
}

/* A chunk has about as many logits as x has numbers, rounded up to a power of two of rows. */
uint64_t model_loss_liger_chunk(uint64_t rows, uint64_t width, uint64_t vocab) {
    return MIN(next_power_of_two(divide_up(rows, divide_up(vocab, width))), rows);
}

/* The default on a GPU, chunking_method "aspect_ratio": the same power of two. 2.13 takes half of
 * that ("aspect_ratio:2"). Since 2.14 a chunk's rows of x have at most a fourth as many numbers as
 * all logits. */
uint64_t model_loss_chunk(uint64_t rows, uint64_t width, uint64_t vocab, bool since_2_14) {
    uint64_t power = next_power_of_two(divide_up(rows, divide_up(vocab, width)));
    uint64_t most = largest_power_of_two(rows * vocab / (4 * width));
    return MAX(since_2_14 ? MIN(MIN(power, rows), most) : power / 2, 1);
}

static uint64_t block(uint64_t elements, uint64_t bytes) {
    return divide_up(elements * bytes, GRAIN) * GRAIN;
}

/* What lives at most inside of the call beside its results. All along: a chunk's logits in fp32 and
 * the largest of each row; of all rows which do not count, targets that may be looked up, and each
 * row's share of the mean, which takes a few numbers to make. Then, of each chunk, sums of its
 * rows, and in fp32 the rows of w that the targets name. In 16 bits instead the logits' gradient in
 * 16 bits, this chunk's and the last one's, for a variable holds that until the next is made; and,
 * for the gradient of a weight that has one, x in fp32. Where blocks are smaller than a grain,
 * others are the most. */
static uint64_t pytorch_room_bytes(const ModelWalk *w, uint64_t chunk, uint64_t vocab,
                                   bool trains_w) {
    uint64_t row = block(chunk, 4), numbers = 5 * GRAIN;
    uint64_t all_along =
        block(chunk * vocab, 4) + row + block(w->rows, 1) + block(w->rows, 8) + block(w->rows, 4);
    if (w->graph->dtype == PLAN_FP32) {
        uint64_t of_chunk = row + MAX(block(chunk * w->width, 4), row + GRAIN);
        return all_along + MAX(numbers, of_chunk);
    }
    uint64_t lower = block(chunk * vocab, 2), x = trains_w ? block(chunk * w->width, 4) : 0;
    uint64_t named = block(chunk * w->width, 2) + block(chunk, 2);
    return all_along + MAX(numbers, row + x + lower + MAX(lower, named));
}

/* Liger's: a chunk's logits, and the last one's, for a variable holds those until the next are
 * made; of all rows the losses and which count. */
static uint64_t liger_room_bytes(const ModelWalk *w, uint64_t chunk, uint64_t vocab) {
    uint64_t logits = block(chunk * vocab, plan_dtype_bytes(w->graph->dtype));
    return 2 * logits + block(w->rows, 4) + block(w->rows, 1);
}

/* torchtitan's: all along, in fp32, dx and a trained weight's dw, of which the results are made at
 * the end, and of several sequences copies of x and of the targets by chunks. In the backward of a
 * chunk's loss its logits, in fp32 their log-probabilities, the gradient of those, and the
 * logits'. */
static uint64_t torchtitan_room_bytes(const ModelWalk *w, uint64_t chunk, uint64_t vocab,
                                      bool trains_w) {
    uint64_t size = plan_dtype_bytes(w->graph->dtype), dw = trains_w ? vocab * w->width : 0;
    uint64_t all_along = block(w->rows * w->width, 4) + block(dw, 4) +
                         (w->batch > 1 ? block(w->rows * w->width, size) + block(w->rows, 8) : 0);
    uint64_t most = all_along + block(chunk * vocab, size) + 3 * block(chunk * vocab, 4),
             results = block(w->rows * w->width, size) + block(dw, size);
    return MAX(most - results, pytorch_room_bytes(w, chunk, vocab, trains_w));
}

static uint64_t chunk_rows(const ModelWalk *w, uint64_t vocab) {
    switch (w->loss) {
    case MODEL_LOSS_LIGER:
        return model_loss_liger_chunk(w->rows, w->width, vocab);
    case MODEL_LOSS_TORCHTITAN:
        return divide_up(w->rows, TORCHTITANS_CHUNKS);
    default:
        return model_loss_chunk(w->rows, w->width, vocab,
                                plan_pytorch_is_after(w->graph->pytorch, PLAN_PYTORCH_CURRENT));
    }
}

static uint64_t room_of_chunks(const ModelWalk *w, uint64_t chunk, uint64_t vocab, bool trains_w) {
    return w->loss == MODEL_LOSS_LIGER        ? liger_room_bytes(w, chunk, vocab)
           : w->loss == MODEL_LOSS_TORCHTITAN ? torchtitan_room_bytes(w, chunk, vocab, trains_w)
                                              : pytorch_room_bytes(w, chunk, vocab, trains_w);
}

uint32_t model_run_chunked_loss(const ModelWalk *w, const ModelLayer *head, uint32_t x,
                                uint32_t targets, uint64_t vocab) {
    PlanGraph *graph = w->graph;
    uint64_t chunk = chunk_rows(w, vocab), n = w->rows * w->width;
    bool trains_w = plan_graph_wants_gradient(graph, head->weight);
    bool is_function = head->module == PLAN_NONE;
    uint64_t room_bytes = room_of_chunks(w, chunk, vocab, trains_w);
    PlanGraphResult results[] = {
        {graph->dtype, 1},
        {graph->dtype, n},
        {graph->dtype, trains_w ? vocab * w->width : 0},
        {PLAN_FP32, room_bytes / sizeof(float)},
    };
    if (!is_function) {
        plan_graph_enter(graph, head->module, (uint32_t[]){x, targets}, 2);
    }
    uint32_t loss = plan_graph_op_making(graph, PLAN_OP_CHUNKED_LOSS,
                                         (uint32_t[]){x, head->weight, targets}, results,
                                         (int64_t[]){[CHUNKED_LOSS_ROWS] = (int64_t)w->rows,
                                                     [CHUNKED_LOSS_COLS] = (int64_t)vocab,
                                                     [CHUNKED_LOSS_WIDTH] = (int64_t)w->width,
                                                     [CHUNKED_LOSS_CHUNK] = (int64_t)chunk},
                                         (double[]){w->loss == MODEL_LOSS_LIGER});
    uint32_t room = loss + 3;
    plan_graph_let_go_after(graph, x, room); /* an argument goes when the call has returned */
    if (!is_function) {
        plan_graph_leave(graph, &loss, 1);
    }
    return loss;
}

bool model_loss_can_be_chunked(const ModelNetwork *n, const PlanStrategy *s, bool known_family,
                               GError **error) {
    uint64_t rows = s->micro_batch * model_network_seq(n, s);
    PlanDtype dtype = plan_strategy_param_dtype(s);
    bool is_pytorchs = n->loss == MODEL_LOSS_CHUNKED;
    const char *why = NULL;
    if (!known_family) {
        why = "for families gpt, mpt and llama";
    } else if (n->loss_at != MODEL_LOSS_IN_MODEL) {
        why = "in the network's forward, after which FSDP frees the head's weight; set loss_at = "
              "model";
    } else if (n->logits_held != PLAN_RESULTS_DROPPED) {
        why =
            "without logits that anyone holds, for it never has all of them; set logits_held = no";
    } else if (n->code != MODEL_CODE_OWN) {
        why = "with code = own; set that";
    } else if (n->logits_scale) {
        why = "without logits_scale; leave it out";
    } else if (n->vocab <= n->width) {
        why = "for a vocab larger than width (else chunks save nothing)";
    } else if (rows < 2) {
        why = "for two tokens or more";
    } else if (dtype == PLAN_FP16) {
        why = is_pytorchs ? "in fp32 and bf16, because PyTorch keeps other sums in fp16; set "
                            "param_dtype = bf16"
                          : "in fp32 and bf16; set param_dtype = bf16";
    } else if (s->autocast != PLAN_AUTOCAST_NONE) {
        why = is_pytorchs ? "without autocast, which has no rule for it; set autocast = none and "
                            "param_dtype = bf16"
                          : "without autocast, under which it casts; set autocast = none and "
                            "param_dtype = bf16";
    } else if (is_pytorchs && !plan_strategy_is_after(s, PLAN_PYTORCH_2_12)) {
        why = "since PyTorch 2.13, because older ones lack linear_cross_entropy; set pytorch = "
              "current";
    } else if (plan_strategy_is_one_program(s)) {
        why = "outside a compiled program, which keeps copies; set compile = block";
    } else if (is_pytorchs && s->deterministic != PLAN_DETERMINISTIC_NO) {
        why = "without deterministic algorithms, which add up rows by another kernel; set "
              "deterministic = no";
    } else if (n->loss == MODEL_LOSS_TORCHTITAN && model_network_seq(n, s) % TORCHTITANS_CHUNKS) {
        why = "of sequences that divide by 8, as many chunks as it has";
    }
    return model_is_planned(n, why, error, "loss = %s is planned only %s, or set another loss",
                            is_pytorchs                   ? "chunked"
                            : n->loss == MODEL_LOSS_LIGER ? "liger"
                                                          : "torchtitan",
                            why);
}

/* A head that alone is trained keeps less than room has. */
bool model_loss_is_chunked_as_known(const PlanGraph *graph, const char *name, GError **error) {
    for (guint i = 0; i < graph->ops.len; i++) {
        const PlanGraphOp *op = plan_graph_op_at(graph, i);
        if (op->kind == PLAN_OP_CHUNKED_LOSS &&
            !plan_graph_wants_gradient(graph, plan_graph_ref(graph, op->values))) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                        "%s: a chunked loss is planned only where something before the head is "
                        "trained; freeze less, or set another loss",
                        name);
            return false;
        }
    }
    return true;
}
