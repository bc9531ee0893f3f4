/* models/family-keys.c - which keys a family takes. */
#include "models/network.h"

bool model_family_has_key(const ModelFamily *family, const char *key) {
    g_auto(GStrv) keys = g_strsplit_set(family->keys, " |", -1);
    return g_strv_contains((const char *const *)keys, key);
}
