/* tests/plan/plans.h - small plans for tests: a network's text and strategy words in, a plan
 * out. */
#pragma once

#include "plan/plan.h"

#define MLP_TOY "[network]\nfamily=mlp\nlayers=3\nwidth=8\nseq=4\n"
#define GPT_TOY "[network]\nfamily=gpt\nlayers=2\nwidth=16\nheads=2\nvocab=12\nseq=8\n"

/* Two layers of one weight each, traced: a row of eight for a sample, y = x w_1, loss = sum y w_2.
 */
#define TRACED_TINY                                                                                \
    "traced-network 1\n"                                                                           \
    "# by hand\n"                                                                                  \
    "pytorch 2.13.0\n"                                                                             \
    "dtype fp32\n"                                                                                 \
    "tokens 8\n"                                                                                   \
    "module - - Net\n"                                                                             \
    "module 0 one Layer block\n"                                                                   \
    "module 0 two Layer block\n"                                                                   \
    "parameter 1 weight 8x8\n"                                                                     \
    "parameter 2 weight 8x1\n"                                                                     \
    "trace 1 -\n"                                                                                  \
    "input 8n fp32\n"                                                                              \
    "kind mm 2 3 1\n"                                                                              \
    "out new 8n fp32 grad\n"                                                                       \
    "save i2 i1\n"                                                                                 \
    "run matmul 1n 8 8 1 64n+256 < i2 i1 > o0\n"                                                   \
    "backward\n"                                                                                   \
    "alloc 64 fp32\n"                                                                              \
    "run matmul 8 8 1n 1 64n+256 < g0 s0 > t0\n"                                                   \
    "drop s0\n"                                                                                    \
    "return\n"                                                                                     \
    "give - t0\n"                                                                                  \
    "kind mm 2 2 1\n"                                                                              \
    "out new 1n fp32 grad\n"                                                                       \
    "save i1 i0\n"                                                                                 \
    "run matmul 1n 1 8 1 36n+32 < i0 i1 > o0\n"                                                    \
    "backward\n"                                                                                   \
    "alloc 8 fp32\n"                                                                               \
    "run matmul 8 1 1n 1 36n+32 < s1 g0 > t0\n"                                                    \
    "alloc 8n fp32\n"                                                                              \
    "run matmul 1n 8 1 1 36n+32 < g0 s0 > t1\n"                                                    \
    "drop s1\n"                                                                                    \
    "return\n"                                                                                     \
    "give t1 t0\n"                                                                                 \
    "kind sum 1 1 1\n"                                                                             \
    "out new 1 fp32 grad\n"                                                                        \
    "run memory 4n+4 < i0 > o0\n"                                                                  \
    "backward\n"                                                                                   \
    "return\n"                                                                                     \
    "give g0\n"                                                                                    \
    "forward\n"                                                                                    \
    "enter 0 2\n"                                                                                  \
    "enter 1 2\n"                                                                                  \
    "op 0 - 0 2\n"                                                                                 \
    "return 1\n"                                                                                   \
    "leave 1 3\n"                                                                                  \
    "enter 2 3\n"                                                                                  \
    "op 1 3 1\n"                                                                                   \
    "return 2\n"                                                                                   \
    "leave 2 4\n"                                                                                  \
    "let 3\n"                                                                                      \
    "op 2 4\n"                                                                                     \
    "let 4\n"                                                                                      \
    "return 0\n"                                                                                   \
    "leave 0 5\n"                                                                                  \
    "end\n"                                                                                        \
    "loss 5\n"

/* words: "key=value key=value"; anything wrong is a failed test. */
Plan *test_plan(const char *network_text, const char *words);
/* The same; NULL: it is refused. */
Plan *test_plan_or_refusal(const char *network_text, const char *words);
/* The same, but the error it must end in. */
GError *test_plan_error(const char *network_text, const char *words);

/* Rank 0's launches in a steady step, and what they read and write, by kind. */
typedef struct {
    unsigned n[PLAN_N_OP_KINDS];
    uint64_t bytes[PLAN_N_OP_KINDS];
} TestCounts;

TestCounts test_count_steady(const Plan *plan);
