#include "coordinator/store/checkpointer.h"

#include <pthread.h>

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
  if (writer.logged_pages() < kLongLog || state_ == State::kAsked) return;
  if (state_ == State::kDone) {
    if (auto done = writer.checkpoint(); !done) spdlog::warn("{}", done.error().message);
    state_ = State::kIdle;
  } else {
    state_ = State::kAsked;
    ::sem_post(&asked_);
  }
}

void Checkpointer::run() {
  pthread_setname_np(pthread_self(), "checkpoint");
  // A connection that has not read yet does not know of the log, and does nothing without a word.
  if (auto read = db_.execute("SELECT COUNT(*) FROM sqlite_schema"); !read)
    spdlog::warn("{}", read.error().message);
  for (;;) {
    while (::sem_wait(&asked_) != 0) {
    }
    if (stop_) return;
    if (auto done = db_.checkpoint(); !done) spdlog::warn("{}", done.error().message);
    state_ = State::kDone;
  }
}

}  // namespace tierpilot
