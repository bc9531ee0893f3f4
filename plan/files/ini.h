/* plan/files/ini.h - key files read with their line numbers.
 *
 * Networks, strategies and clusters are ini files: [section] lines, key = value lines, comments
 * from '#' or ';' at the start of a line or after a blank. GLib's GKeyFile forgets lines, and a
 * message without its line sends a user searching; hence this reader.
 *
 * Owns: copies of all strings. Threads: one.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const char *section; /* "" before the first section */
    const char *key;
    const char *value;
    unsigned line; /* from 1; 0: it stands in no file */
} PlanIniEntry;

typedef struct {
    const char *file_name;
    PlanIniEntry *entries;
    unsigned n_entries;
    GStringChunk *strings;
} PlanIni;

/* A key that stands twice in a section is an error. */
PlanIni *plan_ini_read(const char *text, gsize length, const char *file_name, GError **error);
PlanIni *plan_ini_read_file(const char *path, GError **error);
void plan_ini_free(PlanIni *ini);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PlanIni, plan_ini_free)

const PlanIniEntry *plan_ini_find(const PlanIni *ini, const char *section, const char *key);
/* The first entry of a section, as the place to name for a key that the section lacks; NULL: it has
 * no entry. */
const PlanIniEntry *plan_ini_first(const PlanIni *ini, const char *section);

/* Whether a line "key = value" is read with this value: one line without a comment, or space around
 * it. */
bool plan_ini_can_hold(const char *value);

/* Sets error to "FILE:LINE: message" (entry NULL: "FILE: message"); returns false. */
bool plan_ini_refuse(const PlanIni *ini, const PlanIniEntry *entry, GError **error,
                     const char *format, ...) G_GNUC_PRINTF(4, 5);

/* Whole-text number parsers: no sign surprises, no trailing letters, locale-free. */
bool plan_parse_u64(const char *text, uint64_t *ret_value);
bool plan_parse_double(const char *text, double *ret_value); /* finite */
/* Behind the refusal of a text that is no whole number but stands for one that is allowed:
 * "; write it out: 4000, or 4096 (k may be either)" of "4k" or "4kB", "; write it out: 4096" of
 * "4KiB", "; write it out: 10000" of "1e4"; else "". Transfer full. */
char *plan_written_out(const char *text, double least, double most);
/* The fewest digits that read back as the same number ("0.9"), whatever the locale. Returns
 * buffer, of G_ASCII_DTOSTR_BUF_SIZE bytes. */
const char *plan_double_text(char *buffer, double value);
