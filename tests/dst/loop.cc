#include "tests/dst/loop.h"

#include <algorithm>
#include <utility>

namespace tierpilot::dst {

void Loop::after(int64_t delay_ns, LifePtr life, std::function<void()> what) {
  events_.push(
      {now_ns_ + std::max<int64_t>(delay_ns, 0), ++last_, std::move(life), std::move(what)});
}

bool Loop::step(int64_t until_ns) {
  if (events_.empty() || events_.top().at_ns > until_ns) {
    now_ns_ = std::max(now_ns_, until_ns);
    return false;
  }
  Event event = std::move(const_cast<Event&>(events_.top()));
  events_.pop();
  now_ns_ = event.at_ns;
  if (event.life && !event.life->alive) return true;
  const int64_t stopped_ns = event.life ? event.life->stopped_until_ns - now_ns_ : 0;
  if (stopped_ns > 0)
    after(stopped_ns, std::move(event.life), std::move(event.what));
  else
    event.what();
  return true;
}

}  // namespace tierpilot::dst
