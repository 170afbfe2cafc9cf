// A library with NVML's binary interface that always answers the same, where tests/fake_nvml is
// told what to: two GPUs, of which the second supports little and a third does not answer.
// FAKE_INIT is what nvmlInit_v2 returns; FAKE_OLD leaves functions out.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_nvml/nvml_structs.h"

#ifndef FAKE_INIT
#define FAKE_INIT 0
#endif

static int devices[2] = {0, 1};

int nvmlInit_v2(void) {
  return FAKE_INIT;
}
int nvmlShutdown(void) {
  return kSuccess;
}
const char* nvmlErrorString(int code) {
  return code == kDriverNotLoaded ? "Driver Not Loaded" : "GPU is lost";
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
// The first has a process of its own, that of FAKE_NVML_PID, and one through MPS, that of
// FAKE_NVML_MPS_PID: this one is in both lists, as drivers have it.
static unsigned pid_of(const char* variable) {
  const char* text = getenv(variable);
  return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}
static int list(unsigned* count, ProcessInfo* infos, int mps_only) {
  const unsigned room = *count, own = mps_only ? 0 : pid_of("FAKE_NVML_PID");
  const unsigned client = pid_of("FAKE_NVML_MPS_PID");
  *count = (own != 0) + (client != 0);
  if (room < *count) return kTooSmall;
  if (own) *infos++ = (ProcessInfo){own, 3ull << 30, ~0u, ~0u};
  if (client) *infos = (ProcessInfo){client, ~0ull, ~0u, ~0u};
  return kSuccess;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* infos) {
  if (*(int*)device) return kNotSupported;
  return list(count, infos, 0);
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* infos) {
  if (*(int*)device) return kNotSupported;
  return list(count, infos, 1);
}
int nvmlDeviceGetProcessUtilization(void* device, ProcessSample* samples, unsigned* count,
                                    unsigned long long since_us) {
  (void)since_us;
  if (*(int*)device || *count < 2) return kTooSmall;
  *count = 2;
  samples[0] = (ProcessSample){pid_of("FAKE_NVML_PID"), 1, 20, 5, 0, 0};
  samples[1] = (ProcessSample){pid_of("FAKE_NVML_PID"), 2, 40, 5, 0, 0};
  return kSuccess;
}
#endif
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  if (*(int*)device || sensor != 0) return kNotSupported;
  return *celsius = 61, kSuccess;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (*(int*)device) return kNotSupported;
  return *milliwatts = 250500, kSuccess;
}
#ifndef FAKE_OLD
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  if (*(int*)device) return kNotSupported;
  return *major = 8, *minor = 9, kSuccess;
}
int nvmlDeviceGetMaxClockInfo(void* device, int type, unsigned* mhz) {
  if (*(int*)device) return kNotSupported;
  return *mhz = type == 1 ? 2520 : type == 2 ? 10501 : 0, kSuccess;
}
int nvmlDeviceGetNumGpuCores(void* device, unsigned* cores) {
  if (*(int*)device) return kNotSupported;
  return *cores = 16384, kSuccess;
}
int nvmlDeviceGetMemoryBusWidth(void* device, unsigned* bits) {
  if (*(int*)device) return kNotSupported;
  return *bits = 384, kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
  if (*(int*)device) return kNotSupported;
  *rates = (Utilization){37, 5};
  return kSuccess;
}
#endif
