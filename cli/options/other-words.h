/* cli/options/other-words.h - what other programs call an option of foreshard's.
 *
 * Whoever comes from Trainer, accelerate, DeepSpeed, torchtitan or Megatron types their words.
 */
#pragma once

#include <glib.h>

/* "; here it is --ranks (-n)", of an option's word such as "--gpus"; "" when none of the options
 * that there are is meant. options: "--ranks" and so on, NULL at the end. Transfer full. */
char *cli_other_word(const char *word, const char *const *options);
