#include "tools/lab/predictor/predictor_file.h"

#include <fmt/format.h>

#include "base/files/open_to_read.h"
#include "tools/cluster/program.h"

namespace tierpilot::lab {

Result<sharing::JobModel> read_job_model_file(std::string path) {
  constexpr size_t kMostBytes = 64 << 20;
  if (path.empty()) {
    auto shipped = find_data_file("job-predictor.json");
    if (!shipped) return tl::unexpected(shipped.error());
    path = shipped->string();
  }
  const auto text = read_small_file(path, kMostBytes);
  if (!text) return tl::unexpected(text.error());
  auto model = sharing::read_job_model(*text);
  if (!model) model.error().message = fmt::format("'{}': {}", path, model.error().message);
  return model;
}

}  // namespace tierpilot::lab
