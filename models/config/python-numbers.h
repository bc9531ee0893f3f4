/* models/config/python-numbers.h - numbers that Python writes into JSON and json-glib cannot read.
 *
 * It reads 1000000000000000019884624838656, as some files have for "no limit", as -1, and refuses
 * Infinity, which state space networks have for theirs, and NaN.
 */
#pragma once

#include <glib.h>

/* The JSON text with those as reals, which a reader shows as 1e+30 and 1e+308, and null for NaN.
 * Transfer full. */
char *model_config_python_numbers(const char *json, gsize length, gsize *ret_length);
