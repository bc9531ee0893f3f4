#include "sim/costs/attention.h"

#include <math.h>

#include "sim/costs/attention-ordered.h"
#include "sim/costs/traffic.h"

enum {
    QUERIES = 128 /* of a block (FlashAttention 2 and 3) */
};

/* Backward has five products for two, and reads and writes twice as many tensors. */
SimAttention sim_attention_of(const SimAttentionShape *s) {
    double products = s->backward ? 5 : 2, tensors = s->backward ? 4 : 2;
    double tokens = s->batch * s->seq, pairs = tokens * s->seq / (s->causal ? 2 : 1);
    return (SimAttention){
        .batch = s->batch,
        .heads = s->heads,
        .seq = s->seq,
        .causal = s->causal,
        .backward = s->backward,
        .flops = 2 * products * pairs * s->heads * s->head_dim,
        .bytes = 2 * tensors * tokens * (s->heads + s->kv_heads) * s->head_dim,
    };
}

double sim_attention_rows(const SimAttention *attention) {
    return attention->batch * attention->heads * attention->seq;
}

double sim_attention_ns(const ModelCluster *cluster, const SimAttention *attention) {
    double of_flash = model_cluster_attention_efficiency(cluster, attention->backward);
    double share = attention->share > 0 ? attention->share : of_flash;
    double ns = attention->flops / (attention->peak_flops * share) * 1e9;
    if (cluster->device_sms > 0 && attention->ordered) {
        ns = cluster->attention_start_us * 1e3 + sim_attention_ordered_ns(cluster, attention, ns);
    } else if (cluster->device_sms > 0) {
        double blocks = attention->batch * attention->heads * ceil(attention->seq / QUERIES);
        double longest = ns * (double)cluster->device_sms / blocks * (attention->causal ? 2 : 1);
        ns += cluster->attention_start_us * 1e3 + cluster->attention_tail_share * longest;
    } else {
        double row_us =
            attention->backward ? cluster->attention_row_backward_us : cluster->attention_row_us;
        ns += row_us * 1e3 * sim_attention_rows(attention);
    }
    return fmax(ns, sim_traffic_ns(cluster, attention->bytes));
}
