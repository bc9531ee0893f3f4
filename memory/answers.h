/* memory/answers.h - what an allocator was told when it asked whether events had passed.
 *
 * All that an allocator does follows from its requests and these answers. Recorded in one play and
 * given again in another, they make both do the same, whatever the clocks.
 *
 * Owns: its list. Threads: one. Cost: O(1) an answer; the text has a number a change of answer.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct _MemoryAnswers MemoryAnswers;

MemoryAnswers *memory_answers_new(void);
void memory_answers_free(MemoryAnswers *answers); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MemoryAnswers, memory_answers_free)

void memory_answers_add(MemoryAnswers *answers, bool passed);
uint64_t memory_answers_count(const MemoryAnswers *answers);
/* The next one that was added and not yet given; false: there is none. */
bool memory_answers_next(MemoryAnswers *answers, bool *ret_passed);

/* "3 1 12": three times no, once yes, twelve times no. "": none. */
char *memory_answers_text(const MemoryAnswers *answers);
/* NULL when the text is not of this form. */
MemoryAnswers *memory_answers_parse(const char *text);
