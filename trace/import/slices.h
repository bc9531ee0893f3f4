/* trace/import/slices.h - a large JSON cut into pieces that are small.
 *
 * A profile is one object, of which one member holds a million events. Read into a tree it takes
 * twenty times its size; so the text is walked through once, strings and brackets alone, and what
 * is asked for is handed on as the piece of text that it is.
 *
 * Lenient where real files are not JSON: Kineto of PyTorch 2.3 and 2.4 writes some values of NCCL's
 * kernels without quotes, or not at all ("Process Group Description": ,).
 *
 * Cost: a walk over the bytes, and no memory.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* A member's name, without its quotes, and its value; "" where that is missing. false with error
 * ends the walk. */
typedef bool (*JsonSliceEach)(const char *name, gsize name_length, const char *text, gsize length,
                              gpointer data, GError **error);

/* The members of an object. file_name stands in messages: "FILE: byte N: what is wrong", counted
 * from the text's begin. */
bool json_slices(const char *text, gsize length, const char *file_name, JsonSliceEach each,
                 gpointer data, GError **error);
/* Likewise, but of the member "traceEvents" each element; or the text is an array of such alone,
 * as Chrome takes it too. */
bool json_slices_of_events(const char *text, gsize length, const char *file_name,
                           JsonSliceEach each, gpointer data, GError **error);

bool json_slice_is(const char *name, gsize length, const char *wanted);
