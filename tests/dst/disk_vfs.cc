// What SQLite asks of a VFS, carried out on the Disk in use: sqlite.org/vfs.html.
#include <algorithm>
#include <cstring>
#include <new>

#include "tests/dst/disk.h"

namespace tierpilot::dst {
namespace {

Disk* g_disk = nullptr;

struct Handle {
  sqlite3_file base;
  std::string* path;
};

Handle& handle(sqlite3_file* file) {
  return *reinterpret_cast<Handle*>(file);
}
Disk::File& of(sqlite3_file* file) {
  return g_disk->file(*handle(file).path);
}

int close(sqlite3_file* file) {
  if (g_disk->exists(*handle(file).path)) {
    of(file).locks.erase(file);
    of(file).shared_locks.erase(file);
  }
  delete handle(file).path;
  return SQLITE_OK;
}

int read(sqlite3_file* file, void* into, int size, sqlite3_int64 offset) {
  if (g_disk->dead() || g_disk->fails()) return SQLITE_IOERR_READ;
  const auto& seen = of(file).seen;
  const auto begin = std::min(static_cast<size_t>(offset), seen.size());
  const auto got = std::min(static_cast<size_t>(size), seen.size() - begin);
  if (got > 0) std::memcpy(into, seen.data() + begin, got);
  std::memset(static_cast<char*>(into) + got, 0, static_cast<size_t>(size) - got);
  return got == static_cast<size_t>(size) ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  return g_disk->write(of(file), data, static_cast<size_t>(size), static_cast<size_t>(offset));
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
  return g_disk->truncate(of(file), static_cast<size_t>(size));
}

int sync(sqlite3_file* file, int) {
  return g_disk->sync(of(file));
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  if (g_disk->dead()) return SQLITE_IOERR_FSTAT;
  *size = static_cast<sqlite3_int64>(of(file).seen.size());
  return SQLITE_OK;
}

int highest_of_others(sqlite3_file* file) {
  int highest = SQLITE_LOCK_NONE;
  for (const auto& [other, level] : of(file).locks)
    if (other != file) highest = std::max(highest, level);
  return highest;
}

int lock(sqlite3_file* file, int level) {
  const int others = highest_of_others(file);
  const bool free = level == SQLITE_LOCK_SHARED     ? others < SQLITE_LOCK_PENDING
                    : level == SQLITE_LOCK_RESERVED ? others < SQLITE_LOCK_RESERVED
                                                    : others < SQLITE_LOCK_SHARED;
  if (!free) return SQLITE_BUSY;
  auto& own = of(file).locks[file];
  own = std::max(own, level);
  return SQLITE_OK;
}

int unlock(sqlite3_file* file, int level) {
  of(file).locks[file] = level;
  return SQLITE_OK;
}

int check_reserved(sqlite3_file* file, int* reserved) {
  *reserved = highest_of_others(file) >= SQLITE_LOCK_RESERVED;
  return SQLITE_OK;
}

int control(sqlite3_file*, int, void*) {
  return SQLITE_NOTFOUND;
}
int sector_size(sqlite3_file*) {
  return 4096;
}
int characteristics(sqlite3_file*) {
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

int shared_map(sqlite3_file* file, int region, int size, int extend, void volatile** at) {
  if (g_disk->dead()) return SQLITE_IOERR_SHMMAP;
  auto& shared = of(file).shared;
  *at = nullptr;
  if (static_cast<size_t>(region) >= shared.size() && !extend) return SQLITE_OK;
  while (shared.size() <= static_cast<size_t>(region))
    shared.push_back(std::make_unique<uint8_t[]>(static_cast<size_t>(size)));
  *at = shared[static_cast<size_t>(region)].get();
  return SQLITE_OK;
}

int shared_lock(sqlite3_file* file, int offset, int count, int flags) {
  const int mask = ((1 << count) - 1) << offset;
  auto& locks = of(file).shared_locks;
  auto& [own_shared, own_exclusive] = locks[file];
  const bool shared = flags & SQLITE_SHM_SHARED;
  if (flags & SQLITE_SHM_UNLOCK) {
    (shared ? own_shared : own_exclusive) &= ~mask;
    return SQLITE_OK;
  }
  for (const auto& [other, held] : locks)
    if (other != file && (mask & (shared ? held.second : held.first | held.second)))
      return SQLITE_BUSY;
  (shared ? own_shared : own_exclusive) |= mask;
  return SQLITE_OK;
}

void shared_barrier(sqlite3_file*) {}

int shared_unmap(sqlite3_file* file, int) {
  auto& locks = of(file).shared_locks;
  locks.erase(file);
  if (locks.empty()) of(file).shared.clear();
  return SQLITE_OK;
}

const sqlite3_io_methods kMethods{2,
                                  close,
                                  read,
                                  write,
                                  truncate,
                                  sync,
                                  file_size,
                                  lock,
                                  unlock,
                                  check_reserved,
                                  control,
                                  sector_size,
                                  characteristics,
                                  shared_map,
                                  shared_lock,
                                  shared_barrier,
                                  shared_unmap,
                                  nullptr,
                                  nullptr};

int open(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  if (!g_disk || g_disk->dead()) return SQLITE_CANTOPEN;
  const std::string path = name ? name : "(temporary)";
  if (!g_disk->exists(path) && !(flags & SQLITE_OPEN_CREATE)) return SQLITE_CANTOPEN;
  handle(file).path = new std::string(path);
  auto& opened = g_disk->file(path);
  if (flags & SQLITE_OPEN_MAIN_DB) opened.shared_locks[file] = {0, 0};
  file->pMethods = &kMethods;
  if (out_flags) *out_flags = flags;
  return SQLITE_OK;
}

int remove(sqlite3_vfs*, const char* name, int) {
  if (g_disk->dead()) return SQLITE_IOERR_DELETE;
  g_disk->remove(name);
  return SQLITE_OK;
}

int access(sqlite3_vfs*, const char* name, int, int* found) {
  *found = g_disk->exists(name) && !g_disk->file(name).seen.empty();
  return SQLITE_OK;
}

int full_path(sqlite3_vfs*, const char* name, int size, char* to) {
  return sqlite3_snprintf(size, to, "%s", name) ? SQLITE_OK : SQLITE_CANTOPEN;
}

int randomness(sqlite3_vfs*, int size, char* to) {
  std::memset(to, 7, static_cast<size_t>(size));
  return size;
}
int sleep(sqlite3_vfs*, int us) {
  return us;
}
int current_time(sqlite3_vfs*, double* days) {
  *days = 2460000;
  return SQLITE_OK;
}
int last_error(sqlite3_vfs*, int, char*) {
  return 0;
}

void register_once() {
  static sqlite3_vfs vfs{};
  if (vfs.zName) return;
  vfs.iVersion = 1;
  vfs.szOsFile = sizeof(Handle);
  vfs.mxPathname = 512;
  vfs.zName = "simulated";
  vfs.xOpen = open;
  vfs.xDelete = remove;
  vfs.xAccess = access;
  vfs.xFullPathname = full_path;
  vfs.xRandomness = randomness;
  vfs.xSleep = sleep;
  vfs.xCurrentTime = current_time;
  vfs.xGetLastError = last_error;
  sqlite3_vfs_register(&vfs, 1);
}

}  // namespace

void Disk::use(Disk* disk) {
  register_once();
  g_disk = disk;
}

Disk* Disk::used() {
  return g_disk;
}

}  // namespace tierpilot::dst
