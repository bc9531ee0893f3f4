#include "exec/files/map-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "exec/error.h"

/* GLib's own message quotes the path, and in some locales garbles it. */
GMappedFile *exec_map_file(const char *path, GError **error) {
    GMappedFile *file = NULL;
    bool is_folder = g_file_test(path, G_FILE_TEST_IS_DIR);
    int fd = is_folder ? -1 : open(path, O_RDONLY | O_CLOEXEC), why = is_folder ? EISDIR : errno;
    if (fd >= 0) {
        file = g_mapped_file_new_from_fd(fd, FALSE, NULL);
        why = errno;
        close(fd);
    }
    if (!file) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT, "cannot read %s: %s", path,
                    g_strerror(why));
    }
    return file;
}
