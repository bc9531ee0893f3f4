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

double sim_jitter_factor(const SimJitter *jitter, SimJitterKind kind, uint32_t who, int32_t step,
                         uint32_t number) {
    double deviation = jitter->shares[kind];
    if (deviation == 0) {
        return 1;
    }
    uint64_t of_kind = mix(jitter->seed) ^ ((uint64_t)kind << 32 | who);
    uint64_t key = mix(mix(of_kind) ^ ((uint64_t)(uint32_t)step << 32 | number));
    double normal = sqrt(-2 * log(unit(key))) * cos(2 * G_PI * unit(mix(key)));
    double variance = log1p(deviation * deviation);
    return exp(sqrt(variance) * normal - variance / 2);
}

double sim_jitter_slowest(double share, uint32_t n) {
    if (share == 0 || n < 2) {
        return 1;
    }
    static const double gamma = 0.5772156649015329; /* Euler's */
    double a = sqrt(2 * log(n)), b = a - (log(log(n)) + log(4 * G_PI)) / (2 * a);
    return 1 + share * (b + gamma / a);
}
