/* cli/published/train/words.h - strangers' words for what rules of training runs call otherwise.
 *
 * The rules' patterns see one spelling of each thing; sources write many ("FSDP v2", "FA-3", "4k").
 * A cell is rewritten only where its words leave no doubt; all others are the rules' to refuse.
 * Numbers come with thousands apart or with units where a column has one unit alone; of lengths
 * "k" is 1024, of parameters 1000.
 *
 * Owns: what it returns is the caller's. Threads: any. Cost: some regular expressions a cell.
 */
#pragma once

#include <stdbool.h>

/* `text` of `column` in the rules' words; equal to `text` where it has them. */
char *cli_train_words_plain(const char *column, const char *text);

/* A number of `column` in plain digits; "" where the words say that it is not said; `text` where
 * it is no number that we know how to read. */
char *cli_train_words_number(const char *column, const char *text);

/* Whether a text has a word in it, in any case; or any of several. */
bool cli_train_words_has(const char *text, const char *word);
bool cli_train_words_any(const char *text, const char *const *any_of, unsigned n);
