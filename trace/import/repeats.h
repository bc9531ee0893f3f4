/* trace/import/repeats.h - the longest stretch of a sequence that repeats itself.
 *
 * A training loop does the same again each step, so what it does shows how long a step is, though
 * not where one begins. Of all lengths the one whose repetition goes on longest is found, of equal
 * ones the shortest: of two halves of a step that happen to be alike, both lengths would do.
 *
 * Cost: O(n) for each of the few dozen lengths that are tried.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    guint begin, period; /* tokens */
    guint n;             /* whole periods from begin on, at least two */
} TraceRepeats;

/* balance: what stands before each token, and behind the last; a length counts only if it leaves
 * that as it was. NULL: all lengths count. False: nothing of any such length comes twice in a row
 * and fills a tenth of the sequence. */
bool trace_repeats_find(const uint32_t *tokens, const int64_t *balance, guint n_tokens,
                        TraceRepeats *ret_repeats);
