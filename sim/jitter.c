#include "sim/jitter.h"

#include <glib.h>
#include <math.h>

/* SplitMix64's finalizer (Steele, Lea, Flood 2014): every bit of the input changes half of the
 * output's. */
static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* In (0, 1]: a logarithm is taken of it. */
static double unit(uint64_t bits) {
    return (double)((bits >> 11) + 1) * 0x1p-53;
}

/* Log-normal with mean 1; sigma: the logarithm's standard deviation. */
static double factor_of(double normal, double sigma) {
    return exp(sigma * normal - sigma * sigma / 2);
}

static double sigma_of(double share) {
    return sqrt(log1p(share * share));
}

double sim_jitter_draw(const SimJitter *jitter, SimJitterKind kind, uint32_t who, int32_t step,
                       uint32_t number) {
    double share = jitter->shares[kind];
    uint64_t of_kind = mix(jitter->seed) ^ ((uint64_t)kind << 32 | who);
    uint64_t key = mix(mix(of_kind) ^ ((uint64_t)(uint32_t)step << 32 | number));
    double normal = sqrt(-2 * log(unit(key))) * cos(2 * G_PI * unit(mix(key)));
    return factor_of(normal, sigma_of(share));
}

/* Of n normal draws, how densely the largest lies at x: n times the density of one there, times
 * the chance that the others are less. */
static double density_of_largest(double x, uint32_t n) {
    double density = exp(-x * x / 2) / sqrt(2 * G_PI), below = erfc(-x / G_SQRT2) / 2;
    return n * density * pow(below, n - 1);
}

double sim_jitter_slowest(double share, uint32_t n) {
    if (share == 0 || n < 2) {
        return 1;
    }
    /* The mean of the factor over the largest draw, by the trapezoidal rule: the integrand is
     * smooth and nothing at both ends, so the rule errs by less than 1e-12 even of a million. */
    static const double width = 1.0 / 16, end = 9;
    double sigma = sigma_of(share), sum = 0;
    for (double x = -end; x <= end + sigma; x += width) {
        sum += factor_of(x, sigma) * density_of_largest(x, n) * width;
    }
    return sum;
}
