#include "swap/libtorch/autocast.h"

#include <ATen/autocast_mode.h>

namespace tierpilot::swap::libtorch {

namespace autocast = at::autocast;

Autocast Autocast::now() {
  return {.on = autocast::is_cpu_enabled(),
          .cached = autocast::is_autocast_cache_enabled(),
          .type = autocast::get_autocast_cpu_dtype()};
}

void Autocast::set() const {
  autocast::set_cpu_enabled(on);
  autocast::set_autocast_cpu_dtype(type);
  autocast::set_autocast_cache_enabled(cached);
}

AutocastAsThen::AutocastAsThen(const Autocast& then) : any_(then.on || before_.on) {
  if (!any_) return;
  autocast::increment_nesting();
  then.set();
}

AutocastAsThen::~AutocastAsThen() {
  if (!any_) return;
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  before_.set();
}

}  // namespace tierpilot::swap::libtorch
