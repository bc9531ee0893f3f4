/* models/cluster-links.c - NVLinks that join the GPUs of a node pair by pair, without a switch.
 *
 *     nvlinks = 0-1:6, 0-2:6, 0-3:6, 1-2:6, 1-3:6, 2-3:6
 *
 * A ring over some of a node's GPUs comes into each by one link and leaves it by another, to
 * another GPU. Of two GPUs with c links a ring there and back takes one each way, so c rings fit.
 * Of three and more, each way round counts as a ring: a GPU with s links to the others, m of them
 * to one, lets s rings through, but not more than 2 (s - m), for of the two links that a ring and
 * its way back take, one must lead elsewhere. A GPU that is joined to one other alone lets s rings
 * through, there and back. As many rings fit as the narrowest GPU lets through: NCCL's search
 * (src/graph/search.cc) finds that many on a DGX-1 for two to eight GPUs, as published all-reduces
 * show (tests/validation/collectives.csv, V100), and on four GPUs that are all joined.
 */
#include <string.h>

#include "plan/files/file.h"

#include "models/cluster-private.h"

static bool refuse_form(const PlanIni *ini, const PlanIniEntry *entry, const char *pair,
                        GError **error) {
    return plan_ini_refuse(ini, entry, error,
                           "'%s' names no NVLinks; write two GPUs of a node, of %u at most and "
                           "counted from 0, and how many links join them, as in 0-1:6, 0-2:6",
                           pair, MODEL_MOST_LINKED);
}

/* "0-1:6" */
static bool read_pair(ModelCluster *cluster, const PlanIni *ini, const PlanIniEntry *entry,
                      char *pair, GError **error) {
    g_auto(GStrv) halves = g_strsplit(g_strstrip(pair), ":", 2);
    g_auto(GStrv) ends = g_strsplit(halves[0] ? halves[0] : "", "-", 2);
    uint64_t a, b, n;
    if (!halves[0] || !halves[1] || !ends[0] || !ends[1] ||
        !plan_parse_u64(g_strstrip(ends[0]), &a) || !plan_parse_u64(g_strstrip(ends[1]), &b) ||
        !plan_parse_u64(g_strstrip(halves[1]), &n) || a >= MODEL_MOST_LINKED ||
        b >= MODEL_MOST_LINKED || a == b || n < 1 || n > 64) {
        return refuse_form(ini, entry, pair, error);
    }
    if (cluster->nvlinks[a][b]) {
        return plan_ini_refuse(ini, entry, error, "GPUs %s stand in nvlinks twice; name them once",
                               halves[0]);
    }
    cluster->nvlinks[a][b] = cluster->nvlinks[b][a] = (uint8_t)n;
    return true;
}

bool model_cluster_read_links(ModelCluster *cluster, const PlanIni *ini, const PlanIniEntry *entry,
                              GError **error) {
    g_auto(GStrv) pairs = g_strsplit(entry->value, ",", -1);
    memset(cluster->nvlinks, 0, sizeof cluster->nvlinks);
    for (char **pair = pairs; *pair; pair++) {
        if (!read_pair(cluster, ini, entry, *pair, error)) {
            return false;
        }
    }
    cluster->has_nvlinks = true;
    return true;
}

/* Of those among gpus (a bit each), the least, and all that can be come to from there. */
static bool are_joined(const ModelCluster *cluster, uint32_t gpus) {
    uint32_t reached = gpus & -gpus;
    for (unsigned round = 0; round < MODEL_MOST_LINKED; round++) {
        for (unsigned a = 0; a < MODEL_MOST_LINKED; a++) {
            for (unsigned b = 0; b < MODEL_MOST_LINKED; b++) {
                bool steps = (reached >> a & 1) && (gpus >> b & 1) && cluster->nvlinks[a][b];
                reached |= steps ? 1u << b : 0;
            }
        }
    }
    return reached == gpus;
}

/* Rings that a GPU lets through, among these. */
static uint32_t passes(const ModelCluster *cluster, unsigned gpu, uint32_t gpus) {
    uint32_t sum = 0, most = 0;
    for (unsigned other = 0; other < MODEL_MOST_LINKED; other++) {
        uint32_t links = gpus >> other & 1 ? cluster->nvlinks[gpu][other] : 0;
        sum += links;
        most = MAX(most, links);
    }
    return sum == most ? sum : MIN(sum, 2 * (sum - most));
}

double model_cluster_links_share(const ModelCluster *cluster, uint32_t gpus) {
    uint32_t least = UINT32_MAX, most = 0;
    if (!cluster->has_nvlinks || (gpus & (gpus - 1)) == 0) {
        return 1; /* one GPU needs no link */
    }
    for (unsigned gpu = 0; gpu < MODEL_MOST_LINKED; gpu++) {
        uint32_t links = 0;
        for (unsigned other = 0; other < MODEL_MOST_LINKED; other++) {
            links += cluster->nvlinks[gpu][other];
        }
        most = MAX(most, links);
        least = gpus >> gpu & 1 ? MIN(least, passes(cluster, gpu, gpus)) : least;
    }
    return are_joined(cluster, gpus) ? (double)least / most : 0;
}

bool model_cluster_check_links(const ModelCluster *cluster, const PlanIni *ini,
                               const PlanIniEntry *entry, GError **error) {
    if (!cluster->has_nvlinks) {
        return true;
    }
    uint64_t n = cluster->topology_gpus_per_node;
    bool all_joined = true;
    for (unsigned a = 0; a < MODEL_MOST_LINKED; a++) {
        for (unsigned b = 0; b < a; b++) {
            if (a >= n && cluster->nvlinks[a][b]) {
                return plan_ini_refuse(
                    ini, entry, error,
                    "nvlinks name GPU %u, and gpus_per_node is %" G_GUINT64_FORMAT
                    "; GPUs count from 0",
                    a, n);
            }
            all_joined &= a >= n || cluster->nvlinks[a][b];
        }
    }
    if (n > MODEL_MOST_BESIDE) {
        return plan_ini_refuse(ini, entry, error,
                               "nvlinks are known of nodes of up to %u GPUs, and gpus_per_node is "
                               "%" G_GUINT64_FORMAT "; take nvlinks out",
                               MODEL_MOST_BESIDE, n);
    }
    if (cluster->device_compute_capability == 0) {
        return plan_ini_refuse(ini, entry, error,
                               "nvlinks are for NCCL's rings; give compute_capability, too");
    }
    if (cluster->intra_node_nvls_heads > 0) {
        return plan_ini_refuse(ini, entry, error,
                               "nvlinks say that no switch joins the GPUs, and nvls_heads are a "
                               "switch's; take one of the keys out");
    }
    if ((!all_joined || n > MODEL_MOST_LINKED) && !(cluster->intra_node_pcie_gb_per_s > 0)) {
        return plan_ini_refuse(ini, entry, error,
                               "nvlinks leave GPUs of a node apart; say what PCIe carries between "
                               "them, as pcie_gb_per_s in [intra_node]");
    }
    return true;
}
