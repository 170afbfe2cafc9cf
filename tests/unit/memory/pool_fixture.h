// A pool on two throw-away folders, with calls that wait for their completion.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <linux/magic.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "base/bytes.h"
#include "daemon/memory/pool/pool.h"

namespace tierpilot {

inline std::string make_folder(const std::string& parent) {
  std::string path = parent + "/tierpilot-test-XXXXXX";
  return ::mkdtemp(path.data()) ? path : "";
}

inline bool on_tmpfs(const std::string& path) {
  struct statfs info {};
  return ::statfs(path.c_str(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

// Built and read by whole blocks: sanitizers make every loop over bytes slow.
inline std::string content(size_t bytes, char seed) {
  std::string pattern(61, seed);
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<char>(seed + i);
  std::string out;
  out.reserve(bytes + pattern.size());
  while (out.size() < bytes) out += pattern;
  out.resize(bytes);
  return out;
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::string out(in ? static_cast<size_t>(in.tellg()) : 0, '\0');
  in.seekg(0).read(out.data(), static_cast<std::streamsize>(out.size()));
  return out;
}

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

inline std::vector<std::string> files_in(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Another node: what it holds, and how it misbehaves, by address.
class FakeRemote : public RemoteSource {
 public:
  Result<size_t> read(const std::string& address, const DatasetId& id, uint64_t offset,
                      std::span<std::byte> into) override {
    std::unique_lock lock(mutex);
    ++reads[address];
    const auto it = copies.find(address + "/" + id.name + "@" + std::to_string(id.version));
    if (it == copies.end()) return fail(ErrorCode::kUnreachable, "nobody answers");
    if (busy[address] > 0 && busy[address]-- % 2 == 1)
      return fail(ErrorCode::kExhausted, "too many reads at once");
    if (offset >= fail_from[address] && fail_from[address] > 0)
      return fail(ErrorCode::kIo, "connection lost");
    if (hook) hook(lock);
    const std::string& data = it->second;
    if (offset >= data.size()) return 0;
    const size_t n = std::min({into.size(), data.size() - offset, max_bytes});
    std::memcpy(into.data(), data.data() + offset, n);
    bytes_read[address] += n;
    return n;
  }

  void doubt(const std::string& address, const DatasetId&) override {
    std::lock_guard lock(mutex);
    doubted.push_back(address);
  }

  // Of the first copy that anybody has; unknown: of none.
  ContentDigest digest(const std::string& name, uint64_t version) {
    std::lock_guard lock(mutex);
    const auto ending = "/" + name + "@" + std::to_string(version);
    for (const auto& [key, data] : copies)
      if (key.ends_with(ending)) return digest_of(data);
    return {};
  }

  void put(const std::string& address, const std::string& name, uint64_t version,
           std::string data) {
    std::lock_guard lock(mutex);
    copies[address + "/" + name + "@" + std::to_string(version)] = std::move(data);
  }

  std::mutex mutex;
  std::map<std::string, std::string> copies;
  std::map<std::string, uint64_t> fail_from;
  std::map<std::string, int> busy;  // every other of so many reads is refused
  std::map<std::string, int> reads;
  std::map<std::string, uint64_t> bytes_read;
  std::vector<std::string> doubted;
  size_t max_bytes = SIZE_MAX;
  std::function<void(std::unique_lock<std::mutex>&)> hook;
};

template <class T>
class Waiting {
 public:
  std::function<void(Result<T>)> callback() {
    return [promise = promise_](Result<T> result) { promise->set_value(std::move(result)); };
  }
  Result<T> get() { return future_.get(); }
  bool ready(int wait_ms = 0) {
    return future_.wait_for(std::chrono::milliseconds(wait_ms)) == std::future_status::ready;
  }

 private:
  std::shared_ptr<std::promise<Result<T>>> promise_ = std::make_shared<std::promise<Result<T>>>();
  std::future<Result<T>> future_ = promise_->get_future();
};

class PoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fast_dir = make_folder("/dev/shm");
    if (fast_dir.empty() || !on_tmpfs(fast_dir)) GTEST_SKIP() << "/dev/shm is no writable tmpfs";
    slow_dir = make_folder(std::filesystem::temp_directory_path().string());
    options.fast_dir = fast_dir;
    options.slow_dir = slow_dir;
    options.fast_budget_bytes = 4 * kMiB;
    options.slow_budget_bytes = 64 * kMiB;
  }

  void TearDown() override {
    pool.reset();
    for (const auto& dir : {fast_dir, slow_dir})
      if (!dir.empty()) std::filesystem::remove_all(dir);
  }

  void open() {
    pool.reset();
    auto opened = Pool::open(
        options, remote, [](const std::function<void()>& callback) { callback(); },
        [this](const ReplicaChange& change) {
          std::lock_guard lock(changes_mutex);
          changes.push_back(change);
        });
    ASSERT_TRUE(opened) << opened.error().message;
    pool = std::move(*opened);
  }

  // As a catalog would know it: of what is here, or of what another node has.
  ContentDigest digest(const std::string& name, uint64_t version = 1) {
    if (const auto here = replica(name, version)) return here->digest;
    const auto there = remote->digest(name, version);
    return there.known() ? there : digest_of("nobody has it");
  }
  ServeItem item(const std::string& name, uint64_t bytes, uint64_t version = 1) {
    return {.name = name, .version = version, .bytes = bytes, .digest = digest(name, version)};
  }
  ServeItem remote_item(const std::string& name, uint64_t bytes,
                        std::vector<std::string> sources = {"far"}) {
    auto wanted = item(name, bytes);
    wanted.sources = std::move(sources);
    return wanted;
  }
  ServeItem write_item(const std::string& name, uint64_t bytes, uint64_t version = 1) {
    auto wanted = item(name, bytes, version);
    wanted.write = true;
    return wanted;
  }
  static std::string file_name(const ReplicaChange& one) {
    return replica_file_name({one.id(), one.bytes});
  }

  Waiting<Served> start_serve(const std::string& owner, std::vector<ServeItem> items) {
    Waiting<Served> waiting;
    pool->serve(owner, std::move(items), waiting.callback());
    return waiting;
  }
  Result<Served> serve(const std::string& owner, std::vector<ServeItem> items) {
    return start_serve(owner, std::move(items)).get();
  }
  Committed finish(const std::string& owner, bool success = true) {
    std::promise<Committed> promise;
    pool->finish(owner, success, [&](Committed done) { promise.set_value(std::move(done)); });
    return promise.get_future().get();
  }
  // Serves and ends at once: the dataset is in the fast tier, unpinned, used last.
  void use(const ServeItem& what) {
    const auto served = serve("user", {what});
    ASSERT_TRUE(served) << served.error().message;
    ASSERT_TRUE(finish("user"));
  }
  Result<ReplicaChange> create(const std::string& name, CreateSource source) {
    Waiting<ReplicaChange> waiting;
    pool->create(name, std::move(source), waiting.callback());
    return waiting.get();
  }
  Status drop(const std::string& name, uint64_t below = UINT64_MAX) {
    Waiting<void> waiting;
    pool->drop(name, below, waiting.callback());
    return waiting.get();
  }
  Status set_home(const std::string& name, uint64_t version, bool home) {
    Waiting<void> waiting;
    pool->set_home({name, version, digest(name, version)}, home, waiting.callback());
    return waiting.get();
  }

  std::optional<ReplicaChange> replica(const std::string& name, uint64_t version = 1) {
    for (const auto& one : pool->replicas())
      if (one.name == name && one.version == version) return one;
    return std::nullopt;
  }
  // Where it is, whatever its bytes are.
  static std::optional<ReplicaChange> placed(std::optional<ReplicaChange> one) {
    if (one) one->digest = {};
    return one;
  }
  static std::vector<ReplicaChange> placed(std::vector<ReplicaChange> all) {
    for (auto& one : all) one.digest = {};
    return all;
  }
  bool in_fast(const std::string& name, uint64_t version = 1) {
    const auto found = replica(name, version);
    return found && found->in_fast;
  }
  bool in_slow(const std::string& name, uint64_t version = 1) {
    const auto found = replica(name, version);
    return found && found->in_slow;
  }

  // Usage is the sum of the replicas, the files are there and nothing else is.
  void expect_consistent() {
    const auto usage = pool->usage();
    uint64_t fast = 0, slow = 0;
    std::vector<std::string> fast_files, slow_files;
    for (const auto& one : pool->replicas()) {
      const auto file = file_name(one);
      if (one.in_fast) fast += one.bytes, fast_files.push_back(file);
      if (one.in_slow) slow += one.bytes, slow_files.push_back(file);
    }
    std::sort(fast_files.begin(), fast_files.end());
    std::sort(slow_files.begin(), slow_files.end());
    EXPECT_EQ(usage.fast_used_bytes, fast);
    EXPECT_EQ(usage.slow_used_bytes, slow);
    EXPECT_EQ(usage.fast_pinned_bytes, 0u);
    EXPECT_EQ(files_in(fast_dir), fast_files);
    EXPECT_EQ(files_in(slow_dir), slow_files);
  }

  std::string fast_dir, slow_dir;
  PoolOptions options;
  std::shared_ptr<FakeRemote> remote = std::make_shared<FakeRemote>();
  std::unique_ptr<Pool> pool;
  std::mutex changes_mutex;
  std::vector<ReplicaChange> changes;
};

}  // namespace tierpilot
