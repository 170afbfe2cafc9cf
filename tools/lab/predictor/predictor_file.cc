#include "tools/lab/predictor/predictor_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>

#include "tools/cluster/program.h"

namespace tierpilot::lab {

Result<std::string> read_whole_file(const std::string& path, size_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail_errno(errno, fmt::format("'{}' cannot be opened", path));
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.bad()) return fail(ErrorCode::kIo, fmt::format("'{}' cannot be read", path));
  if (text.size() > most_bytes)
    return fail(ErrorCode::kInvalid, fmt::format("'{}' is larger than {} bytes", path, most_bytes));
  return text;
}

Result<sharing::JobModel> read_job_model_file(std::string path) {
  constexpr size_t kMostBytes = 64 << 20;
  if (path.empty()) {
    auto shipped = find_data_file("job-predictor.json");
    if (!shipped) return tl::unexpected(shipped.error());
    path = shipped->string();
  }
  const auto text = read_whole_file(path, kMostBytes);
  if (!text) return tl::unexpected(text.error());
  auto model = sharing::read_job_model(*text);
  if (!model) model.error().message = fmt::format("'{}': {}", path, model.error().message);
  return model;
}

}  // namespace tierpilot::lab
