/* models/config/json.h - a Hugging Face config.json as a network's data file. */
#pragma once

#include <glib.h>

/* The text of a [network] file for what the JSON describes, each number with its field behind it as
 * a comment; NULL with an error that names the field that is missing or of another type, or the
 * model_type that is not known. *ret_dropouts: what it drops, in words,
 * which the text leaves out; NULL: nothing. */
char *model_config_json_to_ini(const char *json, gsize length, const char *file_name,
                               char **ret_dropouts, GError **error);
