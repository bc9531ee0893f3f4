/* plan/files/nearest.h - what was probably meant by a name that nothing has.
 *
 * Names are near when few letters have to be put in, taken out, changed or swapped to make one of
 * the other, with or without what stands between words, or of their words in order: "llama-3-70b"
 * and "llama3-70b", "h100-dgx" and "dgx-h100". A name that has a word which the given one begins is
 * near, too: "dgx-h100" for "h100"; and so is one that shares a model's word, a letter and
 * digits: "b200-node" for "dgx-b200". Such names are told first.
 *
 * Cost: the product of the names' lengths, for each.
 */
#pragma once

#include <glib.h>

/* "; did you mean gpt2 or gpt2-xl?", with at most three names, or "" when none is near. names:
 * NULL at the end. Transfer full. */
char *plan_did_you_mean(const char *word, const char *const *names);
