// What the dataset pool moves per second, beside what a plain copy of the same bytes does between
// the same folders: read and write through a 1 MiB buffer, fsync, drop of the page cache.
#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <filesystem>
#include <future>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/statistics.h"
#include "base/unique_fd.h"
#include "daemon/memory/pool/pool.h"

namespace tierpilot {
namespace {

struct Settings {
  std::string fast_parent = "/dev/shm";
  std::string slow_parent = std::filesystem::temp_directory_path();
  uint64_t dataset_bytes = 128 << 20;
  int rounds = 5;
};

// A node without a network: fetches cost one memset of the buffer.
class MemorySource : public RemoteSource {
 public:
  explicit MemorySource(uint64_t bytes) : bytes_(bytes) {}
  Result<size_t> read(const std::string&, const DatasetId&, uint64_t offset,
                      std::span<std::byte> into) override {
    const size_t n = std::min<uint64_t>(into.size(), bytes_ - offset);
    std::memset(into.data(), 0x5a, n);
    return n;
  }

 private:
  uint64_t bytes_;
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench_pool: {}\n", why);
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

template <class T, class Start>
T wait_for(Start start) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  start([promise](Result<T> result) { promise->set_value(std::move(result)); });
  return must(promise->get_future().get());
}

UniqueFd open_file(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!fd) give_up(path + ": " + std::strerror(errno));
  return fd;
}

double plain_copy_gb_per_s(const std::string& from, const std::string& to, bool durable) {
  const int64_t start_ns = system_clock().boot_ns();
  const auto in = open_file(from, O_RDONLY);
  const auto out = open_file(to, O_WRONLY | O_CREAT | O_TRUNC);
  std::vector<char> buffer(1 << 20);
  uint64_t bytes = 0;
  for (ssize_t n; (n = ::read(in.get(), buffer.data(), buffer.size())) > 0; bytes += n)
    if (::write(out.get(), buffer.data(), n) != n) give_up(to + ": " + std::strerror(errno));
  if (durable) ::fsync(out.get());
  ::posix_fadvise(durable ? out.get() : in.get(), 0, 0, POSIX_FADV_DONTNEED);
  return static_cast<double>(bytes) / static_cast<double>(system_clock().boot_ns() - start_ns);
}

struct Samples {
  std::vector<double> gb_per_s;
  double median() const { return upper_median(gb_per_s); }
};

// What MemorySource gives.
ContentDigest digest_of_source(uint64_t bytes) {
  const std::string chunk(1 << 20, '\x5a');
  ContentHasher hasher;
  for (uint64_t at = 0; at < bytes; at += chunk.size())
    hasher.add(std::as_bytes(std::span(chunk)).first(std::min<uint64_t>(chunk.size(), bytes - at)));
  return hasher.digest();
}

void use(Pool& pool, const std::string& name, uint64_t bytes, const ContentDigest& digest) {
  wait_for<Served>([&](auto done) {
    pool.serve(
        "bench",
        {{.name = name, .version = 1, .bytes = bytes, .sources = {"memory"}, .digest = digest}},
        done);
  });
  wait_for<std::vector<ReplicaChange>>([&](auto done) { pool.finish("bench", true, done); });
}

int run(const Settings& settings) {
  std::string fast = settings.fast_parent + "/tierpilot-bench-XXXXXX";
  std::string slow = settings.slow_parent + "/tierpilot-bench-XXXXXX";
  if (!::mkdtemp(fast.data())) give_up(fast + ": " + std::strerror(errno));
  if (!::mkdtemp(slow.data())) give_up(slow + ": " + std::strerror(errno));
  PoolOptions options;
  options.fast_dir = fast + "/pool";
  options.slow_dir = slow + "/pool";
  options.fast_budget_bytes = settings.dataset_bytes;  // one dataset at a time
  options.slow_budget_bytes = 8 * settings.dataset_bytes;
  auto pool = must(Pool::open(
      options, std::make_shared<MemorySource>(settings.dataset_bytes),
      [](const auto& callback) { callback(); }, [](const auto&) {}));

  const auto digest = digest_of_source(settings.dataset_bytes);
  Samples evict, promote, fetch, evict_floor, promote_floor;
  for (int round = 0; round < settings.rounds; ++round) {
    // Fetch; fetch and write the first back; write the second back and promote the first.
    use(*pool, "first", settings.dataset_bytes, digest);
    use(*pool, "second", settings.dataset_bytes, digest);
    use(*pool, "first", settings.dataset_bytes, digest);
    const auto totals = pool->totals();
    evict.gb_per_s.push_back(totals.evict.last_gb_per_s.value());
    promote.gb_per_s.push_back(totals.promote.last_gb_per_s.value());
    fetch.gb_per_s.push_back(totals.fetch.last_gb_per_s.value());
    const auto replica =
        options.fast_dir + "/" + replica_file_name({{"first", 1, digest}, settings.dataset_bytes});
    evict_floor.gb_per_s.push_back(plain_copy_gb_per_s(replica, slow + "/plain", true));
    promote_floor.gb_per_s.push_back(plain_copy_gb_per_s(slow + "/plain", fast + "/plain", false));
    std::filesystem::remove(slow + "/plain");
    std::filesystem::remove(fast + "/plain");
    for (const auto* name : {"first", "second"})
      wait_for<void>([&](auto done) { pool->drop(name, UINT64_MAX, done); });
  }
  fmt::print("dataset {} from {} to {}, median of {}\n", format_bytes(settings.dataset_bytes), fast,
             slow, settings.rounds);
  fmt::print("{:<12}{:>12}{:>18}\n", "", "pool GB/s", "plain copy GB/s");
  fmt::print("{:<12}{:>12.2f}{:>18.2f}\n", "evict", evict.median(), evict_floor.median());
  fmt::print("{:<12}{:>12.2f}{:>18.2f}\n", "promote", promote.median(), promote_floor.median());
  fmt::print("{:<12}{:>12.2f}{:>18}\n", "fetch", fetch.median(), "-");
  pool.reset();
  std::filesystem::remove_all(fast);
  std::filesystem::remove_all(slow);
  return 0;
}

}  // namespace
}  // namespace tierpilot

int main(int argc, char** argv) {
  tierpilot::Settings settings;
  CLI::App app("Measures the dataset pool's transfers beside plain copies");
  app.add_option("--fast", settings.fast_parent, "folder on tmpfs");
  app.add_option("--slow", settings.slow_parent, "folder of the slow tier");
  app.add_option("--bytes", settings.dataset_bytes, "size of a dataset")
      ->check(CLI::PositiveNumber);
  app.add_option("--rounds", settings.rounds)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  return tierpilot::run(settings);
}
