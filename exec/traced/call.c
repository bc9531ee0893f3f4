#include "exec/traced/call.h"

#include <math.h>
#include <string.h>

#include "plan/files/ini.h"

static bool read_numbers(const char *text, size_t *ret_numbers, unsigned *ret_n) {
    *ret_n = 0;
    if (g_str_equal(text, "-")) {
        return true;
    }
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    for (char **word = words; *word; word++) {
        uint64_t number;
        if (*ret_n == KERNEL_TENSOR_SIDES || !plan_parse_u64(*word, &number) ||
            number > (uint64_t)1 << 48) {
            return false;
        }
        ret_numbers[(*ret_n)++] = number;
    }
    return true;
}

static void lie_dense(KernelTensor *t) {
    size_t step = 1;
    for (unsigned i = t->n_dims; i-- > 0;) {
        t->strides[i] = step;
        step *= t->sizes[i];
    }
}

/* Its bytes, where it is of no dtype that kernels know. */
static bool read_dtype(const char *name, TracedArg *arg) {
    static const char *const names[KERNEL_N_DTYPES] = {
        [KERNEL_FP32] = "fp32",   [KERNEL_BF16] = "bf16",   [KERNEL_FP16] = "fp16",
        [KERNEL_FP64] = "fp64",   [KERNEL_INT64] = "int64", [KERNEL_INT32] = "int32",
        [KERNEL_UINT8] = "uint8", [KERNEL_BOOL] = "bool"};
    for (unsigned i = 0; i < KERNEL_N_DTYPES; i++) {
        if (g_str_equal(names[i], name)) {
            arg->tensor.dtype = (KernelDtype)i;
            return true;
        }
    }
    arg->is_foreign = true;
    arg->tensor.dtype = KERNEL_UINT8; /* so that its extent is no larger than it is */
    return true;
}

/* OPERAND/DTYPE/SIZES/STRIDES/OFFSET */
static bool read_tensor(const char *word, TracedArg *arg) {
    g_auto(GStrv) parts = g_strsplit(word, "/", 5);
    unsigned n = g_strv_length(parts), n_strides;
    uint64_t operand = 0, offset = 0;
    arg->of = TRACED_TENSOR;
    arg->operand = PLAN_NONE;
    if ((n != 3 && n != 5) || !read_dtype(parts[1], arg) ||
        !read_numbers(parts[2], arg->tensor.sizes, &arg->tensor.n_dims)) {
        return false;
    }
    if (!g_str_equal(parts[0], "-")) {
        if (!plan_parse_u64(parts[0], &operand) || operand >= PLAN_NONE) {
            return false;
        }
        arg->operand = (uint32_t)operand;
    }
    lie_dense(&arg->tensor);
    if (n == 5 && (!read_numbers(parts[3], arg->tensor.strides, &n_strides) ||
                   n_strides != arg->tensor.n_dims || !plan_parse_u64(parts[4], &offset) ||
                   offset > (uint64_t)1 << 48)) {
        return false;
    }
    arg->offset = offset * kernel_dtype_bytes(arg->tensor.dtype);
    return true;
}

static bool read_number(const char *word, TracedArg *arg) {
    char *end;
    arg->of = TRACED_NUMBER;
    arg->number = g_ascii_strtod(word, &end); /* "inf", "nan" too */
    bool is_whole = fabs(arg->number) < 0x1p53 && floor(arg->number) == arg->number;
    arg->integer = is_whole ? (int64_t)arg->number : 0;
    return end > word && !*end;
}

static bool read_item(const char *word, TracedArg *arg) {
    bool is_true = g_str_equal(word, "true");
    *arg = (TracedArg){.operand = PLAN_NONE};
    if (g_str_equal(word, "-")) {
        return true;
    }
    if (is_true || g_str_equal(word, "false")) {
        arg->of = TRACED_NUMBER;
        arg->number = arg->integer = is_true;
        return true;
    }
    if (strchr(word, '/')) {
        return read_tensor(word, arg);
    }
    if (!read_number(word, arg)) {
        arg->of = TRACED_TEXT;
        arg->text = word;
    }
    return *word != 0;
}

static bool read_list(TracedCall *call, char *word, TracedArg *arg) {
    size_t length = strlen(word);
    if (word[length - 1] != ']') {
        return false;
    }
    word[length - 1] = 0;
    *arg = (TracedArg){.of = TRACED_LIST, .operand = PLAN_NONE, .first = call->items->len};
    for (char *item = word + 1; item && *item;) {
        char *next = strchr(item, ';');
        if (next) {
            *next++ = 0;
        }
        TracedArg one;
        if (*item == '[' || !read_item(item, &one)) {
            return false;
        }
        g_array_append_val(call->items, one);
        arg->n++;
        item = next;
    }
    return true;
}

bool traced_call_read(TracedCall *call, const char *text, char **ret_fault) {
    *call = (TracedCall){.words = g_strdup(text),
                         .items = g_array_new(FALSE, FALSE, sizeof(TracedArg))};
    char *rest = call->words;
    bool is_made = false;
    call->name = strsep(&rest, " ");
    for (char *word; rest && (word = strsep(&rest, " "));) {
        if (g_str_equal(word, ">") && !is_made) {
            is_made = true;
            continue;
        }
        TracedArg *args = is_made ? call->made : call->args;
        unsigned *n = is_made ? &call->n_made : &call->n_args;
        if (*n == (is_made ? G_N_ELEMENTS(call->made) : G_N_ELEMENTS(call->args)) || !*word ||
            !(*word == '[' ? read_list(call, word, &args[*n]) : read_item(word, &args[*n]))) {
            *ret_fault = g_strdup_printf("'%s' is no argument of a call", word);
            return false;
        }
        (*n)++;
    }
    return true;
}

void traced_call_clear(TracedCall *call) {
    g_clear_pointer(&call->words, g_free);
    g_clear_pointer(&call->items, g_array_unref);
}
