// A libnvidia-ml.so.1 that stands in for the driver's, to be told by files what its GPUs do. In the
// folder FAKE_NVML:
//
//   gpus   a UUID a line: the devices, at most 16
//   xids   "UUID NUMBER" a line, appended: an Xid error happens
//   lost   a UUID a line: these devices do not answer, as long as they stand there
//   mute  who asks a device anything waits as long as the file stands there
//   clients  "UUID PID BYTES" a line: the process computes on the device, whenever its first
//            thread uses a CPU or waits for one, and has so much of its memory; through MPS where
//            it has CUDA_MPS_PIPE_DIRECTORY: then it is in both lists, as drivers have it
//   kinds  "UUID NAME CAPABILITY_MAJOR MINOR CORES SM_MHZ MEMORY_MHZ BUS_BITS MEMORY_BYTES" a line:
//            of what kind the device is; else nothing but its memory is known
//   temperatures  "UUID CELSIUS" a line; others do not tell theirs
//   no_samples  a number: what processes use is not sampled, and the devices are so busy, in
//   percent
//
// Xids that stood there when an event set was made are over.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake_nvml/nvml_structs.h"

enum {
  kMostGpus = 16,
  kUuidBytes = 64,
  kPathBytes = 4096,
  kWaitStepMs = 10,
  kXidEvent = 8,
  kMemoryClock = 2
};

typedef struct {
  char uuid[kUuidBytes];
} Gpu;
typedef struct {
  unsigned pid;
  unsigned long long cpu_ns, at_us;
} Seen;
typedef struct {
  long told;  // bytes of `xids`
} EventSet;
typedef struct {
  char name[kUuidBytes];
  int major, minor;
  unsigned cores, sm_mhz, memory_mhz, bus_bits;
  unsigned long long memory_bytes;
} Kind;

static Gpu gpus[kMostGpus];
static atomic_uint gpu_count;  // each is whole before it counts: threads share it, as the driver's
static pthread_mutex_t gpus_lock = PTHREAD_MUTEX_INITIALIZER;  // of who adds to them

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

static void hang(void) {
  const struct timespec step = {0, kWaitStepMs * 1000000L};
  for (FILE* file; (file = open_file("mute")); nanosleep(&step, NULL)) fclose(file);
}

static int is_lost(const Gpu* gpu) {
  hang();
  FILE* file = open_file("lost");
  char uuid[kUuidBytes];
  int lost = 0;
  while (file && !lost && fscanf(file, "%63s", uuid) == 1) lost = !strcmp(uuid, gpu->uuid);
  if (file) fclose(file);
  return lost;
}

static int find_kind(const Gpu* gpu, Kind* kind) {
  FILE* file = open_file("kinds");
  char uuid[kUuidBytes];
  int found = 0;
  while (file && !found &&
         fscanf(file, "%63s %63s %d %d %u %u %u %u %llu", uuid, kind->name, &kind->major,
                &kind->minor, &kind->cores, &kind->sm_mhz, &kind->memory_mhz, &kind->bus_bits,
                &kind->memory_bytes) == 9)
    found = !strcmp(uuid, gpu->uuid);
  if (file) fclose(file);
  return found;
}

// Less than nothing: there are samples.
static int unsampled_percent(void) {
  FILE* file = open_file("no_samples");
  int percent = -1;
  if (file && fscanf(file, "%d", &percent) != 1) percent = 0;
  if (file) fclose(file);
  return percent;
}

int nvmlInit_v2(void) {
  FILE* file = open_file("gpus");
  if (!file) return kDriverNotLoaded;
  // Handles stay good for those who had them.
  char uuid[kUuidBytes];
  pthread_mutex_lock(&gpus_lock);
  while (fscanf(file, "%63s", uuid) == 1)
    if (!find_gpu(uuid) && gpu_count < kMostGpus) {
      strcpy(gpus[gpu_count].uuid, uuid);
      ++gpu_count;
    }
  pthread_mutex_unlock(&gpus_lock);
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
  Kind kind;
  return snprintf(name, length, "%s", find_kind(device, &kind) ? kind.name : "Fake GPU"), kSuccess;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  return snprintf(uuid, length, "%s", ((Gpu*)device)->uuid), kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  if (is_lost(device)) return kGpuIsLost;
  Kind kind;
  const unsigned long long total = find_kind(device, &kind) ? kind.memory_bytes : 80ull << 30;
  return *memory = (Memory){total, total - (1ull << 30), 1ull << 30}, kSuccess;
}
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  (void)sensor;
  if (is_lost(device)) return kGpuIsLost;
  FILE* file = open_file("temperatures");
  char uuid[kUuidBytes];
  int found = 0;
  while (file && !found && fscanf(file, "%63s %u", uuid, celsius) == 2)
    found = !strcmp(uuid, ((Gpu*)device)->uuid);
  if (file) fclose(file);
  return found ? kSuccess : kNotSupported;
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  Kind kind;
  if (!find_kind(device, &kind)) return kNotSupported;
  return *major = kind.major, *minor = kind.minor, kSuccess;
}
int nvmlDeviceGetNumGpuCores(void* device, unsigned* cores) {
  Kind kind;
  return find_kind(device, &kind) ? (*cores = kind.cores, kSuccess) : kNotSupported;
}
int nvmlDeviceGetMaxClockInfo(void* device, int type, unsigned* mhz) {
  Kind kind;
  if (!find_kind(device, &kind)) return kNotSupported;
  return *mhz = type == kMemoryClock ? kind.memory_mhz : kind.sm_mhz, kSuccess;
}
int nvmlDeviceGetMemoryBusWidth(void* device, unsigned* bits) {
  Kind kind;
  return find_kind(device, &kind) ? (*bits = kind.bus_bits, kSuccess) : kNotSupported;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* pci) {
  memset(pci, 0, sizeof *pci);
  pci->bus = 0xA1 + (unsigned)((Gpu*)device - gpus);
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
  if (is_lost(device)) return kGpuIsLost;
  const int percent = unsampled_percent();
  return *rates = (Utilization){percent < 0 ? 0 : (unsigned)percent, 0}, kSuccess;
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

// Whether its environment sends it to an MPS server.
static int is_mps_client(unsigned pid) {
  static const char name[] = "CUDA_MPS_PIPE_DIRECTORY=";
  char path[64], *entry = NULL;
  size_t bytes = 0;
  int found = 0;
  snprintf(path, sizeof path, "/proc/%u/environ", pid);
  FILE* file = fopen(path, "re");
  while (file && !found && getdelim(&entry, &bytes, 0, file) > 0)
    found = !strncmp(entry, name, sizeof name - 1);
  free(entry);
  if (file) fclose(file);
  return found;
}

// Those of the device that live, at most so many.
static unsigned list_clients(const Gpu* gpu, ProcessInfo* infos, unsigned most, int mps_only) {
  FILE* file = open_file("clients");
  char uuid[kUuidBytes];
  unsigned pid, count = 0;
  unsigned long long bytes;
  while (file && count < most && fscanf(file, "%63s %u %llu", uuid, &pid, &bytes) == 3)
    if (!strcmp(uuid, gpu->uuid) && !kill((int)pid, 0) && (!mps_only || is_mps_client(pid)))
      infos[count++] = (ProcessInfo){pid, bytes, ~0u, ~0u};
  if (file) fclose(file);
  return count;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* infos) {
  if (is_lost(device)) return kGpuIsLost;
  return *count = list_clients(device, infos, *count, 0), kSuccess;
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* infos) {
  if (is_lost(device)) return kGpuIsLost;
  return *count = list_clients(device, infos, *count, 1), kSuccess;
}

// Other work on the machine does not change it.
static unsigned long long wanted_cpu_ns_of(unsigned pid) {
  char path[64];
  unsigned long long ran_ns = 0, waited_ns = 0;
  snprintf(path, sizeof path, "/proc/%u/schedstat", pid);
  FILE* file = fopen(path, "re");
  if (file && fscanf(file, "%llu %llu", &ran_ns, &waited_ns) != 2) ran_ns = waited_ns = 0;
  if (file) fclose(file);
  return ran_ns + waited_ns;
}

static Seen* seen_of(unsigned pid) {
  static __thread Seen seen[64];
  for (unsigned i = 0; i < 64; ++i)
    if (seen[i].pid == pid || !seen[i].pid) return &seen[i];
  return NULL;
}

// A sample each 100 ms at most, since the thread last asked.
int nvmlDeviceGetProcessUtilization(void* device, ProcessSample* samples, unsigned* count,
                                    unsigned long long since_us) {
  ProcessInfo infos[64];
  struct timespec now;
  (void)since_us;
  if (is_lost(device)) return kGpuIsLost;
  if (unsampled_percent() >= 0) return kNotSupported;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const unsigned long long now_us = now.tv_sec * 1000000ull + now.tv_nsec / 1000;
  const unsigned clients = list_clients(device, infos, 64, 0);
  unsigned taken = 0;
  for (unsigned i = 0; i < clients && taken < *count; ++i) {
    Seen* seen = seen_of(infos[i].pid);
    if (!seen || (seen->pid && now_us - seen->at_us < 100000)) continue;
    const unsigned long long cpu_ns = wanted_cpu_ns_of(infos[i].pid);
    if (seen->pid) {
      unsigned long long sm = (cpu_ns - seen->cpu_ns) / 10 / (now_us - seen->at_us);
      samples[taken++] =
          (ProcessSample){infos[i].pid, now_us, sm > 100 ? 100 : (unsigned)sm, 0, 0, 0};
    }
    *seen = (Seen){infos[i].pid, cpu_ns, now_us};
  }
  *count = taken;
  return taken ? kSuccess : kNotFound;
}
