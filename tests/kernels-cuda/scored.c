/* tests/kernels-cuda/scored.c - attention to another sequence, with a bias of each score that lies
 * anyhow and may hide all keys of a query, against loops in double. */
#include <math.h>

#include "kernels/cuda/attention/attention.h"
#include "tests/kernels-cuda/device.h"

typedef struct {
    size_t batch, heads, kv_heads, rows, keys, dim, v_dim;
    bool causal;
    bool has[4]; /* sides of the bias that are there; along the others it repeats */
} Case;

static const Case cases[] = {
    {1, 1, 1, 1, 1, 4, 4, false, {true, true, true, true}},
    {2, 2, 2, 5, 9, 8, 8, false, {true, true, true, true}},
    {2, 3, 1, 40, 33, 16, 16, false, {true, false, false, true}}, /* padding */
    {2, 4, 2, 33, 70, 20, 36, false, {false, true, true, true}},  /* relative positions */
    {1, 2, 2, 37, 37, 64, 64, true, {true, false, true, true}},
    {1, 2, 1, 20, 11, 8, 8, true, {false, false, false, false}},
    {1, 1, 1, 19, 17, 130, 10, false, {true, true, true, true}},
};

/* Of queries, keys, values and what is made of them: [batch, row, head, element]. */
static size_t at(size_t batch, size_t row, size_t head, size_t rows, size_t heads, size_t dim) {
    return ((batch * rows + row) * heads + head) * dim;
}

typedef struct {
    const float *q, *k, *v, *bias, *d_o;
    const float *stored_o; /* as forward left it, rounded */
    const size_t *steps;   /* of the bias */
    float scale;
    float *o, *lse, *dq, *dk, *dv, *d_bias; /* what it makes; dk, dv: zero at first */
} Arrays;

static double dot(const float *x, const float *y, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)y[i];
    }
    return sum;
}

static void add(float *to, double factor, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        to[i] = (float)(to[i] + factor * (double)x[i]);
    }
}

/* One query of one head. */
static void attend(const Case *c, const Arrays *a, size_t batch, size_t head, size_t row) {
    size_t kv_head = head / (c->heads / c->kv_heads), number = batch * c->heads + head;
    size_t of_q = at(batch, row, head, c->rows, c->heads, c->dim);
    size_t of_o = at(batch, row, head, c->rows, c->heads, c->v_dim);
    g_autofree double *p = g_new(double, c->keys);
    double most = -INFINITY, sum = 0;
    double row_dot = dot(a->d_o + of_o, a->stored_o + of_o, c->v_dim);
    for (size_t j = 0; j < c->keys; j++) {
        size_t of_k = at(batch, j, kv_head, c->keys, c->kv_heads, c->dim);
        size_t of_bias = batch * a->steps[0] + head * a->steps[1] + row * a->steps[2];
        bool sees = !c->causal || j <= row;
        p[j] = sees ? (double)a->scale * dot(a->q + of_q, a->k + of_k, c->dim) +
                          (double)a->bias[of_bias + j * a->steps[3]]
                    : -INFINITY;
        most = MAX(most, p[j]);
    }
    for (size_t j = 0; j < c->keys; j++) {
        p[j] = most == -INFINITY ? 0 : exp(p[j] - most);
        sum += p[j];
    }
    a->lse[number * c->rows + row] = (float)(most + log(sum));
    for (size_t d = 0; d < c->v_dim; d++) {
        a->o[of_o + d] = 0;
    }
    for (size_t j = 0; j < c->keys; j++) {
        size_t of_v = at(batch, j, kv_head, c->keys, c->kv_heads, c->v_dim);
        p[j] /= sum > 0 ? sum : 1;
        add(a->o + of_o, p[j], a->v + of_v, c->v_dim);
    }
    for (size_t d = 0; d < c->dim; d++) {
        a->dq[of_q + d] = 0;
    }
    for (size_t j = 0; j < c->keys; j++) {
        size_t of_k = at(batch, j, kv_head, c->keys, c->kv_heads, c->dim);
        size_t of_v = at(batch, j, kv_head, c->keys, c->kv_heads, c->v_dim);
        double ds = p[j] * (dot(a->d_o + of_o, a->v + of_v, c->v_dim) - row_dot);
        a->d_bias[(number * c->rows + row) * c->keys + j] = (float)ds;
        add(a->dq + of_q, (double)a->scale * ds, a->k + of_k, c->dim);
        add(a->dk + of_k, (double)a->scale * ds, a->q + of_q, c->dim);
        add(a->dv + of_v, p[j], a->d_o + of_o, c->v_dim);
    }
}

/* With rows that see no key, where the bias differs from row to row. */
static float *new_bias(const DeviceCase *d, const Case *c, size_t *ret_n, size_t *ret_steps) {
    const size_t sizes[] = {c->batch, c->heads, c->rows, c->keys};
    *ret_n = 1;
    for (unsigned i = 4; i-- > 0;) {
        ret_steps[i] = c->has[i] ? *ret_n : 0;
        *ret_n *= c->has[i] ? sizes[i] : 1;
    }
    float *bias = device_random(d, *ret_n, -2, 2, 3);
    for (size_t i = 0; c->has[3] && i < *ret_n; i++) {
        bool is_hidden = i % 5 == 2 && i % c->keys > 0;
        bool hides_all = c->has[2] && i / c->keys % c->rows == 1;
        bias[i] = is_hidden || hides_all ? -INFINITY : bias[i];
    }
    return bias;
}

static void check(const DeviceCase *d, const Case *c) {
    size_t n_q = c->batch * c->rows * c->heads * c->dim, steps[4], n_bias;
    size_t n_k = c->batch * c->keys * c->kv_heads * c->dim;
    size_t n_v = c->batch * c->keys * c->kv_heads * c->v_dim;
    size_t n_o = c->batch * c->rows * c->heads * c->v_dim, n_rows = c->batch * c->heads * c->rows;
    g_autofree float *q = device_random(d, n_q, -2, 2, 1), *k = device_random(d, n_k, -2, 2, 2);
    g_autofree float *v = device_random(d, n_v, -2, 2, 4), *d_o = device_random(d, n_o, -1, 1, 5);
    g_autofree float *bias = new_bias(d, c, &n_bias, steps), *o = g_new(float, n_o);
    g_autofree float *lse = g_new(float, n_rows), *dq = g_new(float, n_q), *dk = g_new0(float, n_k);
    g_autofree float *dv = g_new0(float, n_v), *d_bias = g_new(float, n_rows * c->keys);
    KernelCudaAttention shape = {.batch = c->batch,
                                 .heads = c->heads,
                                 .kv_heads = c->kv_heads,
                                 .seq = c->rows,
                                 .head_dim = c->dim,
                                 .q_stride = c->heads * c->dim,
                                 .k_stride = c->kv_heads * c->dim,
                                 .v_stride = c->kv_heads * c->v_dim,
                                 .lse_stride = c->rows,
                                 .scale = 0.3f,
                                 .causal = c->causal,
                                 .type = d->type,
                                 .scored = true,
                                 .bias_strides = {steps[0], steps[1], steps[2], steps[3]},
                                 .v_dim = c->v_dim,
                                 .keys = c->keys};
    void *in_q = device_put(d, q, n_q), *in_k = device_put(d, k, n_k),
         *in_v = device_put(d, v, n_v);
    void *in_bias = device_put(d, bias, n_bias), *got_o = device_new(d, n_o);
    float *got_lse = device_new_floats(n_rows);
    void *got_dq = device_new(d, n_q), *got_dk = device_new(d, n_k), *got_dv = device_new(d, n_v);
    void *got_d_bias = device_new(d, n_rows * c->keys);
    DEVICE_OK(kernel_cuda_attention_forward(device_lane, got_o, got_lse, in_q, in_k, in_v, in_bias,
                                            &shape));
    g_autofree float *stored_o = device_get(d, got_o, n_o);
    Arrays arrays = {q, k, v, bias, d_o, stored_o, steps, 0.3f, o, lse, dq, dk, dv, d_bias};
    for (size_t i = 0; i < n_rows; i++) {
        attend(c, &arrays, i / c->rows / c->heads, i / c->rows % c->heads, i % c->rows);
    }
    device_close("o", d, got_o, o, n_o, 1e-5, 1e-5);
    device_close_floats("lse", got_lse, lse, n_rows, 2e-6, 2e-6);
    DEVICE_OK(kernel_cuda_attention_backward(device_lane, got_dq, got_dk, got_dv, got_d_bias,
                                             device_put(d, d_o, n_o), in_q, in_k, in_v, in_bias,
                                             got_o, got_lse, &shape));
    device_close("dq", d, got_dq, dq, n_q, 2e-5, 2e-5);
    device_close("dk", d, got_dk, dk, n_k, 2e-5, 2e-5);
    device_close("dv", d, got_dv, dv, n_v, 2e-5, 2e-5);
    device_close("d_bias", d, got_d_bias, d_bias, n_rows * c->keys, 2e-5, 2e-5);
}

static void test_scored(const DeviceCase *d) {
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        check(d, &cases[i]);
    }
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/scored/attention", test_scored);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
