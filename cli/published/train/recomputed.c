#include "cli/published/train/recomputed.h"

#include <math.h>

/* Products of a token in one forward pass, two operations each: attention over all pairs of a
 * sequence, as PyTorch's FLOP counter and PaLM's formula have it. */
static double block_flops(const CliTrainShape *s) {
    double attention = 2 + 2 * s->kv_heads / s->heads; /* q and o; k and v, of groups */
    double matrices = attention * s->width * s->width + (s->gate ? 3 : 2) * s->ffn * s->width;
    return 2 * matrices + 4 * s->seq * s->width;
}

double cli_train_recomputed_share(const CliTrainShape *shape, double mfu, double hfu) {
    double blocks = shape->layers * block_flops(shape);
    double step = 3 * (blocks + 2 * shape->vocab * shape->width); /* backward is twice forward */
    return fmin(fmax((hfu / mfu - 1) * step / blocks, 0), 1);
}
