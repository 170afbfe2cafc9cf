// A library with NVML's binary interface: two GPUs, of which the second supports little and a third
// does not answer. FAKE_INIT is what nvmlInit_v2 returns; FAKE_OLD leaves a function out.
#include <stdio.h>
#include <string.h>

#ifndef FAKE_INIT
#define FAKE_INIT 0
#endif
enum { kSuccess = 0, kNotSupported = 3, kGpuIsLost = 15 };

typedef struct {
  unsigned long long total, free, used;
} Memory;
typedef struct {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
} PciInfo;
typedef struct {
  unsigned gpu, memory;
} Utilization;

static int devices[2] = {0, 1};

int nvmlInit_v2(void) {
  return FAKE_INIT;
}
int nvmlShutdown(void) {
  return kSuccess;
}
const char* nvmlErrorString(int code) {
  return code == 9 ? "Driver Not Loaded" : "GPU is lost";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  return *count = 3, kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index > 1) return kGpuIsLost;
  return *device = &devices[index], kSuccess;
}
int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  return snprintf(name, length, "Fake GPU %d", *(int*)device), kSuccess;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  return snprintf(uuid, length, "GPU-%d", *(int*)device), kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  if (*(int*)device) return kNotSupported;
  *memory = (Memory){80ull << 30, 79ull << 30, 1ull << 30};
  return kSuccess;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* pci) {
  memset(pci, 0, sizeof *pci);
  pci->bus = 0xA1 + (unsigned)*(int*)device;
  return kSuccess;
}
#ifndef FAKE_OLD
int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
  if (*(int*)device) return kNotSupported;
  *rates = (Utilization){37, 5};
  return kSuccess;
}
#endif
