#include "coordinator/store/checkpointer.h"

#include <pthread.h>

#include "base/log.h"

namespace tierpilot {
namespace {

// Pages of 4 KiB. Most are written again and again: a longer log costs less, and a restart more.
constexpr int kLongLog = 8192;

}  // namespace

Checkpointer::Checkpointer(Db db, bool by_thread) : db_(std::move(db)) {
  ::sem_init(&asked_, 0, 0);
  if (by_thread) thread_ = std::thread([this] { run(); });
}

Checkpointer::~Checkpointer() {
  stop_ = true;
  ::sem_post(&asked_);
  if (thread_.joinable()) thread_.join();
  ::sem_destroy(&asked_);
}

void Checkpointer::committed(Db& writer) {
  if (state_ == State::kAsked) return;
  const bool has_asked = state_.exchange(State::kIdle) == State::kDone;
  if (writer.logged_pages() < kLongLog) return;
  // What makes this one fail makes the next one of the thread below fail, which tells.
  if (has_asked) return (void)writer.checkpoint();
  if (!thread_.joinable()) return checkpoint();
  state_ = State::kAsked;
  ::sem_post(&asked_);
}

void Checkpointer::make_room(Db& writer) {
  if (state_ != State::kAsked) (void)writer.checkpoint();
}

void Checkpointer::run() {
  pthread_setname_np(pthread_self(), "checkpoint");
  for (;;) {
    while (::sem_wait(&asked_) != 0) {
    }
    if (stop_) return;
    checkpoint();
  }
}

void Checkpointer::checkpoint() {
  const auto done = db_.checkpoint();
  if (!done && trouble_.empty()) spdlog::warn("checkpoint: {}", done.error().message);
  trouble_ = done ? "" : done.error().message;
  state_ = State::kDone;
}

}  // namespace tierpilot
