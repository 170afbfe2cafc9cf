// A libnvidia-ml.so.1 that stands in for the driver's, to be told by files what its GPUs do. In the
// folder FAKE_NVML:
//
//   gpus   a UUID a line: the devices, at most 16
//   xids   "UUID NUMBER" a line, appended: an Xid error happens
//   lost   a UUID a line: these devices do not answer, as long as they stand there
//
// Xids that stood there when an event set was made are over.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kSuccess = 0, kNotFound = 6, kDriverNotLoaded = 9, kTimeout = 10, kGpuIsLost = 15 };
enum { kMostGpus = 16, kUuidBytes = 64, kPathBytes = 4096, kWaitStepMs = 10, kXidEvent = 8 };

typedef struct {
  char uuid[kUuidBytes];
} Gpu;
typedef struct {
  long told;  // bytes of `xids`
} EventSet;
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
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
} EventData;

static Gpu gpus[kMostGpus];
static unsigned gpu_count;

static FILE* open_file(const char* name) {
  const char* folder = getenv("FAKE_NVML");
  char path[kPathBytes];
  if (!folder) return NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return fopen(path, "re");
}

static Gpu* find_gpu(const char* uuid) {
  for (unsigned i = 0; i < gpu_count; ++i)
    if (!strcmp(gpus[i].uuid, uuid)) return &gpus[i];
  return NULL;
}

static int is_lost(const Gpu* gpu) {
  FILE* file = open_file("lost");
  char uuid[kUuidBytes];
  int lost = 0;
  while (file && !lost && fscanf(file, "%63s", uuid) == 1) lost = !strcmp(uuid, gpu->uuid);
  if (file) fclose(file);
  return lost;
}

int nvmlInit_v2(void) {
  FILE* file = open_file("gpus");
  if (!file) return kDriverNotLoaded;
  // Handles stay good for those who had them.
  char uuid[kUuidBytes];
  while (fscanf(file, "%63s", uuid) == 1)
    if (!find_gpu(uuid) && gpu_count < kMostGpus) strcpy(gpus[gpu_count++].uuid, uuid);
  fclose(file);
  return kSuccess;
}
int nvmlShutdown(void) {
  return kSuccess;
}
const char* nvmlErrorString(int code) {
  return code == kDriverNotLoaded ? "Driver Not Loaded"
         : code == kGpuIsLost     ? "GPU is lost"
                                  : "unknown";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  return *count = gpu_count, kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= gpu_count) return kNotFound;
  if (is_lost(&gpus[index])) return kGpuIsLost;
  return *device = &gpus[index], kSuccess;
}
int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  (void)device;
  return snprintf(name, length, "Fake GPU"), kSuccess;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  return snprintf(uuid, length, "%s", ((Gpu*)device)->uuid), kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  if (is_lost(device)) return kGpuIsLost;
  return *memory = (Memory){80ull << 30, 79ull << 30, 1ull << 30}, kSuccess;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* pci) {
  memset(pci, 0, sizeof *pci);
  pci->bus = 0xA1 + (unsigned)((Gpu*)device - gpus);
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
  if (is_lost(device)) return kGpuIsLost;
  return *rates = (Utilization){0, 0}, kSuccess;
}

int nvmlEventSetCreate(void** set) {
  EventSet* made = calloc(1, sizeof *made);
  FILE* file = open_file("xids");
  if (file && !fseek(file, 0, SEEK_END)) made->told = ftell(file);
  if (file) fclose(file);
  return *set = made, kSuccess;
}
int nvmlEventSetFree(void* set) {
  return free(set), kSuccess;
}
int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void* set) {
  (void)types, (void)set;
  return is_lost(device) ? kGpuIsLost : kSuccess;
}

// The next whole line that is not told yet.
static int next_xid(EventSet* set, EventData* event) {
  FILE* file = open_file("xids");
  char line[256], uuid[kUuidBytes];
  unsigned long long number;
  int found = 0;
  if (file && !fseek(file, set->told, SEEK_SET))
    while (!found && fgets(line, sizeof line, file) && strchr(line, '\n')) {
      set->told = ftell(file);
      if (sscanf(line, "%63s %llu", uuid, &number) != 2 || !find_gpu(uuid)) continue;
      *event = (EventData){find_gpu(uuid), kXidEvent, number, 0xFFFFFFFF, 0xFFFFFFFF};
      found = 1;
    }
  if (file) fclose(file);
  return found;
}

int nvmlEventSetWait_v2(void* set, EventData* event, unsigned timeout_ms) {
  const struct timespec step = {0, kWaitStepMs * 1000000L};
  for (unsigned waited = 0;; waited += kWaitStepMs) {
    if (next_xid(set, event)) return kSuccess;
    if (waited >= timeout_ms) return kTimeout;
    nanosleep(&step, NULL);
  }
}
