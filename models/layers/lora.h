/* models/layers/lora.h - LoRA: an adapter beside a linear layer, y = W x + alpha / rank * B(A(x)).
 *
 * Declared and walked as PEFT does (src/peft/tuners/lora/layer.py, Linear.forward): the layer is a
 * module within the adapted one, between them stand dropout, both products, the factor and the sum.
 * What goes in is cast to what the adapter is made in, then dropped from, and the sum is cast back
 * to what the layer gave. torchtune's LoRALinear has the same ops, without casts.
 *
 * Inside models/ only, for linear.c.
 */
#pragma once

#include "models/layers/attention.h"

/* Whether the linear layer, of whose module only the name is known yet, has one. */
bool model_lora_adapts(const PlanGraph *graph, uint32_t parent, const char *name);
ModelAdapter model_lora_declare(const ModelWalk *w, uint32_t module, uint64_t out, uint64_t in);
/* y is what the layer itself made of x, in the module that holds both. of_k: what the adapter makes
 * is seen as k's heads, as y is already; else NULL. */
uint32_t model_lora_run(const ModelWalk *w, const ModelAdapter *adapter, uint32_t x, uint32_t y,
                        const ModelAttention *of_k);
