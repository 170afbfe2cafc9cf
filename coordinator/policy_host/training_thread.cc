#include "coordinator/policy_host/training_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <utility>

#include "base/log.h"
#include "policies/dqn/checkpoint.h"

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

TrainingThread::TrainingThread(std::unique_ptr<Trainer> trainer, uint64_t experiences,
                               std::shared_ptr<WeightsMailbox> mailbox, int nice)
    : trainer_(std::move(trainer)), mailbox_(std::move(mailbox)) {
  own_.experiences = experiences;
  mailbox_->put(trainer_->published());
  publish_counters();
  thread_ = std::thread([this, nice] { run(nice); });
}

TrainingThread::~TrainingThread() {
  inbox_.push(Stop{});
  thread_.join();
}

void TrainingThread::add(std::vector<Experience> experiences) {
  for (Experience& experience : experiences) inbox_.push(std::move(experience));
}

void TrainingThread::copy_weights() {
  inbox_.push(CopyWeights{});
}

void TrainingThread::save(SaveRequest request) {
  inbox_.push(std::move(request));
}

void TrainingThread::run(int nice) {
  pthread_setname_np(pthread_self(), "train");
  use_one_torch_thread();
  give_way(nice);
  while (!stopping_) {
    const bool can_train = trainer_->ready() && !own_.failed;
    if (!can_train) inbox_.wait();
    for (Message& message : inbox_.take_all()) handle(std::move(message));
    if (can_train && !stopping_) train();
    copy_if_due();
    publish_counters();
  }
}

void TrainingThread::handle(Message message) {
  std::visit(Overloaded{[&](Experience& experience) {
                          const bool added = trainer_->add(std::move(experience));
                          ++(added ? own_.experiences : own_.duplicates);
                        },
                        [&](CopyWeights) { copy_due_ = true; },
                        [&](SaveRequest& request) {
                          const Status status = write(request);
                          if (!status) spdlog::error("{}", status.error().message);
                          if (request.done) request.done->set_value(status);
                        },
                        [&](Stop) { stopping_ = true; }},
             message);
}

void TrainingThread::train() {
  try {
    trainer_->train_batch();
  } catch (const std::exception& error) {
    // Deciding goes on with the weights there are.
    spdlog::error("training stopped: {}", error.what());
    own_.failed = true;
  }
}

// A copy that fell due while nothing was new is made up for after the next batch.
void TrainingThread::copy_if_due() {
  if (!copy_due_ || !trainer_->changed()) return;
  mailbox_->put(trainer_->publish());
  copy_due_ = false;
}

Status TrainingThread::write(const SaveRequest& request) const {
  Checkpoint checkpoint;
  trainer_->save_to(checkpoint);
  checkpoint.progress.decisions = request.decisions;
  checkpoint.progress.experiences = own_.experiences;
  checkpoint.pending = request.pending;
  return save_checkpoint(request.file, checkpoint);
}

void TrainingThread::publish_counters() {
  experiences_ = own_.experiences;
  duplicates_ = own_.duplicates;
  replay_size_ = trainer_->replay().size();
  training_steps_ = trainer_->steps();
  batches_ = trainer_->batches();
  weights_version_ = trainer_->published()->version;
  loss_ = trainer_->loss();
  failed_ = own_.failed;
}

TrainingThread::Counters TrainingThread::counters() const {
  return {experiences_, duplicates_,      replay_size_, training_steps_,
          batches_,     weights_version_, loss_,        failed_};
}

}  // namespace tierpilot
