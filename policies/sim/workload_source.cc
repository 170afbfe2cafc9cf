#include "policies/sim/workload_source.h"

#include <fmt/format.h>

#include <memory>

#include "policies/sim/generator.h"

namespace tierpilot::sim {
namespace {

Result<WorkloadSource> generated(const std::string& path) {
  auto options = read_generator_options(path);
  if (!options) return tl::unexpected(options.error());
  auto shared = std::make_shared<const GeneratorOptions>(std::move(*options));
  return WorkloadSource{[shared](const ClusterSpec& cluster, uint64_t seed) -> Result<Workload> {
                          return generate(*shared, cluster, seed);
                        },
                        std::nullopt};
}

}  // namespace

Result<WorkloadSource> open_workload(const std::string& text) {
  if (!text.starts_with("trace:")) return generated(text);
  return fail(ErrorCode::kInvalid,
              fmt::format("workload '{}': there is no such kind of trace", text));
}

}  // namespace tierpilot::sim
