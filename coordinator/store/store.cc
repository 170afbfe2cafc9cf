#include "coordinator/store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

#include "base/log.h"
#include "coordinator/store/backup.h"
#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

constexpr std::chrono::milliseconds kMakeSureAfter{200};
// Together in a commit: an acknowledgement waits for all of them.
constexpr size_t kMaxBatch = 512;

// By a prepared statement: parsing these took as long as the changes between them.
Status perform(Db& db, const char* sql) {
  auto query = db.query(sql);
  return query ? query->run() : Status(tl::unexpected(query.error()));
}

// FULL in WAL mode syncs the log at every commit: NORMAL would lose acknowledged commits in a
// crash.
constexpr const char* kPragmas =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-32768; "
    "PRAGMA journal_size_limit=67108864;";
constexpr const char* kCheckpointerPragmas =
    "PRAGMA synchronous=FULL; PRAGMA journal_size_limit=67108864; "
    "SELECT COUNT(*) FROM sqlite_schema;";

Status count_failed_commit(Db& db) {
  constexpr const char* kCount = "failed_commits";
  auto count = records::setting(db, kCount, 0);
  return count ? records::put_setting(db, kCount, *count + 1)
               : Status(tl::unexpected(count.error()));
}

Result<UniqueFd> lock_directory(const std::filesystem::path& directory) {
  std::error_code err;
  std::filesystem::create_directories(directory, err);
  const auto path = directory / "lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(errno, "store " + path.string());
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::kConflict,
                fmt::format("store {}: another coordinator is using it", directory.string()));
  return fd;
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::filesystem::path& directory, Post post,
                                           Commits commits) {
  auto lock = lock_directory(directory);
  if (!lock) return tl::unexpected(lock.error());
  const auto path = (directory / "tierpilot.db").string();
  std::error_code err;
  if (!std::filesystem::exists(path, err) &&
      std::filesystem::exists(directory / kUnfinishedStore, err))
    return fail(ErrorCode::kConflict,
                fmt::format("store {}: a backup was not restored to its end: restore it again, or "
                            "remove '{}' to begin with an empty store",
                            directory.string(), kUnfinishedStore));
  auto writer = Db::open(path);
  if (!writer) return tl::unexpected(writer.error());
  if (auto set = writer->execute(kPragmas); !set) return tl::unexpected(set.error());
  if (auto made = records::create_tables(*writer); !made) return tl::unexpected(made.error());
  // Who finds it is told of it. A full disk has failed no sync, and can still be read.
  if (auto anew = writer->empty_log(); !anew && anew.error().code != ErrorCode::kExhausted)
    return tl::unexpected(anew.error());
  auto reader = Db::open(path);
  if (!reader) return tl::unexpected(reader.error());
  auto checkpointer = Db::open(path);
  if (!checkpointer) return tl::unexpected(checkpointer.error());
  if (auto set = checkpointer->execute(kCheckpointerPragmas); !set)
    return tl::unexpected(set.error());
  return std::unique_ptr<Store>(new Store(std::move(*lock), std::move(*writer), std::move(*reader),
                                          std::move(*checkpointer), std::move(post), commits));
}

Store::Store(UniqueFd lock, Db writer, Db reader, Db checkpointer, Post post, Commits commits)
    : lock_(std::move(lock)),
      writer_(std::move(writer)),
      reader_(std::move(reader)),
      checkpointer_(std::move(checkpointer), commits == Commits::kByThread),
      post_(std::move(post)) {
  if (commits == Commits::kByThread) thread_ = std::thread([this] { run(); });
}

Store::~Store() {
  {
    std::lock_guard guard(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Store::write(Change change, Done done) {
  {
    std::lock_guard guard(mutex_);
    pending_.push_back({std::move(change), std::move(done)});
  }
  wake_.notify_one();
}

void Store::write_first(Change change, Done done) {
  {
    std::lock_guard guard(mutex_);
    first_.push_back({std::move(change), std::move(done)});
  }
  wake_.notify_one();
}

std::string Store::trouble() const {
  std::lock_guard guard(mutex_);
  return trouble_;
}

void Store::run() {
  pthread_setname_np(pthread_self(), "store");
  for (;;) {
    auto batch = next_batch();
    if (!batch.empty())
      commit_and_tell(std::move(batch));
    else if (is_unsure_ && !ends())
      make_sure();
    else
      return;
  }
}

bool Store::ends() const {
  std::lock_guard guard(mutex_);
  return stop_;
}

bool Store::commit_next(bool ends) {
  std::unique_lock guard(mutex_);
  auto batch = take_batch();
  guard.unlock();
  if (batch.empty() && (!is_unsure_ || ends)) return false;
  batch.empty() ? make_sure() : commit_and_tell(std::move(batch));
  return true;
}

void Store::commit_and_tell(std::vector<Pending> batch) {
  auto results = commit(batch);
  note_trouble(results);
  for (size_t i = 0; i < batch.size(); ++i)
    if (batch[i].done) untold_.push_back({std::move(batch[i].done), std::move(results[i])});
  if (!is_unsure_) tell(std::exchange(untold_, {}));
  checkpointer_.committed(writer_);
}

void Store::make_sure() {
  const auto sure = commit_all({{count_failed_commit, nullptr}});
  note_trouble({sure});
  if (!is_unsure_) tell(std::exchange(untold_, {}));
}

void Store::tell(std::vector<Answer> answers) {
  // One post for all of them: a wake-up of the event loop costs more than the callbacks.
  post_([answers = std::move(answers)]() mutable {
    std::exception_ptr bug;  // of one, while the others have to hear, too
    for (auto& [done, result] : answers) {
      try {
        done(std::move(result));
      } catch (...) {
        bug = std::current_exception();
      }
    }
    if (bug) std::rethrow_exception(bug);
  });
}

std::vector<Store::Pending> Store::next_batch() {
  std::unique_lock guard(mutex_);
  const auto has_work = [this] { return stop_ || !first_.empty() || !pending_.empty(); };
  if (is_unsure_)
    wake_.wait_for(guard, kMakeSureAfter, has_work);
  else
    wake_.wait(guard, has_work);
  return take_batch();
}

std::vector<Store::Pending> Store::take_batch() {
  std::vector<Pending> batch;
  const auto take = [&](std::deque<Pending>& queue, size_t most) {
    for (; !queue.empty() && batch.size() < most; queue.pop_front())
      batch.push_back(std::move(queue.front()));
  };
  take(first_, pending_.empty() ? kMaxBatch : kMaxBatch / 2);
  take(pending_, kMaxBatch);
  return batch;
}

Status Store::write_found_anew() {
  if (found_is_written_) return {};
  auto written = writer_.empty_log();
  found_is_written_ = written.has_value();
  return written;
}

std::vector<Status> Store::commit(const std::vector<Pending>& batch) {
  if (const auto found = write_found_anew(); !found)
    return std::vector<Status>(batch.size(), found);
  // Nearly always all of them succeed, and a savepoint is two more statements for each.
  const auto done = commit_all(batch);
  if (done) return std::vector<Status>(batch.size());
  if (done.error().code == ErrorCode::kExhausted) checkpointer_.make_room(writer_);
  return commit_each(batch);
}

Status Store::commit_all(const std::vector<Pending>& batch) {
  Status whole = perform(writer_, "BEGIN IMMEDIATE");
  for (size_t i = 0; whole && i < batch.size(); ++i) whole = batch[i].change(writer_);
  if (whole) whole = end_transaction();
  if (!whole) writer_.execute("ROLLBACK");
  return whole;
}

// Where it was the log's sync that failed, all of the transaction is in the log.
Status Store::end_transaction() {
  auto done = perform(writer_, "COMMIT");
  is_unsure_ = !done && (is_unsure_ || done.error().code == ErrorCode::kIo);
  return done;
}

std::vector<Status> Store::commit_each(const std::vector<Pending>& batch) {
  std::vector<Status> results(batch.size());
  Status whole = perform(writer_, "BEGIN IMMEDIATE");
  for (size_t i = 0; whole && i < batch.size(); ++i) {
    whole = perform(writer_, "SAVEPOINT change");
    if (!whole) break;
    results[i] = batch[i].change(writer_);
    // A full disk ends the whole transaction: there is then no savepoint to go back to.
    if (!results[i] && !perform(writer_, "ROLLBACK TO change")) whole = results[i];
    if (whole) whole = perform(writer_, "RELEASE change");
  }
  if (whole) whole = end_transaction();
  if (!whole) {
    writer_.execute("ROLLBACK");
    for (auto& result : results)
      if (result) result = whole;
  }
  return results;
}

void Store::note_trouble(const std::vector<Status>& results) {
  std::string trouble;
  for (const auto& result : results)
    // Who finds that its change is not possible says nothing of the disk.
    if (!result && result.error().code != ErrorCode::kConflict && trouble.empty())
      trouble = result.error().message;
  std::lock_guard guard(mutex_);
  if (trouble != trouble_)
    trouble.empty() ? spdlog::info("store: writing again") : spdlog::error("{}", trouble);
  trouble_ = trouble;
}

}  // namespace tierpilot
