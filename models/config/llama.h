/* models/config/llama.h - what a config.json of Llama's kin is asked, with experts or without.
 *
 * Threads: any number.
 */
#pragma once

#include "models/config/fields.h"

/* Blocks look back all the way at each so many, and have a window elsewhere. */
bool model_config_layer_types_are_every(const ModelConfig *c, gint64 every);

/* As the layer behind attention wants it; usual: a head's width where the file says none, 0: what
 * fills the network's; told: what of whose class is not so otherwise. */
bool model_config_heads_fill_width(const ModelConfig *c, double usual, const char *told);
