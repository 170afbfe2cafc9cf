#include "coordinator/policy_host/training_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "base/log.h"
#include "base/overloaded.h"
#include "coordinator/policy_host/saved_learner.h"
#include "policies/learning/saved_bytes.h"

namespace tierpilot {
namespace {

// A decision among 128 nodes keeps 20 KB until its turn comes.
constexpr size_t kMostWaiting = 4096;

using SteadyClock = std::chrono::steady_clock;

double thread_cpu_s() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

void give_way(const TrainingPace& pace) {
  const sched_param none{};
  // Of the calling thread; without a privilege, also under RestrictRealtime=.
  if (pace.when_idle && ::sched_setscheduler(0, SCHED_IDLE, &none) == 0) return;
  if (pace.when_idle) spdlog::warn("training runs at nice {}: SCHED_IDLE was refused", pace.nice);
  const int nice = pace.nice;
  // On Linux a nice value belongs to the thread, whatever POSIX says. Raising it is always allowed.
  if (::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice) != 0)
    spdlog::warn("training runs at normal priority: nice {} was refused", nice);
}

}  // namespace

TrainingThread::TrainingThread(std::vector<NamedLearner> learners, std::filesystem::path state_dir,
                               TrainingPace pace, VersionArchive archive)
    : state_dir_(std::move(state_dir)),
      pace_(pace),
      archive_(std::move(archive)),
      status_(learners.size()) {
  for (NamedLearner& learner : learners) places_.push_back({std::move(learner)});
  publish_status();
  thread_ = std::thread([this] { run(); });
}

TrainingThread::~TrainingThread() {
  inbox_.push(Stop{});
  thread_.join();
}

bool TrainingThread::Sample::take(uint64_t id, bool room, double per_s) {
  const std::lock_guard lock(mutex_);
  const auto now = SteadyClock::now();
  left_ = std::min(kMost, left_ + std::chrono::duration<double>(now - at_).count() * per_s);
  at_ = now;
  if (!room || left_ < 1) {
    left_out_.insert(id);
    return false;
  }
  left_ -= 1;
  left_out_.erase(id);
  return true;
}

bool TrainingThread::Sample::left_out(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return left_out_.contains(id);
}

bool TrainingThread::Sample::end_left_out(uint64_t id) {
  const std::lock_guard lock(mutex_);
  return left_out_.erase(id) != 0;
}

void TrainingThread::decided(uint64_t id, std::shared_ptr<const View> view, size_t node) {
  if (sample_.take(id, inbox_.size() < kMostWaiting, pace_.decisions_per_s))
    inbox_.push(Decided{id, std::move(view), node});
}
void TrainingThread::told(uint64_t id, const Outcome& outcome) {
  const bool left_out = ends(outcome) ? sample_.end_left_out(id) : sample_.left_out(id);
  if (!left_out) inbox_.push(Told{id, outcome});
}
void TrainingThread::wake(const std::string& policy) {
  inbox_.push(Wake{policy});
}
void TrainingThread::save(std::shared_ptr<std::promise<Status>> done) {
  inbox_.push(Save{std::move(done)});
}

void TrainingThread::keep_version(const std::string& policy, WeightsVersion about,
                                  VersionDone done) {
  inbox_.push(Keep{policy, std::move(about), std::move(done)});
}
void TrainingThread::roll_back(const std::string& policy, uint64_t number, WeightsVersion about,
                               VersionDone done) {
  inbox_.push(RollBack{policy, number, std::move(about), std::move(done)});
}

void TrainingThread::run() {
  pthread_setname_np(pthread_self(), "train");
  give_way(pace_);
  while (!stopping_) {
    if (!can_train())
      inbox_.wait();
    else if (SteadyClock::now() < may_train_at_)
      inbox_.wait_until(may_train_at_);
    for (Message& message : inbox_.take_all()) handle(std::move(message));
    if (!stopping_) train();
    publish_status();
  }
}

template <class Fact>
void TrainingThread::tell(Fact fact) {
  changed_ = true;
  for (Place& place : places_)
    if (place.awake) fact(*place.learner);
}

void TrainingThread::handle(Message message) {
  std::visit(Overloaded{[&](const Decided& m) {
                          tell([&](Learner& l) { l.decided(m.id, *m.view, m.node); });
                        },
                        [&](const Told& m) { tell([&](Learner& l) { l.told(m.id, m.outcome); }); },
                        [&](const Wake& m) {
                          if (Place* place = place_of(m.policy)) wake_up(*place);
                        },
                        [&](const Save& m) {
                          if (!m.done && !changed_) return;
                          changed_ = false;
                          const auto written = write();
                          if (!written) spdlog::error("{}", written.error().message);
                          publish_status();
                          if (m.done) m.done->set_value(written);
                        },
                        [&](const Keep& m) {
                          auto kept = keep(m.policy, m.about);
                          if (!kept)
                            spdlog::error("policy '{}': {}", m.policy, kept.error().message);
                          publish_status();
                          if (m.done) m.done(std::move(kept));
                        },
                        [&](const RollBack& m) {
                          auto gone_back = go_back(m);
                          publish_status();
                          m.done(std::move(gone_back));
                        },
                        [&](Stop) { stopping_ = true; }},
             message);
}

void TrainingThread::wake_up(Place& place) {
  if (Status begun = begin(place); !begun) {
    spdlog::error("{}", begun.error().message);
    return;
  }
  if (!place.awake) place.failed = false;  // as it may have when it could not begin before
  place.awake = true;
  place.learner->copy_weights();
}

Status TrainingThread::begin(Place& place) {
  try {
    place.learner->begin();
    return {};
  } catch (const std::exception& error) {
    place.failed = true;
    return fail(ErrorCode::kUnavailable,
                fmt::format("policy '{}' cannot learn: {}", place.policy, error.what()));
  }
}

TrainingThread::Place* TrainingThread::place_of(const std::string& policy) {
  const auto place = std::find_if(places_.begin(), places_.end(),
                                  [&](const Place& each) { return each.policy == policy; });
  return place == places_.end() ? nullptr : &*place;
}

bool TrainingThread::can_train() const {
  return std::any_of(places_.begin(), places_.end(), [](const Place& place) {
    return place.awake && !place.failed && place.learner->ready();
  });
}

// One batch of each, so that a cheap learner does not wait long for a costly one.
void TrainingThread::train() {
  const bool rested = SteadyClock::now() >= may_train_at_;
  const double used_before_s = thread_cpu_s();
  for (Place& place : places_) {
    if (!place.awake || place.failed) continue;
    try {
      if (rested && place.learner->ready()) place.learner->train_batch();
      place.learner->copy_weights_if_due();
    } catch (const std::exception& error) {
      // Deciding goes on with the weights there are.
      spdlog::error("policy '{}': training stopped: {}", place.policy, error.what());
      place.failed = true;
    }
  }
  if (!rested) return;
  const double rest_s = (thread_cpu_s() - used_before_s) * (1 / pace_.cpu_share - 1);
  may_train_at_ = SteadyClock::now() + std::chrono::nanoseconds(std::llround(rest_s * 1e9));
}

Result<WeightsVersion> TrainingThread::keep(const std::string& policy, WeightsVersion about) {
  Place* place = place_of(policy);
  if (!place) return fail(ErrorCode::kNotFound, "policy '" + policy + "' does not learn");
  if (Status begun = begin(*place); !begun) return tl::unexpected(begun.error());
  const auto counters = place->learner->counters();
  const auto kept = archive_.list(policy);
  if (!kept.empty() && kept.back().weights_version == counters.weights_version) return kept.back();
  about.experiences = counters.experiences;
  about.batches = counters.batches;
  about.weights_version = counters.weights_version;
  about.origin = place->origin;
  return archive_.add(policy, std::move(about), place->learner->save_weights());
}

Result<WeightsVersion> TrainingThread::go_back(const RollBack& message) {
  Place* place = place_of(message.policy);
  if (!place) return fail(ErrorCode::kNotFound, "policy '" + message.policy + "' does not learn");
  // Looked up and read first: keeping what there is may drop the oldest.
  const auto kept = archive_.list(message.policy);
  const auto wanted = std::find_if(kept.rbegin(), kept.rend(), [&](const WeightsVersion& version) {
    return message.number == 0
               ? version.weights_version != place->learner->counters().weights_version
               : version.number == message.number;
  });
  const uint64_t number = wanted == kept.rend() ? message.number : wanted->number;
  const auto weights = archive_.weights(message.policy, number);
  if (!weights) return tl::unexpected(weights.error());
  if (const auto now = keep(message.policy, message.about); !now)
    return tl::unexpected(now.error());
  if (Status status = place->learner->restore_weights(*weights); !status)
    return fail(status.error().code, fmt::format("version {} of policy '{}': {}", number,
                                                 message.policy, status.error().message));
  place->failed = false;
  changed_ = true;
  // Not only at the next interval: what was gone back from would decide again after a crash.
  if (!state_dir_.empty())
    if (auto saved = save_bytes(checkpoint_file(state_dir_, place->policy), place->learner->save());
        !saved)
      return fail(saved.error().code,
                  fmt::format("version {} of policy '{}' is used, and not kept over a restart: {}",
                              number, message.policy, saved.error().message));
  return *wanted;
}

Status TrainingThread::write() const {
  if (state_dir_.empty())
    return fail(ErrorCode::kUnavailable, "the learners have no state directory to be saved in");
  for (const Place& place : places_)
    if (place.awake)
      if (auto saved = save_bytes(checkpoint_file(state_dir_, place.policy), place.learner->save());
          !saved)
        return saved;
  return {};
}

void TrainingThread::publish_status() {
  std::vector<LearnerStatus> now;
  for (const Place& place : places_)
    now.push_back(
        {place.learner->counters(), place.failed, archive_.list(place.policy), place.origin});
  const std::lock_guard lock(status_mutex_);
  status_ = std::move(now);
}

TrainingThread::LearnerStatus TrainingThread::status(const std::string& policy) const {
  const std::lock_guard lock(status_mutex_);
  for (size_t i = 0; i < places_.size(); ++i)
    if (places_[i].policy == policy) return status_[i];
  return {};
}

}  // namespace tierpilot
