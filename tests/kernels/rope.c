/* tests/kernels/rope.c - rotary embedding against rotate_half in double, through strided views. */
#include "kernels/host/attention/rope.h"
#include "tests/kernels/check.h"

enum {
    BATCH = 2,
    HEADS = 3,
    SEQ = 7,
    WIDTH = 6,
    N = BATCH * HEADS * SEQ * WIDTH
};

typedef struct {
    const float *cos_table, *sin_table;
} Tables;

/* in and out are [batch, seq, heads, width]: x cos + rotate_half(x) sin. */
static void rotate(const double *in, double *out, gpointer data) {
    const Tables *tables = data;

    for (size_t i = 0; i < N; i++) {
        size_t j = i % WIDTH, s = i / (WIDTH * HEADS) % SEQ;
        double half = j < WIDTH / 2 ? -in[i + WIDTH / 2] : in[i - WIDTH / 2];

        out[i] = in[i] * (double)tables->cos_table[s * WIDTH + j] +
                 half * (double)tables->sin_table[s * WIDTH + j];
    }
}

/* Random tables, whose two halves differ: the transpose must be right even then. */
static void test_forward_backward(void) {
    g_autofree float *cos_table = check_random(SEQ * WIDTH, -1, 1, 1);
    g_autofree float *sin_table = check_random(SEQ * WIDTH, -1, 1, 2);
    g_autofree float *x = check_random(N, -2, 2, 3);
    g_autofree float *dy = check_random(N, -2, 2, 4);
    g_autofree float *y = check_poisoned(N);
    g_autofree float *heads_first = check_poisoned(N);
    g_autofree float *back = check_poisoned(N);
    g_autofree float *dx = check_poisoned(N);
    g_autofree double *wide = check_doubles(x, N);
    g_autofree double *want = g_new(double, N);
    Tables tables = {cos_table, sin_table};
    KernelConstView from = kernel_const_view_bshd(x, SEQ, HEADS, WIDTH);

    rotate(wide, want, &tables);
    kernel_rope_forward_f32(kernel_view_bshd(y, SEQ, HEADS, WIDTH), from, cos_table, sin_table,
                            BATCH, HEADS, SEQ, WIDTH);
    check_close("rope_forward", y, want, N, 1e-6, 1e-6);

    kernel_rope_forward_f32(kernel_view_bhsd(heads_first, SEQ, HEADS, WIDTH), from, cos_table,
                            sin_table, BATCH, HEADS, SEQ, WIDTH);
    check_guard("rope_forward", heads_first, N);
    for (size_t i = 0; i < N; i++) {
        size_t j = i % WIDTH, h = i / WIDTH % HEADS, s = i / (WIDTH * HEADS) % SEQ;
        size_t b = i / (WIDTH * HEADS * SEQ);

        back[i] = heads_first[((b * HEADS + h) * SEQ + s) * WIDTH + j];
    }
    check_same("rope_forward to heads first", back, y, N);

    kernel_rope_backward_f32(kernel_view_bshd(dx, SEQ, HEADS, WIDTH),
                             kernel_const_view_bshd(dy, SEQ, HEADS, WIDTH), cos_table, sin_table,
                             BATCH, HEADS, SEQ, WIDTH);
    check_gradient("rope_backward", dx, rotate, &tables, wide, N, dy, N, 1e-6, 1e-6);

    kernel_rope_forward_f32(kernel_view_bshd(x, SEQ, HEADS, WIDTH), from, cos_table, sin_table,
                            BATCH, HEADS, SEQ, WIDTH);
    check_same("rope_forward in place", x, y, N);
}

static void test_tables(void) {
    g_autofree float *cos_table = check_poisoned(SEQ * WIDTH);
    g_autofree float *sin_table = check_poisoned(SEQ * WIDTH);
    g_autofree double *want_cos = g_new(double, SEQ *WIDTH);
    g_autofree double *want_sin = g_new(double, SEQ *WIDTH);

    for (size_t s = 0; s < SEQ; s++) {
        for (size_t j = 0; j < WIDTH; j++) {
            double angle =
                (double)(100 + s) / pow(10000.0, (double)(j % (WIDTH / 2)) / (double)(WIDTH / 2));

            want_cos[s * WIDTH + j] = cos(angle);
            want_sin[s * WIDTH + j] = sin(angle);
        }
    }
    kernel_rope_tables_f32(cos_table, sin_table, SEQ, WIDTH, 10000.0, 100);
    check_close("rope cos", cos_table, want_cos, SEQ * WIDTH, 1e-7, 1e-8);
    check_close("rope sin", sin_table, want_sin, SEQ * WIDTH, 1e-7, 1e-8);
}

/* ---- neighbours as complex numbers ---------------------------------------------------------- */

static void turn(const double *in, double *out, gpointer data) {
    const float *turns = data;
    for (size_t i = 0; i < N; i += 2) {
        size_t at = i / (WIDTH * HEADS) % SEQ * WIDTH + i % WIDTH;
        double real = (double)turns[at], imaginary = (double)turns[at + 1];

        out[i] = in[i] * real - in[i + 1] * imaginary;
        out[i + 1] = in[i] * imaginary + in[i + 1] * real;
    }
}

/* A random table, and the conjugate for the gradient. */
static void test_turn(void) {
    g_autofree float *turns = check_random(SEQ * WIDTH, -1, 1, 5);
    g_autofree float *back = check_poisoned(SEQ * WIDTH);
    g_autofree float *x = check_random(N, -2, 2, 6), *dy = check_random(N, -2, 2, 7);
    g_autofree float *y = check_poisoned(N), *dx = check_poisoned(N);
    g_autofree double *wide = check_doubles(x, N), *want = g_new(double, N);

    turn(wide, want, turns);
    kernel_turn_f32(kernel_view_bshd(y, SEQ, HEADS, WIDTH),
                    kernel_const_view_bshd(x, SEQ, HEADS, WIDTH), turns, BATCH, HEADS, SEQ, WIDTH);
    check_close("turn", y, want, N, 1e-6, 1e-6);
    kernel_conjugate_f32(back, turns, SEQ * WIDTH);
    check_guard("conjugate", back, SEQ * WIDTH);
    kernel_turn_f32(kernel_view_bshd(dx, SEQ, HEADS, WIDTH),
                    kernel_const_view_bshd(dy, SEQ, HEADS, WIDTH), back, BATCH, HEADS, SEQ, WIDTH);
    check_gradient("turn backward", dx, turn, turns, wide, N, dy, N, 1e-6, 1e-6);
}

static void test_turn_table(void) {
    g_autofree float *turns = check_poisoned(SEQ * WIDTH);
    g_autofree double *want = g_new(double, SEQ *WIDTH);

    for (size_t i = 0; i < SEQ * WIDTH; i++) {
        size_t j = i % WIDTH / 2;
        double angle = (double)(i / WIDTH) / pow(10000.0, (double)(2 * j) / (double)WIDTH);

        want[i] = i % 2 ? sin(angle) : cos(angle);
    }
    kernel_turn_table_f32(turns, SEQ, WIDTH, 10000.0);
    check_close("turn table", turns, want, SEQ * WIDTH, 1e-7, 1e-8);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/rope/forward-backward", test_forward_backward);
    g_test_add_func("/kernels/rope/tables", test_tables);
    g_test_add_func("/kernels/rope/turn", test_turn);
    g_test_add_func("/kernels/rope/turn-table", test_turn_table);
    return g_test_run();
}
