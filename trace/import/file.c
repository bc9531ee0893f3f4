#include "trace/import/file.h"

#include <gio/gio.h>
#include <string.h>

#include "plan/files/file.h"
#include "trace/trace.h"

ImportKind import_kind(const char *bytes, gsize length) {
    const unsigned char *b = (const unsigned char *)bytes;
    if (length >= 2 && b[0] == 0x80) { /* the opcode PROTO; no text begins so */
        return IMPORT_SNAPSHOT;
    }
    if (length >= 2 && b[0] == 0x1f && b[1] == 0x8b) {
        return IMPORT_GZIP;
    }
    if (length >= 4 && memcmp(b, "PK\3\4", 4) == 0) {
        return IMPORT_ZIP;
    }
    gsize i = 0;
    while (i < length && strchr(" \t\r\n", b[i]) && b[i] != 0) {
        i++;
    }
    return i < length && (b[i] == '{' || b[i] == '[') ? IMPORT_PROFILE : IMPORT_OTHER;
}

ImportKind import_kind_of_file(const char *path) {
    char start[64];
    return import_kind(start, plan_file_start(path, start, sizeof start));
}

static bool unpack_into(GString *unpacked, const char *bytes, gsize length, GError **error) {
    enum {
        PIECE = 1 << 20
    };
    g_autoptr(GZlibDecompressor) gzip = g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP);
    g_autofree char *piece = g_malloc(PIECE);
    GConverterResult result = G_CONVERTER_CONVERTED;
    for (gsize at = 0; at < length;) {
        if (result == G_CONVERTER_FINISHED) { /* another packed part follows */
            g_converter_reset(G_CONVERTER(gzip));
        }
        gsize read = 0, written = 0;
        result = g_converter_convert(G_CONVERTER(gzip), bytes + at, length - at, piece, PIECE,
                                     G_CONVERTER_INPUT_AT_END, &read, &written, error);
        if (result == G_CONVERTER_ERROR) {
            return false;
        }
        g_string_append_len(unpacked, piece, (gssize)written);
        at += read;
        while (at == length && result != G_CONVERTER_FINISHED) { /* what is left within */
            result = g_converter_convert(G_CONVERTER(gzip), "", 0, piece, PIECE,
                                         G_CONVERTER_INPUT_AT_END, &read, &written, error);
            if (result == G_CONVERTER_ERROR) {
                return false;
            }
            g_string_append_len(unpacked, piece, (gssize)written);
        }
    }
    return true;
}

char *import_read(const char *path, gsize *ret_length, GError **error) {
    g_autoptr(GError) cause = NULL;
    gsize length;
    g_autofree char *bytes = plan_file_text(path, &length, &cause);
    if (!bytes) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE, "%s", cause->message);
        return NULL;
    }
    if (import_kind(bytes, length) != IMPORT_GZIP) {
        *ret_length = length;
        return g_steal_pointer(&bytes);
    }
    g_autoptr(GString) unpacked = g_string_new(NULL);
    if (!unpack_into(unpacked, bytes, length, &cause)) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_CUT, "%s: cannot be unpacked by gzip: %s", path,
                    cause->message);
        return NULL;
    }
    *ret_length = unpacked->len;
    return g_string_free(g_steal_pointer(&unpacked), FALSE);
}
