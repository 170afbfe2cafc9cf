// Makes a node as small as a comparison needs it: takes hold of the rest of its free memory.
#pragma once

#include <numaif.h>

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/sysroot.h"

namespace tierpilot::bench {

class FastRoom {
 public:
  FastRoom(const Sysroot& sysroot, int node) : sysroot_(sysroot), node_(node) {}
  ~FastRoom() { release(); }
  FastRoom(const FastRoom&) = delete;

  // Leaves that much, give or take half a MiB, above the level at which the kernel goes to another
  // node. kExhausted when the node has less.
  Status leave(uint64_t bytes);
  void release();
  // That much more, on another node where this one is full, which makes the kernel free some of it.
  Status press(uint64_t bytes) { return hold(bytes, MPOL_PREFERRED); }
  // What the kernel keeps free of the node before it goes to another one.
  Result<uint64_t> watermark_bytes() const;

 private:
  struct Held {
    void* start;
    uint64_t bytes;
  };
  Result<uint64_t> free_bytes() const;
  Status hold(uint64_t bytes, int policy);
  void let_go(uint64_t bytes);

  const Sysroot& sysroot_;
  int node_;
  std::vector<Held> held_;  // locked in memory
};

}  // namespace tierpilot::bench
