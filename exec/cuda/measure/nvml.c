#include "exec/cuda/measure/nvml.h"

#include <dlfcn.h>

#include "exec/cuda/own-gpu.h"

static bool find(const ExecCudaNvml *nvml, const char *name, gpointer to) {
    return (*(gpointer *)to = dlsym(nvml->library, name)) != NULL;
}

bool exec_cuda_nvml_open(ExecCudaNvml *nvml) {
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        return false;
    }
    bool ok = find(nvml, "nvmlInit_v2", &nvml->init) &&
              find(nvml, "nvmlShutdown", &nvml->shutdown) &&
              find(nvml, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->by_bus) &&
              find(nvml, "nvmlSystemGetDriverVersion", &nvml->driver_version) &&
              find(nvml, "nvmlDeviceGetClockInfo", &nvml->clock_mhz) &&
              find(nvml, "nvmlDeviceGetMaxClockInfo", &nvml->max_clock_mhz) &&
              find(nvml, "nvmlDeviceGetPowerUsage", &nvml->power_mw) &&
              find(nvml, "nvmlDeviceGetEnforcedPowerLimit", &nvml->power_limit_mw) &&
              find(nvml, "nvmlDeviceGetMemoryInfo", &nvml->memory) && nvml->init() == 0;
    if (!ok) {
        dlclose(nvml->library);
    }
    return ok;
}

void exec_cuda_nvml_close(ExecCudaNvml *nvml) {
    nvml->shutdown();
    dlclose(nvml->library);
}

bool exec_cuda_nvml_own_gpu(const ExecCudaNvml *nvml, ExecCudaNvmlDevice *ret_device) {
    char bus[EXEC_CUDA_BUS_TEXT];
    return exec_cuda_own_bus(bus, NULL) && nvml->by_bus(bus, ret_device) == 0;
}
