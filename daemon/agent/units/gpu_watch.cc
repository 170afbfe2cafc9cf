#include "daemon/agent/units/gpu_watch.h"

#include <fmt/format.h>

#include <algorithm>

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

GpuWatch::GpuWatch(NvmlEvents events, Options options, const Clock& clock, Hooks hooks)
    : events_(std::move(events)),
      options_(std::move(options)),
      clock_(clock),
      hooks_(std::move(hooks)),
      opened_ns_(clock.boot_ns()) {
  for (auto& gpu : events_->gpus()) known_.insert(std::move(gpu));
  thread_ = std::thread([this] { run(); });
}

GpuWatch::~GpuWatch() {
  stop_ = true;
  thread_.join();
}

void GpuWatch::run() {
  while (!stop_) {
    std::vector<XidEvent> told;
    if (events_)
      told = events_->wait(options_.wait_ms);
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(options_.wait_ms));
    const int64_t now_ns = clock_.boot_ns();
    for (auto& fault : faults_.xids(told, now_ns))
      hooks_.post([failed = hooks_.failed, fault = std::move(fault)] { failed(fault); });
    if (!stop_) look(now_ns);
  }
}

void GpuWatch::look(int64_t now_ns) {
  if (!lost_.empty() && now_ns - opened_ns_ >= options_.reopen_ns) reopen();
  auto lost = known_;
  if (events_) {
    for (const auto& gpu : events_->gpus()) lost.erase(gpu);
    for (auto& gpu : events_->lost()) lost.insert(std::move(gpu));
  }
  for (auto& fault : faults_.lost(lost, now_ns))
    hooks_.post([failed = hooks_.failed, fault = std::move(fault)] { failed(fault); });
  for (const auto& gpu : known_)
    if (lost.contains(gpu) != lost_.contains(gpu))
      hooks_.post(
          [changed = hooks_.changed, gpu, is_lost = lost.contains(gpu)] { changed(gpu, is_lost); });
  lost_ = std::move(lost);
}

void GpuWatch::reopen() {
  events_.reset();
  std::vector<std::string> warnings;
  if (auto opened = NvmlEvents::open(options_.library, warnings))
    events_ = std::move(*opened);
  else
    spdlog::debug("GPUs: {}", opened.error().message);
  opened_ns_ = clock_.boot_ns();
}

}  // namespace tierpilot::agent
