#include "daemon/agent/units/health_checks.h"

#include <fmt/format.h>

#include <chrono>

#include "base/log.h"
#include "base/text/printable.h"

namespace tierpilot::agent {
namespace {

constexpr size_t kMostSaidBytes = 200;  // of a command's answer that are told

// The first line that says something, as text for people.
std::string first_line(const std::string& output) {
  const size_t begin = output.find_first_not_of('\n');
  if (begin == output.npos) return {};
  return printable(output.substr(begin, output.find('\n', begin) - begin), kMostSaidBytes);
}

std::string what_is_wrong(const ProgramEnd& end) {
  if (end.code == 0) return {};
  const auto said = first_line(end.output);
  return fmt::format("health command ended with {}{}{}", end.code, said.empty() ? "" : ": ", said);
}

}  // namespace

HealthChecks::HealthChecks(std::vector<HealthCheck> checks, Options options, Hooks hooks)
    : checks_(std::move(checks)), options_(options), hooks_(std::move(hooks)) {
  thread_ = std::thread([this] { run(); });
}

HealthChecks::~HealthChecks() {
  stop_ = true;
  thread_.join();
}

void HealthChecks::run() {
  while (!stop_) {
    for (const auto& each : checks_)
      if (!stop_) check(each);
    pause();
  }
}

void HealthChecks::check(const HealthCheck& check) {
  const auto tell = [&](std::string reason) {
    hooks_.post([found = hooks_.found, unit = check.unit, reason = std::move(reason)] {
      found(unit, reason);
    });
  };
  if (left_[check.unit].is_there())
    return tell("an earlier health command hangs and cannot be killed");
  const auto end = run_program(check.call, options_.timeout_ms, stop_, left_[check.unit]);
  if (stop_) return;
  if (end) return tell(what_is_wrong(*end));
  if (end.error().code == ErrorCode::kTimeout)
    return tell(fmt::format("health command did not end within {} ms", options_.timeout_ms));
  // That it cannot be started says nothing of the unit, which stays what it was.
  spdlog::warn("unit {} is not checked: {}", check.unit, end.error().message);
}

void HealthChecks::pause() {
  constexpr std::chrono::milliseconds kStep{100};
  for (auto left = std::chrono::milliseconds(options_.period_ms); left.count() > 0 && !stop_;
       left -= kStep)
    std::this_thread::sleep_for(std::min(left, kStep));
}

}  // namespace tierpilot::agent
