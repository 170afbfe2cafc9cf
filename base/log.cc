#include "base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdlib>

namespace tierpilot {

Status start_log(const std::string& program, const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off")
    return fail(ErrorCode::kInvalid,
                fmt::format("log level '{}' is unknown: use trace, debug, info, warning, error, "
                            "critical or off",
                            level));
  auto logger = spdlog::stderr_color_mt(program);
  logger->set_level(parsed);
  const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
  logger->set_pattern(journal ? "%l: %v" : "%Y-%m-%dT%H:%M:%S.%e %n %^%l%$: %v");
  spdlog::set_default_logger(std::move(logger));
  return {};
}

}  // namespace tierpilot
