/* models/config/fields.h - a config.json's fields, and the lines of a network that they become.
 * Inside models/config/ only.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "plan/plan.h"

typedef struct {
    JsonObject *fields;
    const char *file_name;
    GString *ini; /* what was read so far */
    GError **error;
} ModelConfig;

/* An error; false. */
bool model_config_refuse(const ModelConfig *c, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The same of something that no network here has, with what to do then. */
bool model_config_not_known(const ModelConfig *c, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* ---- fields: one that is null does not stand ------------------------------------------------- */

JsonNode *model_config_field(const ModelConfig *c, const char *name); /* NULL: it does not stand */
const char *model_config_text(const ModelConfig *c, const char *name, const char *otherwise);
bool model_config_flag(const ModelConfig *c, const char *name, bool otherwise);
/* An error where it stands and is no number. */
bool model_config_number(const ModelConfig *c, const char *name, double otherwise, double *ret);
bool model_config_is_whole(JsonNode *node); /* NULL: it is none */
/* Whether the field does not stand or is that number. */
bool model_config_is(const ModelConfig *c, const char *name, gint64 number);
/* From 1 on; `otherwise` where it does not stand. */
bool model_config_count(const ModelConfig *c, const char *name, gint64 otherwise, gint64 *ret);
/* The same from 0 on. */
bool model_config_count_or_none(const ModelConfig *c, const char *name, gint64 otherwise,
                                gint64 *ret);
/* The object that the field is; what stands in none where it is no object. */
bool model_config_within(const ModelConfig *c, const char *name, ModelConfig *ret);
/* The array that the field is; NULL: it is none. */
JsonArray *model_config_array(const ModelConfig *c, const char *name);

/* ---- lines: each with its field, for whoever refuses the value ------------------------------- */

void model_config_append(const ModelConfig *c, const char *key, const char *value,
                         const char *from);
void model_config_append_whole(const ModelConfig *c, const char *key, gint64 value,
                               const char *from);
void model_config_append_double(const ModelConfig *c, const char *key, double value,
                                const char *from);
/* "key=field" must stand, "key=field?" may, "key=field:N" is N when it does not, "key=field?:N" is
 * so too, but nothing where it is null. */
bool model_config_append_number(const ModelConfig *c, const char *word);

/* ---- what families share --------------------------------------------------------------------- */

bool model_config_gelu(const ModelConfig *c, const char *name, const char *otherwise);
/* The longest sequence, "seq". */
bool model_config_seq(const ModelConfig *c);
bool model_config_rope(const ModelConfig *c);
bool model_config_rope_scaling(const ModelConfig *c, const char *name);
