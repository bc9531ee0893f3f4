/* tests/kernels/embedding.c - table lookup and the sum over repeated rows. */
#include "kernels/host/rows/embedding.h"
#include "tests/kernels/check.h"

typedef struct {
    const gint64 *index;
    size_t count, vocab, width;
} Lookup;

static void lookup(const double *in, double *out, gpointer data) {
    const Lookup *size = data;

    for (size_t i = 0; i < size->count * size->width; i++) {
        out[i] = in[(size_t)size->index[i / size->width] * size->width + i % size->width];
    }
}

static void try_size(size_t count, size_t vocab, size_t width) {
    g_autofree gint64 *index = g_new(gint64, count);
    g_autofree float *weight = check_random(vocab * width, -1, 1, 1);
    g_autofree float *dout = check_random(count * width, -1, 1, 2);
    g_autofree float *out = check_poisoned(count * width);
    g_autofree float *dweight = check_poisoned(vocab * width);
    g_autofree double *wide = check_doubles(weight, vocab * width);
    g_autofree double *want = g_new(double, count *width);
    Lookup size = {index, count, vocab, width};

    for (size_t i = 0; i < count; i++) {
        index[i] = (gint64)(i * i % vocab); /* some rows often, some never */
    }
    lookup(wide, want, &size);
    g_assert_true(kernel_embedding_forward_f32(out, weight, index, count, vocab, width));
    check_close("embedding_forward", out, want, count * width, 0.0, 0.0);
    g_assert_true(kernel_embedding_backward_f32(dweight, dout, index, count, vocab, width));
    check_gradient("embedding_backward", dweight, lookup, &size, wide, vocab * width, dout,
                   count * width, 1e-6, 1e-6);
}

static void test_sizes(void) {
    try_size(1, 1, 1);
    try_size(3, 7, 33);
    try_size(33, 7, 3);
    try_size(40, 11, 7);
}

static void test_outside(void) {
    const gint64 low[] = {0, -1}, high[] = {3, 0};
    float table[6] = {0}, rows[4] = {0};

    g_assert_false(kernel_embedding_forward_f32(rows, table, low, 2, 3, 2));
    g_assert_false(kernel_embedding_forward_f32(rows, table, high, 2, 3, 2));
    g_assert_false(kernel_embedding_backward_f32(table, rows, low, 2, 3, 2));
    g_assert_false(kernel_embedding_backward_f32(table, rows, high, 2, 3, 2));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/embedding/sizes", test_sizes);
    g_test_add_func("/kernels/embedding/outside", test_outside);
    return g_test_run();
}
