/* tests/emulator/nvml.c - NVIDIA's management library, as far as exec/cuda/measure/facts.c asks it:
 * a GPU whose clock falls by 1 MHz each time somebody looks. Loaded by name, as the real one is. */
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, const void **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, const void **device);
int nvmlSystemGetDriverVersion(char *text, unsigned length);
int nvmlDeviceGetClockInfo(const void *device, int clock, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(const void *device, int clock, unsigned *mhz);
int nvmlDeviceGetPowerUsage(const void *device, unsigned *mw);
int nvmlDeviceGetEnforcedPowerLimit(const void *device, unsigned *mw);
int nvmlDeviceGetMemoryInfo(const void *device, unsigned long long *total_free_used);

static unsigned looks;

int nvmlInit_v2(void) {
    return 0;
}

int nvmlShutdown(void) {
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, const void **device) {
    *device = &looks;
    return bus[0] ? 0 : 2;
}

/* For tests/gpu, which only holds it. */
int nvmlDeviceGetHandleByIndex_v2(unsigned index, const void **device) {
    *device = &looks;
    return index ? 2 : 0;
}

int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    const char *version = "580.00";
    for (unsigned i = 0; i < length; i++) {
        text[i] = version[i];
        if (!version[i]) {
            return 0;
        }
    }
    return 7;
}

int nvmlDeviceGetClockInfo(const void *device, int clock, unsigned *mhz) {
    *mhz = clock == 1 ? 1980 - __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED) % 900 : 3201;
    return device == &looks ? 0 : 2;
}

int nvmlDeviceGetMaxClockInfo(const void *device, int clock, unsigned *mhz) {
    *mhz = clock == 1 ? 1980 : 3201;
    return 0;
}

int nvmlDeviceGetPowerUsage(const void *device, unsigned *mw) {
    *mw = 650000;
    return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(const void *device, unsigned *mw) {
    *mw = 700000;
    return 0;
}

int nvmlDeviceGetMemoryInfo(const void *device, unsigned long long *total_free_used) {
    total_free_used[0] = 1 << 30;
    total_free_used[1] = 1 << 29;
    total_free_used[2] = 1 << 29;
    return 0;
}
