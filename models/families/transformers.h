/* models/families/transformers.h - what Hugging Face's modules (transformers 5.23) do in their own
 * way, whatever the network: positions and rotary tables made in every pass, RMSNorm written out,
 * and the loss.
 *
 * Read from src/transformers/models/llama/modeling_llama.py and loss/loss_utils.py; recorded by
 * tests/oracle/recorder/transformers_network.py. Inside models/ only.
 */
#pragma once

#include "models/layers/rotary.h"

/* How norms are written there, for the whole walk. */
void model_transformers_begin(const ModelWalk *w);
/* Gemma's embedding, whose module multiplies its rows by a buffer of one number. */
uint32_t model_transformers_scaled_embedding(const ModelWalk *w, const ModelLayer *layer,
                                             uint32_t scale, uint32_t tokens, uint64_t vocab);
/* Declares what tables are made of. */
void model_transformers_frequencies(const ModelWalk *w, ModelRotary *rotary, uint64_t dim,
                                    double base);
/* A pass's positions, which the current module's variable holds. */
uint32_t model_transformers_positions(const ModelWalk *w);
/* Its tables, by the module; x: the embedding, whose dtype they get. */
void model_transformers_tables(const ModelWalk *w, uint32_t module, uint32_t x, uint32_t positions,
                               ModelRotary *rotary);
/* Whether the loss is theirs: a file may ask for another, and a tuned stack has its own. */
bool model_transformers_makes_loss(const ModelWalk *w);
/* Ends the walk of a network whose loss is transformers': in fp32, of labels that the network
 * shifts itself; the returned object holds the logits. */
void model_transformers_end(const ModelWalk *w, uint32_t root, uint32_t logits, uint32_t targets,
                            uint64_t vocab);
