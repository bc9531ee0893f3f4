/* tests/fuzz/mutate.h - texts damaged at random, the same for the same seed. */
#pragma once

#include <glib.h>

/* A copy of one of the texts, damaged in one to four places: bytes changed, numbers made absurd,
 * words swapped for words of other texts, lines doubled, dropped or moved, the end cut off. May
 * hold any byte. transfer full. */
GString *fuzz_mutate(const GPtrArray *texts, GRand *rand);
