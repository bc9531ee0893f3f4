/* models/layers/experts.h - hidden layers of which each token goes to a few: a mixture of experts.
 *
 * Dropless: whatever the router chooses, every token keeps its experts, so that all tensors have
 * tokens x experts-per-token rows and no size depends on the choice. Ops and order are torchtitan's
 * MoE without expert parallelism (experts.c says which), or transformers' (transformers-experts.h).
 */
#pragma once

#include "models/layers/layers.h"

typedef struct {
    uint64_t n, per_token; /* n 0: there are none */
    uint64_t ffn, shared_ffn;
    bool keeps_scores; /* a token's scores are not divided by their sum */
    bool in_turn;      /* round-robin: tokens go to each expert in turn, whatever the scores */
    bool apart;        /* each score is a sigmoid; else a token's are a softmax */
    bool has_bias;     /* added to scores where experts are chosen */
    double scale;      /* what a token's scores are multiplied by */
    uint64_t groups, groups_per_token; /* a token's experts are of its best groups; 0: of any */
    bool are_clamped;                  /* gpt-oss' experts: with biases, and within limits */
    uint32_t *scores;         /* theirs: who called keeps a token's scores, and is told; NULL */
    const char *transformers; /* what their class names begin with; NULL: they are not theirs */
} ModelExperts;

typedef struct {
    uint32_t module, experts, router;
    ModelLayer score;                 /* the router's */
    uint32_t gate, down, up;          /* of all experts */
    uint32_t bias;                    /* where there is one */
    uint32_t gate_up, act;            /* transformers': rows of gate, then of up; module */
    uint32_t gate_up_bias, down_bias; /* gpt-oss' */
    bool narrow_scores;               /* they go on in the dtype of compute; else in fp32 */
    uint32_t shared;                  /* module */
    ModelLayer shared_gate, shared_up, shared_down;
} ModelExpertLayer;

ModelExperts model_experts_of(const ModelNetwork *network);
ModelExpertLayer model_experts_declare(const ModelWalk *w, const ModelExperts *experts,
                                       uint32_t parent, const char *name);
uint32_t model_experts_run(const ModelWalk *w, const ModelExperts *experts,
                           const ModelExpertLayer *layer, uint32_t x);
