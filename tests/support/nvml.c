/* A stand-in for NVIDIA's management library: libnvidia-ml.so.1.
 *
 * It knows one GPU, and one MIG instance of it. Its answers are in the file that GT_TEST_NVML names,
 * a word and its value in each line, which is read at each call. Each call is a line of the file
 * with ".calls" after its name.
 *
 * With WITHOUT_MEMORY it lacks a function, as the library of an old driver does.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

typedef int Status;
typedef struct device *Device;

typedef struct {
    unsigned int gpu, memory;
} Utilization;

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} Memory;

static char gpu, instance;
static const Device GPU = (Device)&gpu, INSTANCE = (Device)&instance;

static void read_text(const char *name, char *value, const char *otherwise) {
    char line[256], word[64], found[192];
    strcpy(value, otherwise);
    FILE *file = fopen(getenv("GT_TEST_NVML"), "r");
    if (file == NULL) return;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%63s %191[^\n]", word, found) == 2 && strcmp(word, name) == 0)
            strcpy(value, found);
    fclose(file);
}

static unsigned long long read_number(const char *name) {
    char value[192];
    read_text(name, value, "0");
    return strtoull(value, NULL, 10);
}

static void note(const char *call) {
    char path[1024];
    snprintf(path, sizeof path, "%s.calls", getenv("GT_TEST_NVML"));
    FILE *file = fopen(path, "a");
    if (file == NULL) return;
    fprintf(file, "%s\n", call);
    fclose(file);
}

static Status copied(const char *value, char *to, unsigned int length) {
    snprintf(to, length, "%s", value);
    return SUCCESS;
}

Status nvmlInit_v2(void) {
    note("init");
    return (Status)read_number("init");
}

Status nvmlShutdown(void) {
    note("shutdown");
    return SUCCESS;
}

Status nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    return copied("570.00", version, length);
}

Status nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) {
    char known[192];
    read_text("uuid", known, "");
    *device = GPU;
    if (strcmp(uuid, known) == 0) return SUCCESS;
    read_text("instance", known, "");
    *device = INSTANCE;
    return strcmp(uuid, known) == 0 ? SUCCESS : NOT_FOUND;
}

Status nvmlDeviceGetUUID(Device device, char *uuid, unsigned int length) {
    char known[192];
    read_text(device == GPU ? "uuid" : "instance", known, "");
    return copied(known, uuid, length);
}

Status nvmlDeviceGetName(Device device, char *name, unsigned int length) {
    char known[192];
    (void)device;
    read_text("name", known, "");
    return copied(known, name, length);
}

Status nvmlDeviceGetIndex(Device device, unsigned int *index) {
    *index = (unsigned int)read_number("index");
    return device == GPU ? SUCCESS : NOT_SUPPORTED;
}

Status nvmlDeviceGetMigMode(Device device, unsigned int *current, unsigned int *pending) {
    *current = *pending = (unsigned int)read_number("divided");
    return device == GPU ? SUCCESS : NOT_SUPPORTED;
}

Status nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device device, Device *parent) {
    *parent = GPU;
    return device == INSTANCE ? SUCCESS : NOT_SUPPORTED;
}

Status nvmlDeviceGetUtilizationRates(Device device, Utilization *rates) {
    note("read");
    while (read_number("hangs"))
        usleep(10000);
    rates->gpu = (unsigned int)read_number("percent");
    rates->memory = 0;
    return device == GPU ? (Status)read_number("status") : NOT_SUPPORTED;
}

#ifndef WITHOUT_MEMORY
Status nvmlDeviceGetMemoryInfo_v2(Device device, Memory *memory) {
    (void)device;
    memory->used = read_number("used");
    memory->total = read_number("total");
    memory->reserved = 0;
    memory->free = memory->total - memory->used;
    return (Status)read_number("status");
}
#endif
