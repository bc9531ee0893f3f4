/* cli/what-if/larger-batch.h - when twice the micro-batch is worth it: choose and diagnose, which
 * double it until it is not, say the same. */
#pragma once

enum {
    CLI_MOST_BATCH = 1 << 16
};

static const double CLI_BATCH_WORTH = 1.02; /* tokens a second, from one batch to its double */
