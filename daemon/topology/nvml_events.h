// What befalls GPUs while the node runs, told by NVML: Xid errors as they come, and devices that no
// longer answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace tierpilot {

struct XidEvent {
  std::string gpu;  // UUID
  uint64_t number = 0;
};

// A session of its own with the library, from open() to destruction; one thread at a time.
class NvmlEvents {
 public:
  // kUnavailable when the library, one of its functions, the driver or a device that tells of Xids
  // is not there. `warnings`: devices that tell of none; they are still asked whether they are
  // there.
  static Result<NvmlEvents> open(const std::string& library, std::vector<std::string>& warnings);
  NvmlEvents(NvmlEvents&&) noexcept;
  NvmlEvents& operator=(NvmlEvents&&) noexcept;
  ~NvmlEvents();

  // Those that have come, waiting at most so long for the first; none also when the driver cannot
  // wait just now. Not more than 64.
  std::vector<XidEvent> wait(unsigned timeout_ms);
  // By UUID, of all that were there at open(); asks each.
  std::vector<std::string> lost() const;
  // That were there at open().
  std::vector<std::string> gpus() const;

 private:
  struct Library;
  explicit NvmlEvents(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace tierpilot
