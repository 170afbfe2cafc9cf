#include "tools/lab/predictor/predictor_file.h"

#include <fmt/format.h>

#include <iterator>

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

Result<sharing::Installed> read_installed() {
  auto model = read_job_model_file({});
  if (!model) return tl::unexpected(model.error());
  sharing::Installed installed{std::make_shared<const sharing::JobModel>(std::move(*model)), {}};
  for (const char* name : {"trainings.csv", "trainings-h100.csv", "trainings-h200.csv"}) {
    const auto path = find_data_file(name);
    if (!path) continue;
    auto table = CsvTable::open(*path);
    if (!table) return tl::unexpected(table.error());
    auto read = sharing::read_trainings(*table);
    if (!read) return tl::unexpected(read.error());
    std::move(read->rows.begin(), read->rows.end(), std::back_inserter(installed.tables));
  }
  return installed;
}

}  // namespace tierpilot::lab
