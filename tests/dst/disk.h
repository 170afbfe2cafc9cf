// The coordinator's disk: an SQLite VFS in memory that knows what was synced. A power cut loses or
// tears what was not, sector by sector; a killed process loses nothing that it had written. Where
// it fails, a write leaves a part, and a sync forgets what it was to keep, as Linux does.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/dst/random.h"

namespace tierpilot::dst {

class Disk {
 public:
  explicit Disk(uint64_t seed) : random_(seed, "disk"), errors_(seed, "disk errors") {}

  enum class End { kKilled, kPowerCut };
  // Nothing is read or written any more, until revive().
  void stop() { dead_ = true; }
  bool dead() const { return dead_; }
  // Once nobody has a file open.
  void revive(End end);
  // stop() at the write, sync or truncation after so many; negative: not.
  void stop_after(int operations) { left_ = operations; }
  // Files do not grow any more.
  void set_full(bool full) { full_ = full; }
  // Each read, write, sync and truncation fails with this probability.
  void set_failing(double share) { failing_ = share; }
  // Every one.
  void fail_syncs(bool fail) { syncs_fail_ = fail; }
  bool sound() const { return !full_ && failing_ == 0; }
  size_t bytes() const;

  struct File {
    std::vector<uint8_t> seen;    // by processes
    std::vector<uint8_t> synced;  // what is surely there after a power cut
    struct Write {
      size_t offset = 0;
      std::vector<uint8_t> data;
      bool truncate = false;  // to `offset`
    };
    std::vector<Write> unsynced;
    std::map<void*, int> locks;                         // by handle
    std::vector<std::unique_ptr<uint8_t[]>> shared;     // the log's index
    std::map<void*, std::pair<int, int>> shared_locks;  // shared and exclusive masks, by handle
  };
  File& file(const std::string& path) { return files_[path]; }
  bool exists(const std::string& path) const { return files_.contains(path); }
  void remove(const std::string& path) { files_.erase(path); }

  // SQLITE_OK, or why the operation cannot be done.
  int write(File& file, const void* data, size_t size, size_t offset);
  int truncate(File& file, size_t size);
  int sync(File& file);
  bool fails() { return failing_ > 0 && errors_.chance(failing_); }

  // The one that SQLite uses from now on, also by default; null: none.
  static void use(Disk* disk);
  static Disk* used();

 private:
  static void apply(std::vector<uint8_t>& bytes, const File::Write& write);
  void tear(File& file);
  bool goes_on();
  void put(File& file, const uint8_t* data, size_t size, size_t offset);

  Random random_;
  Random errors_;
  std::map<std::string, File> files_;
  bool dead_ = false;
  bool full_ = false;
  double failing_ = 0;
  std::atomic<bool> syncs_fail_ = false;
  int left_ = -1;
};

}  // namespace tierpilot::dst
