// Brings the write-ahead log into the database beside the writer. Within a commit, writing and
// syncing all these pages would hold up every acknowledgement.
//
// Up to 3.51.2 SQLite can lose commits when a commit begins the log anew just as another connection
// begins a checkpoint (sqlite.org/wal.html#walresetbug). The log begins anew only when all of it is
// in the database. So the thread is only asked by a commit that has just added to the log, and
// nobody else brings that over meanwhile; and a directory has one coordinator.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <string>
#include <thread>

#include "coordinator/store/db.h"

namespace tierpilot {

class Checkpointer {
 public:
  // `db` must have read before: else it does not know of the log, and does nothing without a word.
  // Without a thread of its own, what it would do is done within committed().
  explicit Checkpointer(Db db, bool by_thread = true);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;

  // After each commit of `writer`, on its thread. Most of a long log is brought over by this
  // object's thread. Then the writer itself brings what it has written meanwhile: only a log that
  // is done with begins anew.
  void committed(Db& writer);
  // When the log cannot grow: with all of it in the database it needs no room to begin anew.
  void make_room(Db& writer);

 private:
  enum class State { kIdle, kAsked, kDone };
  void run();
  void checkpoint();

  Db db_;                // this object's thread only
  std::string trouble_;  // likewise
  std::atomic<State> state_ = State::kIdle;
  std::atomic<bool> stop_ = false;
  sem_t asked_;
  std::thread thread_;
};

}  // namespace tierpilot
