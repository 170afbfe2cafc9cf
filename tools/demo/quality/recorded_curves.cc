#include "tools/demo/quality/recorded_curves.h"

#include <fmt/format.h>

#include <fstream>

namespace tierpilot::demo {

std::string curve_csv(const TrainingSeries& job, uint64_t seed) {
  std::string text = "family,run,iteration,loss,seconds\n";
  for (const auto& point : job.points)
    text += fmt::format("{0},seed {1},{2:.0f},{3:.9g},{4:.3f}\n", job.name, seed, point.iteration,
                        point.loss, point.at_s - job.points.front().at_s);
  return text;
}

Status write_curves(const std::filesystem::path& folder, const std::vector<TrainingSeries>& jobs,
                    uint64_t seed) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail_errno(error.value(), fmt::format("'{}': the folder", folder.native()));
  for (const auto& job : jobs) {
    const auto path = folder / fmt::format("{}-{}.csv", job.name, seed);
    std::ofstream file(path);
    file << curve_csv(job, seed);
    if (!file.flush())
      return fail_errno(errno, fmt::format("'{}' cannot be written", path.native()));
  }
  return {};
}

}  // namespace tierpilot::demo
