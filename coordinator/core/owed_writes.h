// Changes that nobody waits for, and that a restart relies on: tried until they are on disk.
// Event loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "coordinator/store/store.h"

namespace tierpilot {

class OwedWrites {
 public:
  explicit OwedWrites(Store& store) : store_(store) {}

  // In place of an earlier change of that key.
  void write(const std::string& key, Store::Change change);
  // What is removed by somebody else meanwhile, and must not come back.
  void forget(const std::string& key) { owed_.erase(key); }
  // Those that have failed.
  void retry();

 private:
  struct Owed {
    Store::Change change;
    uint64_t number = 0;
    bool has_failed = false;
  };
  void begin(const std::string& key, Owed& owed);

  Store& store_;
  uint64_t writes_ = 0;
  std::map<std::string, Owed> owed_;
};

}  // namespace tierpilot
