/* cli/explain/needs.c - what an explanation takes that there may not be. */
#include "cli/explain/private.h"

bool explain_needs_prediction(GString *text, const CliSubject *subject) {
    if (subject->prediction == NULL) {
        g_string_append(text, "this takes a prediction of the trace's plan, and its machine is not "
                              "known here; give it, as in: --cluster this-machine\n");
    }
    return subject->prediction == NULL;
}
