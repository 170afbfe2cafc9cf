#include "tests/dst/disk.h"

#include <algorithm>
#include <cstring>

namespace tierpilot::dst {
namespace {

constexpr size_t kSectorBytes = 512;  // written whole or not at all

}  // namespace

void Disk::apply(std::vector<uint8_t>& bytes, const File::Write& write) {
  if (write.truncate) return bytes.resize(std::min(bytes.size(), write.offset));
  bytes.resize(std::max(bytes.size(), write.offset + write.data.size()));
  std::copy(write.data.begin(), write.data.end(),
            bytes.begin() + static_cast<ptrdiff_t>(write.offset));
}

bool Disk::goes_on() {
  if (!dead_ && left_ >= 0 && left_-- == 0) dead_ = true;
  return !dead_;
}

int Disk::write(File& file, const void* data, size_t size, size_t offset) {
  if (!goes_on()) return SQLITE_IOERR_WRITE;
  if (full_ && offset + size > file.seen.size()) return SQLITE_FULL;
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (fails()) {
    put(file, bytes, static_cast<size_t>(errors_.between(0, static_cast<int64_t>(size))), offset);
    return SQLITE_IOERR_WRITE;
  }
  put(file, bytes, size, offset);
  return SQLITE_OK;
}

void Disk::put(File& file, const uint8_t* data, size_t size, size_t offset) {
  file.unsynced.push_back({offset, {data, data + size}});
  apply(file.seen, file.unsynced.back());
}

int Disk::truncate(File& file, size_t size) {
  if (!goes_on() || fails()) return SQLITE_IOERR_TRUNCATE;
  file.unsynced.push_back({size, {}, true});
  apply(file.seen, file.unsynced.back());
  return SQLITE_OK;
}

int Disk::sync(File& file) {
  if (!goes_on()) return SQLITE_IOERR_FSYNC;
  if (syncs_fail_ || fails()) {
    // The next one succeeds, and what was written before it is not on disk for all that.
    if (errors_.chance(0.5)) file.unsynced.clear();
    return SQLITE_IOERR_FSYNC;
  }
  for (const auto& write : file.unsynced) apply(file.synced, write);
  file.unsynced.clear();
  return SQLITE_OK;
}

// Each sector of what was not synced is there or not, each for itself; often none of them is.
void Disk::tear(File& file) {
  const double kept = random_.chance(0.5) ? 0 : 0.5;
  for (const auto& write : file.unsynced) {
    if (write.truncate) {
      if (random_.chance(kept)) apply(file.synced, write);
      continue;
    }
    for (size_t at = 0; at < write.data.size();) {
      const size_t end =
          std::min(write.data.size(), at + kSectorBytes - (write.offset + at) % kSectorBytes);
      if (random_.chance(kept))
        apply(file.synced, {write.offset + at,
                            {write.data.begin() + static_cast<ptrdiff_t>(at),
                             write.data.begin() + static_cast<ptrdiff_t>(end)}});
      at = end;
    }
  }
  file.unsynced.clear();
  file.seen = file.synced;
}

void Disk::revive(End end) {
  if (end == End::kPowerCut)
    for (auto& [path, file] : files_) tear(file);
  for (auto& [path, file] : files_) file.shared.clear();  // memory of processes that are gone
  dead_ = false;
  left_ = -1;
}

size_t Disk::bytes() const {
  size_t sum = 0;
  for (const auto& [path, file] : files_) sum += file.seen.size();
  return sum;
}

}  // namespace tierpilot::dst
