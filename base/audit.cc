#include "base/audit.h"

#include "base/log.h"
#include "base/text/printable.h"

namespace tierpilot {
namespace {

constexpr size_t kMostBytes = 500;

// Beside the log's level, to where it goes.
spdlog::logger& audit_log() {
  static const auto logger = [] {
    const auto& sinks = spdlog::default_logger()->sinks();
    auto made = std::make_shared<spdlog::logger>(spdlog::default_logger()->name(), sinks.begin(),
                                                 sinks.end());
    made->set_level(spdlog::level::info);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *logger;
}

}  // namespace

void audit(std::string_view text) {
  if (spdlog::default_logger()->level() == spdlog::level::off) return;
  audit_log().info("audit: {}", printable(text, kMostBytes));
}

}  // namespace tierpilot
