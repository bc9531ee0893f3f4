/* tests/kernels/eight-bit.c - maps and places against what torchao makes of the same 65536 numbers
 * (0.18 on a CPU), and that a step in one kernel leaves what a step in two does.
 */
#include "kernels/host/lists/eight-bit.h"
#include "kernels/host/products/four-bit.h"
#include "tests/kernels/check.h"

#include <string.h>

enum {
    N = 1 << 16,
    N_STEPPED = 5 * KERNEL_BYTE_BLOCK
};

static void assert_sha256(const void *data, gsize bytes, const char *sha256) {
    g_autofree char *got = g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, bytes);
    g_assert_cmpstr(got, ==, sha256);
}

/* The numbers of four-bit.c, or their magnitudes, each over the largest of its block. */
static float *scaled(unsigned parts, const char *sha256) {
    float *x = g_new(float, N);
    for (uint32_t i = 0; i < N; i++) {
        float y = (float)(i * 2654435761u >> 8) / (float)(1 << 24) - 0.5f;
        y = y * y * y * (float)(1 + i / 64 % 7);
        x[i] = parts == 2 ? fabsf(y) : y;
    }
    for (uint32_t i = 0; i < N; i += KERNEL_BYTE_BLOCK) {
        float most = 0;
        for (uint32_t k = i; k < i + KERNEL_BYTE_BLOCK; k++) {
            most = fmaxf(most, fabsf(x[k]));
        }
        for (uint32_t k = i; k < i + KERNEL_BYTE_BLOCK; k++) {
            x[k] /= most;
        }
    }
    assert_sha256(x, N * sizeof *x, sha256);
    return x;
}

static void as_torchao(void) {
    static const char *const sums[][3] = {
        {"e732639a65f497b4ad684bb166a4467708255edd5207757de8b8f0c7e1fda89c",
         "9d0dcee040af2fdf2c2f5d528bebcb05edc33fe0167636efd34c5dc4cbcc62a0",
         "9b6ffd5552878d0d24923007a256b3a5129aeba1ea4af9e06cf32e1056de7b99"},
        {"305f002cc11278fb769d13b25b9fd0c7c83c8402c40a878fe086f4039fde6398",
         "b9e64ed02fbd6adfa23f0a26210ae668d8df29a2367e34f3630bae5f435ee2b6",
         "37292c23c2b3c37ded091a6df0c953f3035ca7dec462b3bb7bf7f22349a7ac3d"},
    };
    for (unsigned parts = 1; parts <= 2; parts++) {
        float map[KERNEL_BYTE_MAP];
        g_autofree uint8_t *codes = g_new(uint8_t, N);
        g_autofree float *x = scaled(parts, sums[parts - 1][1]);
        kernel_state_map(map, parts);
        assert_sha256(map, sizeof map, sums[parts - 1][0]);
        kernel_put_codes(codes, x, map, N);
        assert_sha256(codes, N, sums[parts - 1][2]);
    }
}

/* A parameter and its states after some steps. */
typedef struct {
    float param[N_STEPPED], maps[2][KERNEL_BYTE_MAP], absmax[2][N_STEPPED / KERNEL_BYTE_BLOCK];
    uint8_t codes[2][N_STEPPED];
} Stepped;

typedef enum {
    IN_ONE,
    PARAMETER_FIRST,
    PARAMETER_SECOND
} Way;

static void step(Stepped *s, Way way, const float *grad, const KernelAdamOne *one) {
    enum {
        N_BLOCKS = N_STEPPED / KERNEL_BYTE_BLOCK
    };
    float most[2][N_BLOCKS], scaled[2][N_STEPPED], least = 1e-12f;
    KernelState8bit m = {s->codes[0], s->absmax[0], s->maps[0], most[0], scaled[0]};
    KernelState8bit v = {s->codes[1], s->absmax[1], s->maps[1], most[1], scaled[1]};
    if (way == IN_ONE) {
        kernel_adam_8bit(s->param, grad, &m, &v, N_STEPPED, least, one);
        return;
    }
    kernel_adam_8bit_scaled(way == PARAMETER_FIRST ? s->param : NULL, grad, &m, &v, N_STEPPED,
                            least, one);
    if (way == PARAMETER_SECOND) {
        kernel_adam_8bit_update(s->param, grad, &m, &v, N_STEPPED, one);
    }
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned b = 0; b < N_BLOCKS; b++) {
            s->absmax[k][b] = most[k][b] < least ? least : most[k][b];
        }
        kernel_put_codes(s->codes[k], scaled[k], s->maps[k], N_STEPPED);
    }
}

static Stepped *all_zero(unsigned n) {
    Stepped *all = g_new0(Stepped, n);
    for (unsigned i = 0; i < n; i++) {
        kernel_state_map(all[i].maps[0], 1);
        kernel_state_map(all[i].maps[1], 2);
    }
    return all;
}

/* One block has no gradients. */
static void all_ways_are_one(void) {
    g_autofree Stepped *all = all_zero(3);
    for (Way way = IN_ONE; way <= PARAMETER_SECOND; way++) {
        Stepped *s = &all[way];
        for (int64_t i = 1; i <= 3; i++) {
            float grad[N_STEPPED];
            for (unsigned k = 0; k < N_STEPPED; k++) {
                grad[k] =
                    k / KERNEL_BYTE_BLOCK == 1 ? 0 : sinf((float)k * (float)i) * (float)(k % 9);
            }
            KernelAdamOne one = kernel_adam_one_of(1e-3, 0.9, 0.999, 1e-8, 0.1, i);
            step(s, way, grad, &one);
        }
        g_assert_cmpmem(s, sizeof *s, &all[IN_ONE], sizeof *s);
    }
    g_assert_true(all->param[1] != 0 && all->param[KERNEL_BYTE_BLOCK] == 0);
}

/* A gradient that is no number leaves its block none, as torchao's clip() does, and no other. */
static void nan_stays(void) {
    for (Way way = IN_ONE; way <= PARAMETER_SECOND; way++) {
        g_autofree Stepped *s = all_zero(1);
        float grad[N_STEPPED] = {[KERNEL_BYTE_BLOCK + 7] = NAN};
        for (int64_t i = 1; i <= 2; i++) {
            KernelAdamOne one = kernel_adam_one_of(1e-3, 0.9, 0.999, 1e-8, 0.1, i);
            step(s, way, grad, &one);
            grad[KERNEL_BYTE_BLOCK + 7] = 1;
        }
        for (unsigned k = 0; k < N_STEPPED; k++) {
            g_assert_cmpint(isnan(s->param[k]) != 0, ==, k / KERNEL_BYTE_BLOCK == 1);
        }
    }
}

/* A first step goes by lr, whatever the gradient: moments that are made of it alone, corrected. */
static void first_step(void) {
    float param = 1, exp_avg = 0, exp_avg_sq = 0, grad = -0.3f;
    KernelAdamOne one = kernel_adam_one_of(0.01, 0.9, 0.999, 0, 0.5, 1);
    kernel_adam_one(&param, &exp_avg, &exp_avg_sq, &grad, 1, &one);
    g_assert_cmpfloat(fabs((double)param - (1 - 0.005 + 0.01)), <, 1e-6);
    g_assert_cmpfloat(fabs((double)exp_avg + 0.03), <, 1e-8);
    g_assert_cmpfloat(fabs((double)exp_avg_sq - 0.09e-3), <, 1e-10);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/eight-bit/as torchao", as_torchao);
    g_test_add_func("/kernels/eight-bit/all ways are one", all_ways_are_one);
    g_test_add_func("/kernels/eight-bit/NaN stays", nan_stays);
    g_test_add_func("/kernels/eight-bit/first step", first_step);
    return g_test_run();
}
