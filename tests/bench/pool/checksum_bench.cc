// What a checksum costs that is taken while data moves: copies of one file with and without, in
// turns, between the folders of two tiers.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/content_digest.h"
#include "base/statistics.h"
#include "base/unique_fd.h"
#include "daemon/memory/pool/copy.h"

namespace tierpilot {
namespace {

struct Settings {
  std::string from = "/dev/shm", to = "/dev/shm";
  uint64_t bytes = 256 << 20;
  int rounds = 15;
};

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "bench_checksum: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

UniqueFd temporary(const std::string& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  if (!fd) give_up(folder);
  return fd;
}

// As copy_bytes() does it, but for the checksum.
void plain_copy(int from, int to, uint64_t bytes) {
  CopyBuffer buffer;
  for (uint64_t offset = 0; offset < bytes;) {
    const auto chunk = buffer.first(bytes - offset);
    const auto got = read_at(from, chunk, offset, "reading");
    if (!got || *got < chunk.size() || !write_at(to, chunk, offset, "writing")) give_up("copying");
    offset += chunk.size();
  }
}

int run(const Settings& settings) {
  const auto from = temporary(settings.from);
  const auto to = temporary(settings.to);
  const std::string chunk(1 << 20, 'x');
  for (uint64_t at = 0; at < settings.bytes; at += chunk.size())
    if (!write_at(from.get(), std::as_bytes(std::span(chunk)), at, "filling")) give_up("filling");
  const auto timed = [&](const auto& work) {
    const int64_t start_ns = system_clock().boot_ns();
    work();
    return static_cast<double>(settings.bytes) /
           static_cast<double>(system_clock().boot_ns() - start_ns);
  };
  const CancelFlag never{false};
  std::vector<double> plain, with, alone, ratio;
  for (int round = 0; round <= settings.rounds; ++round) {
    double now[2] = {};
    for (const int which : {round % 2, 1 - round % 2})
      now[which] = timed([&] {
        if (which == 0)
          plain_copy(from.get(), to.get(), settings.bytes);
        else if (!copy_bytes(from.get(), to.get(), settings.bytes, "copying", never))
          give_up("copying");
      });
    const double only = timed([&] {
      if (!digest_file(from.get(), settings.bytes, "reading", never)) give_up("reading");
    });
    if (round == 0) continue;  // pages were made
    plain.push_back(now[0]), with.push_back(now[1]), alone.push_back(only);
    ratio.push_back(now[0] / now[1]);
  }
  fmt::print("{} from {} to {}, median of {} rounds\n", format_bytes(settings.bytes), settings.from,
             settings.to, settings.rounds);
  fmt::print("copy without a checksum  {:.2f} GB/s\n", upper_median(plain));
  fmt::print("copy with XXH3-128       {:.2f} GB/s\n", upper_median(with));
  fmt::print("read and checksum only   {:.2f} GB/s\n", upper_median(alone));
  fmt::print("time with over without   {:.3f}, of each round's pair\n", upper_median(ratio));
  return 0;
}

}  // namespace
}  // namespace tierpilot

int main(int argc, char** argv) {
  tierpilot::Settings settings;
  CLI::App app("Measures what the checksums of datasets cost");
  app.add_option("--from", settings.from, "folder of the source");
  app.add_option("--to", settings.to, "folder of the copy");
  app.add_option("--bytes", settings.bytes, "size of the file")->check(CLI::PositiveNumber);
  app.add_option("--rounds", settings.rounds)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  return tierpilot::run(settings);
}
