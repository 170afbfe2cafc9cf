// Whether operators of a processor compute in a smaller type by themselves, on this thread.
#pragma once

#include <c10/core/ScalarType.h>

namespace tierpilot::swap::libtorch {

struct Autocast {
  static Autocast now();
  void set() const;

  bool on, cached;
  c10::ScalarType type;
};

// As it was then until the end of the block.
class AutocastAsThen {
 public:
  explicit AutocastAsThen(const Autocast& then);
  ~AutocastAsThen();
  AutocastAsThen(const AutocastAsThen&) = delete;
  AutocastAsThen& operator=(const AutocastAsThen&) = delete;

 private:
  const Autocast before_ = Autocast::now();
  const bool any_;
};

}  // namespace tierpilot::swap::libtorch
