#include "coordinator/policy_host/training_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"
#include "coordinator/policy_host/saved_learner.h"
#include "policies/learning/saved_bytes.h"
#include "policies/learning/torch_thread.h"

namespace tierpilot {
namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

void give_way(int nice) {
  // On Linux a nice value belongs to the thread, whatever POSIX says. Raising it is always allowed.
  if (::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice) != 0)
    spdlog::warn("training runs at normal priority: nice {} was refused", nice);
}

}  // namespace

TrainingThread::TrainingThread(std::vector<NamedLearner> learners, std::filesystem::path state_dir,
                               int nice)
    : state_dir_(std::move(state_dir)), status_(learners.size()) {
  for (NamedLearner& learner : learners) places_.push_back({std::move(learner)});
  publish_status();
  thread_ = std::thread([this, nice] { run(nice); });
}

TrainingThread::~TrainingThread() {
  inbox_.push(Stop{});
  thread_.join();
}

void TrainingThread::decided(uint64_t id, std::shared_ptr<const View> view, size_t node) {
  inbox_.push(Decided{id, std::move(view), node});
}
void TrainingThread::served(uint64_t id, const RewardParts& reward) {
  inbox_.push(Served{id, reward});
}
void TrainingThread::finished(uint64_t id, double response_s) {
  inbox_.push(Finished{id, response_s});
}
void TrainingThread::abandoned(uint64_t id) {
  inbox_.push(Abandoned{id});
}
void TrainingThread::wake(const std::string& policy) {
  inbox_.push(Wake{policy});
}
void TrainingThread::save(std::shared_ptr<std::promise<Status>> done) {
  inbox_.push(Save{std::move(done)});
}

void TrainingThread::run(int nice) {
  pthread_setname_np(pthread_self(), "train");
  use_one_torch_thread();
  give_way(nice);
  while (!stopping_) {
    if (!can_train()) inbox_.wait();
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
  std::visit(
      Overloaded{
          [&](const Decided& m) { tell([&](Learner& l) { l.decided(m.id, *m.view, m.node); }); },
          [&](const Served& m) { tell([&](Learner& l) { l.served(m.id, m.reward); }); },
          [&](const Finished& m) { tell([&](Learner& l) { l.finished(m.id, m.response_s); }); },
          [&](const Abandoned& m) { tell([&](Learner& l) { l.abandoned(m.id); }); },
          [&](const Wake& m) {
            for (Place& place : places_) {
              if (place.policy != m.policy) continue;
              place.awake = true;
              place.learner->copy_weights();
            }
          },
          [&](const Save& m) {
            if (!m.done && !changed_) return;
            changed_ = false;
            const auto written = write();
            if (!written) spdlog::error("{}", written.error().message);
            publish_status();
            if (m.done) m.done->set_value(written);
          },
          [&](Stop) { stopping_ = true; }},
      message);
}

bool TrainingThread::can_train() const {
  return std::any_of(places_.begin(), places_.end(), [](const Place& place) {
    return place.awake && !place.failed && place.learner->ready();
  });
}

// One batch of each, so that a cheap learner does not wait long for a costly one.
void TrainingThread::train() {
  for (Place& place : places_) {
    if (!place.awake || place.failed) continue;
    try {
      if (place.learner->ready()) place.learner->train_batch();
      place.learner->copy_weights_if_due();
    } catch (const std::exception& error) {
      // Deciding goes on with the weights there are.
      spdlog::error("policy '{}': training stopped: {}", place.policy, error.what());
      place.failed = true;
    }
  }
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
  for (const Place& place : places_) now.push_back({place.learner->counters(), place.failed});
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
