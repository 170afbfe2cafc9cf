#include "daemon/agent/units/gpu_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/log.h"
#include "daemon/topology/xid.h"

namespace tierpilot::agent {

std::vector<GpuFault> GpuFaults::xids(const std::vector<XidEvent>& events, int64_t now_ns) {
  std::vector<GpuFault> faults;
  for (const auto& event : events) {
    const auto xid = find_xid(event.number);
    if (xid.cause != XidCause::kDevice) {
      spdlog::info("GPU {}: Xid {} ({}): not counted against it", event.gpu, event.number,
                   xid.meaning);
      continue;
    }
    const auto kind = fmt::format("Xid {}", event.number);
    const auto [last, first] = last_ns_.try_emplace({event.gpu, kind}, now_ns);
    const bool again = !first && now_ns - last->second < kSame_ns;
    last->second = last_fault_ns_[event.gpu] = now_ns;
    if (!again) faults.push_back({event.gpu, kind, std::string(xid.meaning)});
  }
  return faults;
}

std::vector<GpuFault> GpuFaults::lost(const std::set<std::string>& gpus, int64_t now_ns) {
  std::vector<GpuFault> faults;
  for (const auto& gpu : gpus) {
    if (lost_.contains(gpu)) continue;
    const auto before = last_fault_ns_.find(gpu);
    if (before == last_fault_ns_.end() || now_ns - before->second > kCause_ns)
      faults.push_back({gpu, "device lost", "the driver cannot reach the device"});
  }
  lost_ = gpus;
  return faults;
}

namespace {

// What the thread has.
class Watch {
 public:
  Watch(NvmlEvents events, GpuWatch::Options options, const Clock& clock, GpuWatch::Hooks hooks)
      : events_(std::move(events)),
        options_(std::move(options)),
        clock_(clock),
        hooks_(std::move(hooks)),
        opened_ns_(clock.boot_ns()) {
    for (auto& gpu : events_->gpus()) known_.insert(std::move(gpu));
  }

  void run(DriverStop& stop) {
    while (!stop.stopped()) {
      std::vector<XidEvent> told;
      if (events_)
        told = events_->wait(options_.wait_ms);
      else
        stop.wait(std::chrono::milliseconds(options_.wait_ms));
      const int64_t now_ns = clock_.boot_ns();
      tell_faults(stop, faults_.xids(told, now_ns));
      if (!stop.stopped()) look(stop, now_ns);
    }
  }

 private:
  void tell_faults(DriverStop& stop, std::vector<GpuFault> faults) {
    for (auto& fault : faults)
      stop.tell([&] {
        hooks_.post([failed = hooks_.failed, fault = std::move(fault)] { failed(fault); });
      });
  }
  void look(DriverStop& stop, int64_t now_ns);
  void reopen();

  std::optional<NvmlEvents> events_;  // none: the driver was not there when it was last asked
  const GpuWatch::Options options_;
  const Clock& clock_;
  const GpuWatch::Hooks hooks_;
  std::set<std::string> known_;  // at the beginning
  std::set<std::string> lost_;
  GpuFaults faults_;
  int64_t opened_ns_;
};

void Watch::look(DriverStop& stop, int64_t now_ns) {
  if (!lost_.empty() && now_ns - opened_ns_ >= options_.reopen_ns) reopen();
  auto lost = known_;
  if (events_) {
    for (const auto& gpu : events_->gpus()) lost.erase(gpu);
    for (auto& gpu : events_->lost()) lost.insert(std::move(gpu));
  }
  tell_faults(stop, faults_.lost(lost, now_ns));
  for (const auto& gpu : known_)
    if (lost.contains(gpu) != lost_.contains(gpu))
      stop.tell([&] {
        hooks_.post([changed = hooks_.changed, gpu, is_lost = lost.contains(gpu)] {
          changed(gpu, is_lost);
        });
      });
  lost_ = std::move(lost);
}

void Watch::reopen() {
  events_.reset();
  std::vector<std::string> warnings;
  if (auto opened = NvmlEvents::open(options_.library, warnings))
    events_ = std::move(*opened);
  else
    spdlog::debug("GPUs: {}", opened.error().message);
  opened_ns_ = clock_.boot_ns();
}

}  // namespace

GpuWatch::GpuWatch(NvmlEvents events, Options options, const Clock& clock, Hooks hooks)
    : thread_([watch = std::make_shared<Watch>(std::move(events), std::move(options), clock,
                                               std::move(hooks))](DriverStop& stop) {
        watch->run(stop);
      }) {}

}  // namespace tierpilot::agent
