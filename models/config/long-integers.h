/* models/config/long-integers.h - whole numbers that no 64 bits hold.
 *
 * json-glib reads 1000000000000000019884624838656, as some files have for "no limit", as -1.
 */
#pragma once

#include <glib.h>

/* The JSON text with those as reals, which a reader shows as 1e+30. Transfer full. */
char *model_config_long_integers_as_reals(const char *json, gsize length, gsize *ret_length);
