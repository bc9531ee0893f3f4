#include "exec/error.h"

G_DEFINE_QUARK(foreshard_exec_error, exec_error)
