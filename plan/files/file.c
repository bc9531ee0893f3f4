#include "plan/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/files/leftovers.h"
#include "plan/files/stream.h"
#include "plan/plan.h"

enum {
    UNIQUE = 6 /* letters that mkstemp(3) chooses */
};

#define ASIDE ".tmp-" /* between the file's name and these letters, until it is whole */

static char *read_whole(const char *path, gsize *ret_length, GError **error) {
    char *text = NULL;
    if (!plan_stream_is(path)) {
        g_file_get_contents(plan_stream_path(path), &text, ret_length, error);
        return text;
    }
    g_autoptr(GBytes) bytes = plan_stream_read(path, error);
    if (bytes) {
        gsize length;
        const char *data = g_bytes_get_data(bytes, &length);
        text = g_malloc(length + 1);
        memcpy(text, data ? data : "", length);
        text[length] = '\0';
        if (ret_length) {
            *ret_length = length;
        }
    }
    return text;
}

char *plan_file_text(const char *path, gsize *ret_length, GError **error) {
    g_autoptr(GError) cause = NULL;
    if (plan_stream_never_ends(path)) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_FILE,
                    "%s: cannot be read: it is a device that never ends; name a file",
                    plan_stream_name(path));
        return NULL;
    }
    char *text = read_whole(path, ret_length, &cause);
    if (!text) {
        const char *why = strrchr(cause->message, ':'); /* before it, GLib names the file again */
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_FILE, "%s: cannot be read%s",
                    plan_stream_name(path), why ? why : "");
    }
    return text;
}

gsize plan_file_start(const char *path, char *ret_start, gsize room) {
    if (plan_stream_is(path)) {
        g_autoptr(GBytes) bytes = plan_stream_read(path, NULL);
        gsize n = bytes ? MIN(room, g_bytes_get_size(bytes)) : 0;
        if (n > 0) {
            memcpy(ret_start, g_bytes_get_data(bytes, NULL), n);
        }
        return n;
    }
    FILE *file = fopen(plan_stream_path(path), "r");
    gsize n = file ? fread(ret_start, 1, room, file) : 0;
    if (file) {
        fclose(file);
    }
    return n;
}

bool plan_file_begins(const char *path, const char *word) {
    gsize length = strlen(word);
    g_autofree char *start = g_malloc(length);
    return plan_file_start(path, start, length) == length && memcmp(start, word, length) == 0;
}

void plan_file_clear(const char *path) {
    g_autofree char *folder = g_path_get_dirname(path), *name = g_path_get_basename(path);
    g_autofree char *prefix = g_strconcat(name, ASIDE, NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *entry; dir && (entry = g_dir_read_name(dir));) {
        if (g_str_has_prefix(entry, prefix) && strlen(entry) == strlen(prefix) + UNIQUE) {
            g_autofree char *aside = g_build_filename(folder, entry, NULL);
            g_unlink(aside);
        }
    }
}

static int write_all(int fd, const char *bytes, gsize length) {
    for (gsize done = 0; done < length;) {
        ssize_t part = write(fd, bytes + done, length - done);
        if (part < 0 && errno != EINTR) {
            return errno;
        }
        done += part > 0 ? (gsize)part : 0;
    }
    return 0;
}

/* Closes it, too. */
static int write_to(int fd, const char *bytes, gsize length) {
    if (fd < 0) {
        return errno;
    }
    int failed = write_all(fd, bytes, length);
    return close(fd) != 0 && !failed ? errno : failed;
}

/* Whoever may read the file that is there may read the new one, and nobody else. Its owner may
 * write it, as ranks that write their parts do. A file system without such modes keeps its own. */
static void keep_mode(const char *path, int fd) {
    GStatBuf there;
    if (g_stat(path, &there) == 0 && S_ISREG(there.st_mode)) {
        (void)!fchmod(fd, (there.st_mode & 0777) | S_IWUSR);
    }
}

char *plan_file_aside(const char *path, int *ret_fd) {
    g_autofree char *aside = g_strconcat(path, ASIDE "XXXXXX", NULL);
    *ret_fd = g_mkstemp_full(aside, O_WRONLY | O_CLOEXEC, 0666); /* fills in the X */
    if (*ret_fd < 0) {
        return NULL;
    }
    keep_mode(path, *ret_fd);
    plan_leftover(aside);
    return g_steal_pointer(&aside);
}

static int write_aside(const char *path, const char *bytes, gsize length) {
    int fd;
    g_autofree char *aside = plan_file_aside(path, &fd);
    if (!aside) {
        return errno;
    }
    int failed = write_to(fd, bytes, length);
    if (!failed && g_rename(aside, path) != 0) {
        failed = errno;
    }
    if (failed) {
        g_unlink(aside);
    }
    plan_leftover_over(aside);
    return failed;
}

/* Whether what is there is replaced: a regular file is, everything else is written in place. */
static bool is_replaced(const char *path, const GStatBuf *there) {
    return S_ISREG(there->st_mode) && !g_str_has_prefix(path, "/dev/");
}

bool plan_has_control(const char *text) {
    while (*text != '\0' && (!g_ascii_iscntrl(*text) || *text == '\t')) {
        text++;
    }
    return *text != '\0';
}

int plan_file_may_write(const char *path) {
    GStatBuf there;
    bool exists = g_stat(path, &there) == 0;
    if (exists && S_ISDIR(there.st_mode)) {
        return EISDIR;
    }
    if (exists && !is_replaced(path, &there)) {
        return g_access(path, W_OK) == 0 ? 0 : errno;
    }
    g_autofree char *whole = exists ? realpath(path, NULL) : NULL;
    g_autofree char *folder = g_path_get_dirname(whole ? whole : path);
    return g_access(folder, W_OK | X_OK) == 0 ? 0 : errno;
}

int plan_file_write(const char *path, const char *bytes, gsize length) {
    GStatBuf there;
    bool exists = g_stat(path, &there) == 0;
    if (exists && !is_replaced(path, &there)) {
        return write_to(g_open(path, O_WRONLY | O_CLOEXEC | O_APPEND, 0), bytes, length);
    }
    g_autofree char *whole = exists ? realpath(path, NULL) : NULL;
    return write_aside(whole ? whole : path, bytes, length);
}
