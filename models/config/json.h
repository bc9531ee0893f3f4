/* models/config/json.h - a Hugging Face config.json as a network's data file. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* What the text leaves out of it, in words; NULL: nothing. */
typedef struct {
    char *dropouts;  /* "resid_pdrop 0.1, attn_pdrop 0.1" */
    char *quantized; /* how weights are stored: "bitsandbytes" */
    bool longer;     /* sequences that are longer than the window, where they need another mask */
} ModelConfigLeftOut;

void model_config_left_out_clear(ModelConfigLeftOut *left_out);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ModelConfigLeftOut, model_config_left_out_clear)

/* The text of a [network] file for what the JSON describes, each number with its field behind it as
 * a comment; NULL with an error that names the field that is missing or of another type, or the
 * model_type that is not known. */
char *model_config_json_to_ini(const char *json, gsize length, const char *file_name,
                               ModelConfigLeftOut *ret, GError **error);
