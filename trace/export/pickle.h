/* trace/export/pickle.h - Python's pickle, as far as lists and dicts of numbers and text need it.
 *
 * Protocol 4 (the opcodes: https://docs.python.org/3/library/pickletools.html), and of it only what
 * the reader in PyTorch's memory_viz page knows too. A text is written once and then referred to.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    GString *bytes;
    GHashTable *texts; /* from a text to its number in the reader's memo */
    GArray *lists;     /* by open list, how many items its open batch holds */
} Pickle;

void pickle_begin(Pickle *pickle);
/* Closes the stream and forgets all but the bytes, which the caller owns. */
GString *pickle_end(Pickle *pickle);

void pickle_int(Pickle *pickle, int64_t value);
void pickle_bool(Pickle *pickle, bool value);
void pickle_text(Pickle *pickle, const char *text);

/* A dict: between the two, pairs of a key and a value. */
void pickle_open_dict(Pickle *pickle);
void pickle_close_dict(Pickle *pickle);

/* A list: pickle_item() before each item. Items are handed over in batches, as Python does, for a
 * reader may push a whole batch onto its call stack. */
void pickle_open_list(Pickle *pickle);
void pickle_item(Pickle *pickle);
void pickle_close_list(Pickle *pickle);
