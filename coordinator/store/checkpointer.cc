#include "coordinator/store/checkpointer.h"

#include <pthread.h>

#include <string>

#include "base/log.h"

namespace tierpilot {
namespace {

// Pages of 4 KiB. Most are written again and again: a longer log costs less, and a restart more.
constexpr int kLongLog = 8192;

}  // namespace

Checkpointer::Checkpointer(Db db) : db_(std::move(db)) {
  ::sem_init(&asked_, 0, 0);
  thread_ = std::thread([this] { run(); });
}

Checkpointer::~Checkpointer() {
  stop_ = true;
  ::sem_post(&asked_);
  thread_.join();
  ::sem_destroy(&asked_);
}

void Checkpointer::committed(Db& writer) {
  if (state_ == State::kAsked) return;
  const bool has_asked = state_.exchange(State::kIdle) == State::kDone;
  if (writer.logged_pages() < kLongLog) return;
  // What makes this one fail makes the next one of the thread below fail, which tells.
  if (has_asked) return (void)writer.checkpoint();
  state_ = State::kAsked;
  ::sem_post(&asked_);
}

void Checkpointer::make_room(Db& writer) {
  if (state_ != State::kAsked) (void)writer.checkpoint();
}

void Checkpointer::run() {
  pthread_setname_np(pthread_self(), "checkpoint");
  std::string trouble;
  for (;;) {
    while (::sem_wait(&asked_) != 0) {
    }
    if (stop_) return;
    const auto done = db_.checkpoint();
    if (!done && trouble.empty()) spdlog::warn("checkpoint: {}", done.error().message);
    trouble = done ? "" : done.error().message;
    state_ = State::kDone;
  }
}

}  // namespace tierpilot
