#include "daemon/topology/watcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/topology/changes.h"

namespace tierpilot {

TopologyWatcher::TopologyWatcher(Options options, Topology known, const Clock& clock)
    : TopologyWatcher(std::move(options), std::move(known), clock, std::nullopt, "") {
  if (auto socket = UeventSocket::open())
    socket_ = std::move(*socket);
  else
    deaf_reason_ = socket.error().message;
}

TopologyWatcher::TopologyWatcher(Options options, Topology known, const Clock& clock,
                                 std::optional<UeventSocket> socket, std::string deaf_reason)
    : options_(std::move(options)),
      known_(std::move(known)),
      clock_(clock),
      socket_(std::move(socket)),
      deaf_reason_(std::move(deaf_reason)),
      looked_ns_(clock.boot_ns()) {}

std::string TopologyWatcher::source() const {
  if (socket_) return "the kernel announces changes of memory";
  return fmt::format("looking every {} s: {}", options_.poll_deaf_ns / 1'000'000'000, deaf_reason_);
}

void TopologyWatcher::on_readable() {
  if (socket_ && socket_->drain()) announced();
}

void TopologyWatcher::announced() {
  last_announced_ns_ = clock_.boot_ns();
  if (!first_announced_ns_) first_announced_ns_ = last_announced_ns_;
}

int64_t TopologyWatcher::next_check_ns() const {
  const int64_t poll_ns = looked_ns_ + (socket_ ? options_.poll_ns : options_.poll_deaf_ns);
  if (!last_announced_ns_) return poll_ns;
  return std::min({poll_ns, *last_announced_ns_ + options_.quiet_ns,
                   *first_announced_ns_ + options_.longest_quiet_ns});
}

std::optional<TopologyChange> TopologyWatcher::check() {
  if (clock_.boot_ns() < next_check_ns()) return std::nullopt;
  looked_ns_ = clock_.boot_ns();
  first_announced_ns_ = last_announced_ns_ = std::nullopt;
  // Not NVML: asking it wakes GPUs that sleep.
  auto seen = discover_topology(options_.sysroot, {.nvml_library = ""});
  if (!seen) return std::nullopt;
  seen->gpus = known_.gpus;
  seen->gpus_unavailable = known_.gpus_unavailable;
  auto what = topology_changes(known_, *seen);
  if (what.empty()) return std::nullopt;
  known_ = *seen;
  return TopologyChange{std::move(*seen), std::move(what)};
}

}  // namespace tierpilot
