#include "tests/dst/leasing.h"

#include <algorithm>
#include <utility>

namespace tierpilot::dst {

void Leasing::granted(int64_t sent_ns, uint32_t lease_ms) {
  lease_.granted(sent_ns, lease_ms);
  if (!lease_.holds(at_.clock.boot_ns())) return;
  at_.warden.extend_lease(lease_.deadline_ns(), sent_ns);
  at_.tasks.lease_granted(lease_.deadline_ns());
  if (!std::exchange(watched_, true)) watch();
}

void Leasing::end_lapsed() {
  if (lease_.deadline_ns() != agent::Lease::kNever && !lease_.holds(at_.clock.boot_ns()))
    at_.tasks.lease_ended();
}

void Leasing::watch() {
  at_.loop.after(std::max<int64_t>(at_.clock.until(lease_.deadline_ns()), 0) + kMs, at_.life,
                 [this] {
                   if (lease_.holds(at_.clock.boot_ns())) return watch();
                   watched_ = false;
                   at_.tasks.lease_ended();
                 });
}

}  // namespace tierpilot::dst
