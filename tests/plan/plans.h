/* tests/plan/plans.h - small plans for tests: a network's text and strategy words in, a plan
 * out. */
#pragma once

#include "plan/plan.h"

#define MLP_TOY "[network]\nfamily=mlp\nlayers=3\nwidth=8\nseq=4\n"
#define GPT_TOY "[network]\nfamily=gpt\nlayers=2\nwidth=16\nheads=2\nvocab=12\nseq=8\n"

/* words: "key=value key=value"; anything wrong is a failed test. */
Plan *test_plan(const char *network_text, const char *words);
/* The same, but the error it must end in. */
GError *test_plan_error(const char *network_text, const char *words);

/* Rank 0's launches in a steady step, and what they read and write, by kind. */
typedef struct {
    unsigned n[PLAN_N_OP_KINDS];
    uint64_t bytes[PLAN_N_OP_KINDS];
} TestCounts;

TestCounts test_count_steady(const Plan *plan);
