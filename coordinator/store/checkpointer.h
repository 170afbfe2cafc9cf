// Brings the write-ahead log into the database beside the writer. Within a commit, writing and
// syncing all these pages would hold up every acknowledgement.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <thread>

#include "coordinator/store/db.h"

namespace tierpilot {

class Checkpointer {
 public:
  explicit Checkpointer(Db db);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;

  // After each commit of `writer`, on its thread. Most of a long log is brought over by this
  // object's thread. Then the writer itself brings what it has written meanwhile: only a log that
  // is done with begins anew.
  void committed(Db& writer);

 private:
  enum class State { kIdle, kAsked, kDone };
  void run();

  Db db_;  // this object's thread only
  std::atomic<State> state_ = State::kIdle;
  std::atomic<bool> stop_ = false;
  sem_t asked_;
  std::thread thread_;
};

}  // namespace tierpilot
