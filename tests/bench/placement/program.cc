#include "tests/bench/placement/program.h"

#include <fmt/format.h>
#include <numaif.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "tests/bench/placement/program_parts.h"

namespace tierpilot::bench {
namespace {

constexpr std::pair<ProgramKind, std::string_view> kProgramNames[] = {
    {ProgramKind::kHotSet, "hot-set"},
    {ProgramKind::kStreaming, "streaming"},
    {ProgramKind::kKeyValue, "key-value"}};

// Only the array is bound: code and stack lie alike in all rows.
Result<char*> make_array(const ProgramOptions& options) {
  void* data =
      ::mmap(nullptr, options.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return fail_errno(errno, "the array");
  ::madvise(data, options.bytes, MADV_NOHUGEPAGE);
  if (options.node) {
    const unsigned long mask = 1UL << *options.node;
    if (::mbind(data, options.bytes, MPOL_BIND, &mask, 64, 0) != 0)
      return fail_errno(errno, fmt::format("the array on node {}", *options.node));
  }
  return static_cast<char*>(data);
}

}  // namespace

std::string_view program_name(ProgramKind kind) {
  for (const auto& [known, name] : kProgramNames)
    if (known == kind) return name;
  return "unknown";
}

std::optional<ProgramKind> program_from_name(std::string_view name) {
  for (const auto& [kind, known] : kProgramNames)
    if (known == name) return kind;
  return {};
}

std::unique_ptr<Program> make_program(const ProgramOptions& options, char* data) {
  switch (options.kind) {
    case ProgramKind::kHotSet:
      return make_hot_set(data, options.bytes);
    case ProgramKind::kStreaming:
      return make_streaming(data, options.bytes);
    case ProgramKind::kKeyValue:
      break;
  }
  return make_key_value(data, options.bytes);
}

std::vector<double> page_weights(const ProgramOptions& options, uint32_t hot_quarter) {
  if (options.kind == ProgramKind::kHotSet)
    return hot_set_weights(options.bytes / kPageBytes, hot_quarter);
  if (options.kind == ProgramKind::kKeyValue) return key_value_weights(options.bytes);
  return {};
}

int run_program(const ProgramOptions& options, int board_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The benchmark keeps to the last one.
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  ::sched_setaffinity(0, sizeof first, &first);
  const auto board = map_board(board_fd);
  const auto data = make_array(options);
  if (!board || !data) {
    fmt::print(stderr, "bench_placement: {}\n",
               board ? data.error().message : board.error().message);
    return 1;
  }
  const auto program = make_program(options, *data);
  program->load();
  (*board)->data_start = reinterpret_cast<uint64_t>(*data);
  (*board)->ready = true;
  while (!(*board)->go) ::usleep(1000);
  for (;;) {
    program->run(**board);
    (*board)->operations.fetch_add(Program::kBatch, std::memory_order_relaxed);
  }
}

}  // namespace tierpilot::bench
