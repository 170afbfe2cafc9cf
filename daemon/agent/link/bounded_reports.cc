#include "daemon/agent/link/bounded_reports.h"

#include <map>
#include <utility>

namespace tierpilot::agent {
namespace {

// At least what they take in a message.
constexpr size_t kReportBytes = 256, kMeasureBytes = 64;

size_t bytes_of(const JobReport& report) {
  size_t bytes = kReportBytes;
  for (const auto& [name, value] : report.progress.measures) bytes += kMeasureBytes + name.size();
  return bytes;
}

size_t bytes_of(const std::vector<JobReport>& reports) {
  size_t bytes = 0;
  for (const auto& report : reports) bytes += bytes_of(report);
  return bytes;
}

std::vector<JobReport> newest_of_each(std::vector<JobReport> reports) {
  std::map<std::pair<AttemptId, bool>, size_t> newest;  // and whether it tells of use
  for (size_t i = 0; i < reports.size(); ++i)
    newest[{reports[i].attempt, reports[i].cpu_ns > 0}] = i;
  std::vector<JobReport> kept;
  for (const auto& [_, index] : newest) kept.push_back(std::move(reports[index]));
  return kept;
}

}  // namespace

std::vector<JobReport> bounded(std::vector<JobReport> reports, size_t most_bytes) {
  if (bytes_of(reports) <= most_bytes) return reports;
  reports = newest_of_each(std::move(reports));
  size_t used = 0, fit = 0;
  for (; fit < reports.size(); ++fit) {
    auto& report = reports[fit];
    // The rest have to fit, too.
    const size_t least_of_rest = (reports.size() - fit - 1) * kReportBytes;
    if (used + bytes_of(report) + least_of_rest > most_bytes) report.progress.measures.clear();
    used += bytes_of(report);
    if (used > most_bytes) break;
  }
  reports.resize(fit);
  return reports;
}

}  // namespace tierpilot::agent
