/* tests/gpu/driver.c - stands for a driver, for programs that only ask: one GPU, and the CUDA
 * version that FORESHARD_DRIVER_TAKES says (12040 is 12.4). Each process that begins with it
 * adds its number to the file FORESHARD_DRIVER_BEGUN.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* CUDA's runtime asks for each function by name, cuInit() first. */
int cuInit(unsigned flags);
int cuDeviceGet(int *device, int number);
int cuDeviceGetName(char *text, int length, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDriverGetVersion(int *version);
int cuGetProcAddress_v2(const char *name, void **ret, int version, unsigned long flags, int *found);

static void tell(void) {
    const char *path = getenv("FORESHARD_DRIVER_BEGUN");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
    }
}

int cuGetProcAddress_v2(const char *name, void **ret, int version, unsigned long flags,
                        int *found) {
    tell();
    *ret = NULL;
    return 500; /* there is no such function */
}

int cuInit(unsigned flags) {
    tell();
    return flags != 0;
}

int cuDeviceGet(int *device, int number) {
    *device = number;
    return number != 0;
}

int cuDeviceGetName(char *text, int length, int device) {
    snprintf(text, (size_t)length, "a GPU of no maker");
    return device != 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = (size_t)80 << 30;
    return device != 0;
}

int cuDriverGetVersion(int *version) {
    const char *text = getenv("FORESHARD_DRIVER_TAKES");
    *version = text ? atoi(text) : 0;
    return text == NULL;
}
