/* plan/text/digest.c - what tells one plan from another: a checksum of its program's text. */
#include <pthread.h>

#include "plan/text/text.h"

const char *plan_digest(const Plan *plan) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    if (!plan->digest) {
        g_autoptr(GString) text = g_string_sized_new(1 << 20);
        plan_text_append_program(plan, text);
        g_autofree char *hex =
            g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text->str, text->len);
        ((Plan *)plan)->digest = g_strconcat("sha256:", hex, NULL); /* a cache; guarded */
    }
    pthread_mutex_unlock(&mutex);
    return plan->digest;
}
