/* exec/files/weights-file.c - the writing half of weights.h. */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>
#include <unistd.h>

#include "exec/convert.h"
#include "exec/error.h"
#include "exec/files/weights.h"
#include "plan/files/file.h"
#include "plan/files/leftovers.h"

struct _ExecWeightsFile {
    const Plan *plan;
    char *path, *aside;
    int fd;
    uint64_t *starts; /* of each parameter, in the file */
    bool unnamed;     /* and this process made it: it goes, unless it gets its name */
};

static uint64_t bytes_of(const PlanParameter *parameter) {
    return parameter->elements * plan_dtype_bytes((PlanDtype)parameter->dtype);
}

static void add_array(JsonBuilder *json, const char *member, const int64_t *numbers, unsigned n) {
    json_builder_set_member_name(json, member);
    json_builder_begin_array(json);
    for (unsigned i = 0; i < n; i++) {
        json_builder_add_int_value(json, numbers[i]);
    }
    json_builder_end_array(json);
}

/* Blanks at its end let the tensors begin at a multiple of eight. */
static char *header_text(const Plan *plan) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    uint64_t at = 0;
    json_builder_begin_object(json);
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        const PlanParameter *parameter = &plan->parameters[p];
        uint64_t end = at + bytes_of(parameter);
        int64_t place[] = {(int64_t)at, (int64_t)end};
        json_builder_set_member_name(json, parameter->name);
        json_builder_begin_object(json);
        json_builder_set_member_name(json, "dtype");
        json_builder_add_string_value(json, exec_weights_dtype_name((PlanDtype)parameter->dtype));
        add_array(json, "shape", parameter->dims, parameter->n_dims);
        add_array(json, "data_offsets", place, 2);
        json_builder_end_object(json);
        at = end;
    }
    json_builder_end_object(json);
    g_autoptr(JsonNode) root = json_builder_get_root(json);
    g_autofree char *text = json_to_string(root, FALSE);
    return g_strdup_printf("%s%*s", text, (int)(-strlen(text) & 7), "");
}

static bool failed(const ExecWeightsFile *file, const char *what, GError **error) {
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "cannot %s %s: %s", what, file->aside,
                g_strerror(errno));
    return false;
}

static bool write_at(const ExecWeightsFile *file, gconstpointer from, uint64_t n, uint64_t at,
                     GError **error) {
    for (uint64_t done = 0; done < n;) {
        ssize_t part = pwrite(file->fd, (const char *)from + done, n - done, (off_t)(at + done));
        if (part < 0 && errno != EINTR) {
            return failed(file, "write", error);
        }
        done += part > 0 ? (uint64_t)part : 0;
    }
    return true;
}

/* A record of a file of which nothing is on the disk yet. */
static ExecWeightsFile *file_of(const Plan *plan, const char *header) {
    ExecWeightsFile *file = g_new0(ExecWeightsFile, 1);
    file->plan = plan;
    file->fd = -1;
    file->starts = g_new(uint64_t, plan->n_parameters + 1);
    file->starts[0] = sizeof(uint64_t) + strlen(header);
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        file->starts[p + 1] = file->starts[p] + bytes_of(&plan->parameters[p]);
    }
    return file;
}

ExecWeightsFile *exec_weights_make(const char *path, const Plan *plan, GError **error) {
    g_autofree char *header = header_text(plan);
    g_autoptr(ExecWeightsFile) file = file_of(plan, header);
    uint64_t length = GUINT64_TO_LE(strlen(header));
    file->path = g_strdup(path);
    file->aside = plan_file_aside(path, &file->fd);
    if (!file->aside) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "cannot open a file beside %s: %s", path,
                    g_strerror(errno));
        return NULL;
    }
    file->unnamed = true;
    if (!write_at(file, &length, sizeof length, 0, error) ||
        !write_at(file, header, strlen(header), sizeof length, error)) {
        return NULL;
    }
    return g_steal_pointer(&file);
}

const char *exec_weights_aside(const ExecWeightsFile *file) {
    return file->aside;
}

ExecWeightsFile *exec_weights_join(const char *aside, const Plan *plan, GError **error) {
    g_autofree char *header = header_text(plan);
    g_autoptr(ExecWeightsFile) file = file_of(plan, header);
    file->aside = g_strdup(aside);
    file->fd = open(aside, O_WRONLY | O_CLOEXEC);
    if (file->fd < 0) {
        failed(file, "open", error);
        return NULL;
    }
    return g_steal_pointer(&file);
}

bool exec_weights_put(ExecWeightsFile *file, uint32_t parameter, uint64_t first, uint64_t n,
                      gconstpointer from, PlanDtype dtype, GError **error) {
    PlanDtype stored = (PlanDtype)file->plan->parameters[parameter].dtype;
    uint64_t size = plan_dtype_bytes(stored), at = file->starts[parameter] + first * size;
    uint32_t block[4096];
    for (uint64_t done = 0, part; done < n; done += part) {
        part = MIN(n - done, G_N_ELEMENTS(block));
        exec_convert(block, stored, (const char *)from + done * plan_dtype_bytes(dtype), dtype,
                     part);
        if (!write_at(file, block, part * size, at + done * size, error)) {
            return false;
        }
    }
    return true;
}

bool exec_weights_name(ExecWeightsFile *file, GError **error) {
    if (fsync(file->fd) != 0 || g_rename(file->aside, file->path) != 0) {
        return failed(file, "finish", error);
    }
    file->unnamed = false;
    plan_leftover_over(file->aside);
    return true;
}

void exec_weights_close(ExecWeightsFile *file) {
    if (!file) {
        return;
    }
    if (file->fd >= 0) {
        close(file->fd);
    }
    if (file->unnamed) {
        g_unlink(file->aside);
        plan_leftover_over(file->aside);
    }
    g_free(file->path);
    g_free(file->aside);
    g_free(file->starts);
    g_free(file);
}
