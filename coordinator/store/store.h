// The coordinator's disk: SQLite in WAL mode with synchronous=FULL. Writes are gathered while a
// commit is under way and committed together (group commit), so the price of durability is shared.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "coordinator/store/checkpointer.h"
#include "coordinator/store/db.h"

namespace tierpilot {

class Store {
 public:
  // Runs a callback on the thread that owns the store (the event loop).
  using Post = std::function<void(std::function<void()>)>;
  // Changes the database within a transaction; on an error only this change is undone. May be
  // called again after that transaction was undone.
  using Change = std::function<Status(Db&)>;
  using Done = std::function<void(Status)>;
  // Who commits. A simulation has every commit at a moment of its own choice.
  enum class Commits { kByThread, kByCaller };

  // Opens `directory`/tierpilot.db and locks it: kConflict when another coordinator has it, or when
  // a backup was not restored to its end there. kIo: its file system fails.
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& directory, Post post,
                                             Commits commits = Commits::kByThread);
  // Commits what was written, then stops; callbacks of those writes may not be called any more.
  ~Store();

  // `done` is posted once the change is on disk, or with the reason why it is not. Changes keep
  // their order. Where a commit fails in its last step it may yet be found by the next process:
  // that it failed is told once another commit stands in its place.
  void write(Change change, Done done);
  // As write(), but before all that wait: for a change that somebody waits for, and that has
  // nothing to do with what others may have written before it.
  void write_first(Change change, Done done);
  // With kByCaller: commits what waits, one batch of it. False: nothing waits any more. `ends`: as
  // the thread does when this goes.
  bool commit_next(bool ends = false);
  // For reading on the owner's thread; sees what was committed.
  Db& reader() { return reader_; }
  // The last commit's error; empty when it succeeded.
  std::string trouble() const;

 private:
  struct Pending {
    Change change;
    Done done;
  };
  struct Answer {
    Done done;
    Status result;
  };
  Store(UniqueFd lock, Db writer, Db reader, Db checkpointer, Post post, Commits commits);
  void run();
  bool ends() const;
  std::vector<Pending> next_batch();  // waits for it; empty: the end, or is_unsure_
  std::vector<Pending> take_batch();  // with the lock held; empty: nothing waits
  void commit_and_tell(std::vector<Pending> batch);
  void tell(std::vector<Answer> answers);
  // A commit of nothing but itself.
  void make_sure();
  std::vector<Status> commit(const std::vector<Pending>& batch);
  Status commit_all(const std::vector<Pending>& batch);
  std::vector<Status> commit_each(const std::vector<Pending>& batch);
  Status end_transaction();
  // Before anything is told of what is found in the log, or written behind it: where a sync failed
  // before the last process ended, that is perhaps in the page cache alone (Linux takes such pages
  // for written), and the next power cut would take with it all that came after.
  Status write_found_anew();
  void note_trouble(const std::vector<Status>& results);

  UniqueFd lock_;                  // held until all below is closed
  Db writer_;                      // writer thread only
  Db reader_;                      // owner's thread only
  bool found_is_written_ = false;  // writer thread only, as these two
  bool is_unsure_ = false;         // the last commit failed, and may be in the log for all that
  std::vector<Answer> untold_;     // to those whose commits failed so
  Checkpointer checkpointer_;
  Post post_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Pending> first_;    // guarded by mutex_; these go before
  std::deque<Pending> pending_;  // guarded by mutex_
  std::string trouble_;          // guarded by mutex_
  bool stop_ = false;            // guarded by mutex_
  std::thread thread_;
};

}  // namespace tierpilot
