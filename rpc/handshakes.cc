#include "rpc/handshakes.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "rpc/error.h"

namespace tierpilot {

bool Handshakes::may_begin() const {
  return waiting_.size() < limits_.max_handshakes || is_late(waiting_.begin()->second);
}

kj::Promise<Channel> Handshakes::begin(UniqueFd fd) {
  if (waiting_.size() >= limits_.max_handshakes) end_longest();
  const uint64_t id = next_id_++;
  auto& handshake = waiting_[id];
  handshake.since_ns = system_clock().boot_ns();
  return handshake.canceler
      .wrap(kj::evalNow([&] { return welcome(loop_, std::move(fd), tls_, limits_); }))
      .attach(kj::defer([this, id] { waiting_.erase(id); }));
}

bool Handshakes::is_late(const Handshake& handshake) const {
  return system_clock().boot_ns() - handshake.since_ns >= limits_.spare_handshake_ms * 1'000'000;
}

void Handshakes::end_longest() {
  const auto longest = waiting_.begin();
  longest->second.canceler.cancel(to_exception(
      {ErrorCode::kTimeout,
       fmt::format("{} connections wait for their TLS handshake: the one that has waited longest "
                   "is closed",
                   waiting_.size())}));
  waiting_.erase(longest);
}

}  // namespace tierpilot
