/* cli/source/data-dir.h - where data files are: networks, clusters and gnuplot scripts.
 *
 * A name is looked up under three roots, the first that has it winning:
 *     $FORESHARD_DATA          the user's own, in networks/, clusters/ and plots/
 *     the source tree          only for a program that lies in the build tree
 *     the installed data       datadir/foreshard/, the same three folders
 * so that a file of the user's hides one of ours, and a build tree needs no installation.
 *
 * Owns: its three paths. Threads: one makes it, any read it.
 */
#pragma once

#include <glib.h>

#define CLI_DATA_ERROR (cli_data_error_quark())
GQuark cli_data_error_quark(void);

typedef enum {
    CLI_DATA_ERROR_NONE_SUCH, /* no folder has the name; the message lists the names that exist */
    CLI_DATA_ERROR_FOLDER,    /* $FORESHARD_DATA is set, but is no folder */
} CliDataError;

typedef enum {
    CLI_DATA_NETWORKS,
    CLI_DATA_CLUSTERS,
    CLI_DATA_PLOTS,
    CLI_DATA_PUBLISHED, /* rules: from the words of published tables to our settings */
} CliDataKind;

typedef struct {
    char *user;      /* NULL unless $FORESHARD_DATA is set and not empty */
    char *source;    /* NULL outside the build tree */
    char *installed; /* need not exist */
} CliDataRoots;

/* program: the path of the running program, NULL to ask the system; user: the text of
 * $FORESHARD_DATA, NULL if it is not set. Clear with cli_data_roots_clear(). */
void cli_data_roots_init(CliDataRoots *roots, const char *program, const char *user);
void cli_data_roots_clear(CliDataRoots *roots); /* NULL is fine */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CliDataRoots, cli_data_roots_clear)

/* The path of a data file. A name with a slash, or one that ends like a file of its kind and lies
 * in the current folder, is a path already; so is any other (config.json) that no root has and
 * that is a file here. A network may also be a folder with a config.json. Transfer full. */
char *cli_data_find_in(const CliDataRoots *roots, CliDataKind kind, const char *name,
                       GError **error);

/* All names that can be found, without their ending, sorted, each once. Transfer full:
 * g_strfreev(). */
char **cli_data_names_in(const CliDataRoots *roots, CliDataKind kind);

/* The same for this process and its environment. */
char *cli_data_find(CliDataKind kind, const char *name, GError **error);
/* By its name alone, whatever lies in the current folder: for a name that stands in a file. */
char *cli_data_find_named(CliDataKind kind, const char *name, GError **error);
char **cli_data_names(CliDataKind kind);
