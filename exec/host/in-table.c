/* exec/host/in-table.c - what is said of an index that lies outside its table. */
#include "exec/error.h"
#include "exec/host/ops.h"

bool exec_host_in_table(bool inside, const char *what, GError **error) {
    if (!inside) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "%s holds a number outside its table",
                    what);
    }
    return inside;
}
