#include "daemon/agent/gpus/gpu_poll.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/log.h"

namespace tierpilot::agent {
namespace {

// Between two samples of a process: after a longer pause it has not computed in all of it.
constexpr uint64_t kLongestSample_us = 1'000'000;
// Those of several processes that were taken together are not so far apart.
constexpr uint64_t kShortestPeriod_us = 50'000;
constexpr uint64_t kFirstSample_us = 166'667;

// Those of before a clock was set back.
void drop_future(std::vector<GpuSample>& samples, int64_t wall_ms) {
  constexpr int64_t kSlack_ms = 1000;
  const auto latest_us = static_cast<uint64_t>(wall_ms + kSlack_ms) * 1000;
  std::erase_if(samples, [&](const GpuSample& sample) { return sample.at_us > latest_us; });
}

}  // namespace

std::map<pid_t, int64_t> GpuMeter::add(const std::vector<GpuSample>& samples, uint64_t since_us) {
  auto sorted = samples;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.at_us < b.at_us; });
  std::map<pid_t, int64_t> busy_ns;
  const uint64_t told_us = newest_us_;
  for (const auto& sample : sorted) {
    const auto pid = static_cast<pid_t>(sample.pid);
    const auto [last, first] = last_us_.try_emplace(pid, sample.at_us);
    const uint64_t gap_us = sample.at_us - std::min(sample.at_us, std::max(last->second, told_us));
    if (!first && gap_us >= kShortestPeriod_us) period_us_ = std::min(period_us_, gap_us);
    const uint64_t most_us = std::min(kLongestSample_us, std::max(since_us, period_us_));
    const uint64_t long_us = first ? kFirstSample_us : std::min(gap_us, most_us);
    last->second = sample.at_us;
    busy_ns[pid] += static_cast<int64_t>(long_us) * 10 * sample.sm_percent;
    newest_us_ = std::max(newest_us_, sample.at_us);
  }
  constexpr uint64_t kGone_us = 60'000'000;
  std::erase_if(last_us_, [&](const auto& last) { return last.second + kGone_us < newest_us_; });
  return busy_ns;
}

bool GpuMeter::was_set_back(int64_t wall_ms, int64_t boot_ns) {
  constexpr int64_t kStep_ms = 100;
  const int64_t ahead_ms = wall_ms - boot_ns / 1'000'000;
  const auto before = std::exchange(ahead_ms_, ahead_ms);
  if (!before || ahead_ms > *before - kStep_ms) return false;
  last_us_.clear();
  newest_us_ = 0;
  return true;
}

// What the thread has.
class GpuPoll::Looks {
 public:
  Looks(Options options, const Clock& clock, Looked looked)
      : options_(std::move(options)), clock_(clock), looked_(std::move(looked)) {
    if (options_.mps) mps_ = std::make_unique<MpsControl>(*options_.mps);
  }

  void run(DriverStop& stop);
  // Also where the thread is left behind.
  void end_mps() {
    const std::lock_guard lock(mps_mutex_);
    mps_.reset();
  }

  std::atomic<uint64_t> asked = 0;
  std::atomic<bool> idle = true;

 private:
  void measure(GpuLook& look);
  void look_at_mps(GpuLook& look);

  const Options options_;
  const Clock& clock_;
  const Looked looked_;
  std::optional<Nvml> nvml_;
  int index_ = 0;
  GpuMeter meter_;
  int64_t measured_ns_ = 0;
  bool lost_ = false;
  std::mutex mps_mutex_;
  std::unique_ptr<MpsControl> mps_;  // with the mutex
  std::string mps_trouble_;
  std::vector<pid_t> mps_servers_;
  int64_t next_mps_ns_ = 0;
  int mps_failures_ = 0;  // in a row
};

GpuPoll::GpuPoll(Options options, const Clock& clock, Looked looked)
    : looks_(std::make_shared<Looks>(std::move(options), clock, std::move(looked))),
      thread_([looks = looks_](DriverStop& stop) { looks->run(stop); }) {}

GpuPoll::~GpuPoll() {
  thread_.stop();
  looks_->end_mps();
}

uint64_t GpuPoll::ask() {
  const uint64_t asked = ++looks_->asked;
  thread_.wake();
  return asked;
}

void GpuPoll::set_idle(bool idle) {
  looks_->idle = idle;
}

void GpuPoll::Looks::run(DriverStop& stop) {
  uint64_t answered = 0;
  while (!stop.stopped()) {
    GpuLook look{.gpu = options_.gpu,
                 .busy_ns = {},
                 .memory_bytes = {},
                 .unmeasured = {},
                 .mps_servers = {},
                 .mps_trouble = {}};
    look.answers = asked;
    if (look.answers != answered && mps_trouble_.empty()) next_mps_ns_ = 0;
    answered = look.answers;
    measure(look);
    if (options_.mps && !stop.stopped()) look_at_mps(look);
    stop.tell([&] { looked_(std::move(look)); });
    stop.wait(std::chrono::milliseconds(options_.period_ms), [&] { return asked != answered; });
  }
}

void GpuPoll::Looks::measure(GpuLook& look) {
  look.lost = lost_;  // new sessions may not show it at all
  if (!nvml_) {
    auto opened = Nvml::open(options_.library);
    if (!opened) {
      look.unmeasured = opened.error().message;
      return;
    }
    std::vector<std::string> warnings;
    const auto gpus = opened->gpus(warnings).value_or(std::vector<Gpu>{});
    const auto own = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const Gpu& gpu) { return gpu.uuid == options_.gpu; });
    if (own == gpus.end()) {
      look.unmeasured = "the driver does not show it";
      return;
    }
    index_ = own->index;
    nvml_.emplace(std::move(*opened));
  }
  const bool set_back = meter_.was_set_back(clock_.wall_ms(), clock_.boot_ns());
  auto samples = nvml_->samples(index_, meter_.newest_us());
  const auto use = nvml_->use(index_);
  if (!samples || !use) {
    look.unmeasured = (samples ? use.error() : samples.error()).message;
    look.lost = lost_ = nvml_->is_lost(index_);
    nvml_.reset();  // a device that comes back is shown to new sessions only
    return;
  }
  look.lost = lost_ = false;
  const int64_t now_ns = clock_.boot_ns();
  drop_future(*samples, clock_.wall_ms());
  look.busy_ns = meter_.add(*samples, static_cast<uint64_t>(now_ns - measured_ns_) / 1000);
  measured_ns_ = now_ns;
  if (set_back) {
    look.busy_ns.clear();
    look.unmeasured = "the clock was set back";
    return;
  }
  for (const auto& process : use->processes)
    if (process.memory_bytes)
      look.memory_bytes[static_cast<pid_t>(process.pid)] = *process.memory_bytes;
}

void GpuPoll::Looks::look_at_mps(GpuLook& look) {
  const std::lock_guard lock(mps_mutex_);
  look.mps_trouble = mps_trouble_;
  look.mps_servers = mps_servers_;
  if (!mps_ || clock_.boot_ns() < next_mps_ns_) return;
  const int64_t asked_ns = clock_.boot_ns();
  const auto begun = mps_->keep_running(idle);
  auto state = begun ? mps_->ask() : Result<MpsState>(tl::unexpected(begun.error()));
  look.mps_begun = begun && *begun;
  mps_trouble_.clear();
  if (state) {
    look.mps_asked_ns = asked_ns;
    look.mps_faulted = state->faulted;
    look.mps_gone = state->gone;
    mps_servers_.clear();
    for (const auto& [pid, status] : state->servers) mps_servers_.push_back(pid);
  } else {
    mps_trouble_ = state.error().message;
    // One that answers with a refusal may come to itself; one that does so again has lost its
    // folder, say.
    const bool useless = state.error().code == ErrorCode::kTimeout || mps_failures_ > 0;
    if (useless && idle) mps_ = std::make_unique<MpsControl>(*options_.mps);
  }
  mps_failures_ = state ? 0 : mps_failures_ + 1;
  look.mps_trouble = mps_trouble_;
  look.mps_servers = mps_servers_;
  const int64_t pause_ms = state ? options_.mps_period_ms : options_.mps_pause_ms;
  next_mps_ns_ = clock_.boot_ns() + pause_ms * 1'000'000;
}

}  // namespace tierpilot::agent
