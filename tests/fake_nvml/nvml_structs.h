// What NVML's binary interface passes, for libraries that stand in for it.
#pragma once

enum {
  kSuccess = 0,
  kNotSupported = 3,
  kNotFound = 6,
  kTooSmall = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kGpuIsLost = 15
};

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
typedef struct {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
} ProcessInfo;
typedef struct {
  unsigned pid;
  unsigned long long at_us;
  unsigned sm, memory, encoder, decoder;
} ProcessSample;
typedef struct {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
} EventData;
