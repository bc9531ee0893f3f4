/* tests/kernels-cuda/slack.h - how far off attention by tensor cores may be, which take 16-bit
 * numbers.
 *
 * What goes into a product was rounded: each p before it met v and d_o; each ds twice, before it
 * met k and q, for it may be made of the p that was rounded; and once more each head's part of dk
 * and dv, where heads share them. So far off is each output at most, with all terms of a sum taken
 * without their signs.
 */
#pragma once

#include <glib.h>
#include <math.h>

typedef struct {
    float *o, *dq, *dk, *dv;
} Slack;

/* Of one query's head and one key: what they are made of, and where they are added up. */
typedef struct {
    const float *q, *k, *v, *d_o;
    float lse, row_dot; /* row_dot: d_o times o */
    size_t at, kv_at;
} SlackPair;

static inline void slack_clear(Slack *s) {
    float **all[] = {&s->o, &s->dq, &s->dk, &s->dv};
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        g_clear_pointer(all[i], g_free);
    }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Slack, slack_clear)

static inline float slack_dot(const float *x, const float *y, size_t n) {
    float sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

static inline void slack_add_sizes(float *sum, float factor, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        sum[i] += fabsf(factor * x[i]);
    }
}

/* shared: heads share keys. */
static inline void slack_add(Slack *s, double rounding, float scale, bool shared, size_t dim,
                             const SlackPair *p) {
    float once = (float)rounding * expf(scale * slack_dot(p->q, p->k, dim) - p->lse);
    float twice = 2 * once * scale * (slack_dot(p->d_o, p->v, dim) - p->row_dot);
    slack_add_sizes(s->o + p->at, once, p->v, dim);
    slack_add_sizes(s->dq + p->at, twice, p->k, dim);
    slack_add_sizes(s->dk + p->kv_at, twice * (shared ? 1.5f : 1), p->q, dim);
    slack_add_sizes(s->dv + p->kv_at, once * (shared ? 2 : 1), p->d_o, dim);
}
