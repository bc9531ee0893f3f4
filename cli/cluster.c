#include "cli/cluster.h"

#include "cli/data-dir.h"
#include "plan/plan.h"
#include "sim/nccl.h"

ModelCluster *cli_cluster_read(const char *name, GError **error) {
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, name, error);
    return path != NULL ? model_cluster_read_file(path, error) : NULL;
}

bool cli_cluster_check_nccl(const char *algo, const char *proto, GError **error) {
    const char *algos[SIM_NCCL_N_ALGOS + 1] = {NULL}, *protos[SIM_NCCL_N_PROTOS + 1] = {NULL};
    for (unsigned i = 0; i < SIM_NCCL_N_ALGOS; i++) {
        algos[i] = sim_nccl_algo_name((SimNcclAlgo)i);
    }
    for (unsigned i = 0; i < SIM_NCCL_N_PROTOS; i++) {
        protos[i] = sim_nccl_proto_name((SimNcclProto)i);
    }
    SimNcclAlgo known_algo;
    SimNcclProto known_proto;
    bool bad_algo = algo != NULL && !sim_nccl_algo_parse(algo, &known_algo);
    bool bad_proto = proto != NULL && !sim_nccl_proto_parse(proto, &known_proto);
    if (bad_algo || bad_proto) {
        g_autofree char *names = g_strjoinv(", ", (char **)(bad_algo ? algos : protos));
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "--nccl-%s is one of %s",
                    bad_algo ? "algo" : "proto", names);
    }
    return !bad_algo && !bad_proto;
}
