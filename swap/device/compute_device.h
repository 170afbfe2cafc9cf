// What a program trains on: whose memory fills, and how bytes leave it and come back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "swap/tiers/tier.h"

namespace tierpilot::swap {

// What the process holds of a device's memory, in bytes.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual int64_t now() const = 0;
  // The most since reset_peak(); no less than now().
  virtual int64_t peak() const = 0;
  virtual void reset_peak() = 0;
  // What is freed, and not yet the device's again, but for what would come anew in small pieces.
  virtual void give_back() = 0;
  // The same until it is so many bytes, and in small pieces where it is not otherwise.
  virtual void give_back(int64_t bytes) = 0;
};

// Copies of one thread, which end before a call does.
class Copier {
 public:
  virtual ~Copier() = default;
  // `data` is the device's; `offset` the tier's. kUnavailable: the device failed, not the tier.
  virtual Status out(Tier& tier, int64_t offset, const std::byte* data, int64_t bytes) = 0;
  virtual Status in(Tier& tier, int64_t offset, std::byte* data, int64_t bytes) = 0;
};

// From any thread. A device that is told to compute, and computes later, does so in streams, which
// a front end names (of CUDA: a CUstream, 0 is the default one).
class ComputeDevice {
 public:
  using Stream = uint64_t;
  using Mark = uint64_t;  // a point in what a stream has been told to do; 0: there is none

  virtual ~ComputeDevice() = default;
  virtual const std::string& name() const = 0;
  virtual DeviceMemory& memory() = 0;
  // What the device holds, where only the front end knows.
  virtual void tell_memory(int64_t /*held_bytes*/, int64_t /*peak_bytes*/) {}
  virtual std::unique_ptr<Copier> copier() = 0;

  // How many of this many processes, which divide the machine's devices, compute on this one.
  virtual int sharers(int processes) const { return processes; }

  // Whether it computes later than it is told to.
  virtual bool runs_ahead() const { return false; }
  // All that the stream has been told so far; to be forgotten by who asked.
  virtual Mark mark(Stream) { return 0; }
  virtual Status reach(Mark) { return {}; }
  virtual void forget(Mark) {}

  // Room in the device for copies that measure; give() frees it.
  virtual Result<std::byte*> take(int64_t bytes) = 0;
  virtual void give(std::byte* data) = 0;
  // Of tiers' memory: what is pinned for the device's copies, and that it is no more, before its
  // tier ends.
  virtual int64_t pinned_bytes() const { return 0; }
  virtual void unpin() {}
};

std::unique_ptr<ComputeDevice> processor();

// "cpu", or "cuda:N" ("cuda" is 0), N as the CUDA driver counts those that this process may see.
// kInvalid: no such name; kUnavailable: no such device, or no driver.
Result<std::unique_ptr<ComputeDevice>> open_device(std::string_view name);

}  // namespace tierpilot::swap
