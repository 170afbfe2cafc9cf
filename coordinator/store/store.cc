#include "coordinator/store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

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
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=2000;";

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

Result<std::unique_ptr<Store>> Store::open(const std::filesystem::path& directory, Post post) {
  auto lock = lock_directory(directory);
  if (!lock) return tl::unexpected(lock.error());
  const auto path = (directory / "tierpilot.db").string();
  auto writer = Db::open(path);
  if (!writer) return tl::unexpected(writer.error());
  if (auto set = writer->execute(kPragmas); !set) return tl::unexpected(set.error());
  if (auto made = records::create_tables(*writer); !made) return tl::unexpected(made.error());
  auto reader = Db::open(path);
  if (!reader) return tl::unexpected(reader.error());
  return std::unique_ptr<Store>(
      new Store(std::move(*writer), std::move(*reader), std::move(*lock), std::move(post)));
}

Store::Store(Db writer, Db reader, UniqueFd lock, Post post)
    : writer_(std::move(writer)),
      reader_(std::move(reader)),
      lock_(std::move(lock)),
      post_(std::move(post)),
      thread_([this] { run(); }) {}

Store::~Store() {
  {
    std::lock_guard guard(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Store::write(Change change, Done done) {
  {
    std::lock_guard guard(mutex_);
    pending_.push_back({std::move(change), std::move(done)});
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
    std::vector<Pending> batch;
    {
      std::unique_lock guard(mutex_);
      wake_.wait(guard, [this] { return stop_ || !pending_.empty(); });
      if (pending_.empty()) return;
      const auto end =
          pending_.begin() + static_cast<ptrdiff_t>(std::min(pending_.size(), kMaxBatch));
      batch.assign(std::make_move_iterator(pending_.begin()), std::make_move_iterator(end));
      pending_.erase(pending_.begin(), end);
    }
    auto results = commit(batch);
    // One post for the whole batch: a wake-up of the event loop costs more than the callbacks.
    post_([batch = std::move(batch), results = std::move(results)]() mutable {
      for (size_t i = 0; i < batch.size(); ++i)
        if (batch[i].done) batch[i].done(std::move(results[i]));
    });
  }
}

std::vector<Status> Store::commit(const std::vector<Pending>& batch) {
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
  if (whole) whole = perform(writer_, "COMMIT");
  if (!whole) {
    writer_.execute("ROLLBACK");
    for (auto& result : results)
      if (result) result = whole;
  }
  Status worst = whole;
  for (const auto& result : results)
    if (!result && worst) worst = result;
  std::lock_guard guard(mutex_);
  const std::string trouble = worst ? std::string() : worst.error().message;
  if (trouble != trouble_)
    trouble.empty() ? spdlog::info("store: writing again") : spdlog::error("{}", trouble);
  trouble_ = trouble;
  return results;
}

}  // namespace tierpilot
