#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/table/cell.h"
#include "base/table/line_reader.h"
#include "policies/sim/trace/readers.h"
#include "policies/sim/trace/trace_builder.h"

namespace tierpilot::sim {
namespace {

constexpr size_t kFields = 18;
constexpr std::array<const char*, kFields> kFieldNames{"job number",
                                                       "submit time",
                                                       "wait time",
                                                       "run time",
                                                       "allocated processors",
                                                       "CPU time used",
                                                       "memory used",
                                                       "requested processors",
                                                       "requested time",
                                                       "requested memory",
                                                       "status",
                                                       "user",
                                                       "group",
                                                       "executable",
                                                       "queue",
                                                       "partition",
                                                       "preceding job",
                                                       "think time"};

// The fields by their numbers in the definition, less one; below 0: not known.
enum Field {
  kSubmitTime = 1,
  kRunTime = 3,
  kAllocatedProcessors = 4,
  kUsedMemory = 6,  // KiB for each processor
  kRequestedProcessors = 7,
  kRequestedMemory = 9,
  kUser = 11,
  kGroup = 12,
  kPrecedingJob = 16,
};
using Job = std::array<double, kFields>;

std::string_view take_word(std::string_view& text) {
  constexpr std::string_view kBlank = " \t\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  const auto word = text.substr(0, text.find_first_of(kBlank));
  text.remove_prefix(word.size());
  return word;
}

Job parse_job(std::string_view line, std::optional<Fault>& fault) {
  Job job{};
  for (size_t i = 0; i < kFields && !fault; ++i) {
    const auto word = take_word(line);
    if (word.empty())
      fault = Fault{"fewer than 18 fields", fmt::format("field {} ({}) and what follows is missing",
                                                        i + 1, kFieldNames[i])};
    else
      job[i] = number_or_fault(kFieldNames[i], word, -1e15, 1e15, fault);
  }
  if (!fault && !take_word(line).empty())
    fault = Fault{"more than 18 fields", "there is something behind field 18 (think time)"};
  return job;
}

double first_known(const Job& job, Field first, Field second) {
  return job[first] > 0 ? job[first] : job[second];
}

void check(double value, double max, Field field, std::optional<Fault>& fault) {
  if (fault || (value > 0 && value <= max)) return;
  const char* what = value <= 0 ? "is not known, or 0" : "is out of range";
  fault = Fault{fmt::format("{} {}", kFieldNames[field], what),
                fmt::format("field {} ({}): {} {}", static_cast<int>(field) + 1, kFieldNames[field],
                            value, what)};
}

std::string user_of(const Job& job) {
  if (job[kUser] >= 0) return fmt::format("user {:.0f}", job[kUser]);
  if (job[kGroup] >= 0) return fmt::format("group {:.0f}", job[kGroup]);
  return "unknown";
}

class JobReader {
 public:
  explicit JobReader(TraceBuilder& builder) : builder_(builder) {}

  void add(std::string_view line, const std::string& place) {
    std::optional<Fault> fault;
    const Job job = parse_job(line, fault);
    const double processors = first_known(job, kAllocatedProcessors, kRequestedProcessors);
    if (!fault && (job[kSubmitTime] < 0 || job[kSubmitTime] > 9e9))
      fault = Fault{"submit time is out of range",
                    fmt::format("field 2 (submit time): {} is out of range", job[kSubmitTime])};
    check(job[kRunTime], kMaxDurationSeconds, kRunTime, fault);
    check(processors, kMaxWidth, kAllocatedProcessors, fault);
    if (fault) return builder_.skip(fault->reason, place, fault->detail);
    Task task;
    task.arrival_ns = std::llround(job[kSubmitTime] * 1e9);
    task.operations = job[kRunTime] * kReferenceOperationsPerSecond;
    task.units = static_cast<uint32_t>(std::max(processors, 1.0));
    const double memory_kib = first_known(job, kUsedMemory, kRequestedMemory);
    if (memory_kib > 0)
      task.memory_bytes = static_cast<uint64_t>(std::min(memory_kib * 1024 * processors, 1e18));
    task.user = builder_.user(user_of(job));
    if (job[kPrecedingJob] > 0) ++depend_;
    if (job[kAllocatedProcessors] <= 0) ++requested_;
    builder_.add(task);
  }

  void tell() {
    if (requested_)
      builder_.derived(fmt::format("units of {} jobs: the processors they asked for", requested_));
    if (depend_)
      builder_.derived(
          fmt::format("arrival of {} jobs: their submit time, though they waited for a "
                      "preceding job",
                      depend_));
  }

 private:
  TraceBuilder& builder_;
  uint64_t depend_ = 0, requested_ = 0;
};

}  // namespace

Result<Trace> read_swf(const std::filesystem::path& path, const TraceOptions& options) {
  auto lines = LineReader::open(path, "trace");
  if (!lines) return tl::unexpected(lines.error());
  TraceBuilder builder("swf", path, options);
  JobReader reader(builder);
  for (;;) {
    const auto line = lines->next();
    if (!line) return tl::unexpected(line.error());
    if (!*line) break;
    const auto text = (*line)->substr(0, (*line)->find(';'));
    auto rest = text;
    if (!take_word(rest).empty()) reader.add(text, lines->place());
  }
  reader.tell();
  return std::move(builder).finish();
}

}  // namespace tierpilot::sim
