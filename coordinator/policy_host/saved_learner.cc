#include "coordinator/policy_host/saved_learner.h"

#include <fmt/format.h>

#include <system_error>

#include "base/log.h"
#include "policies/learning/saved_bytes.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

// Where the refused file lies now.
Result<fs::path> set_aside(const fs::path& file) {
  fs::path aside = file.string() + ".refused";
  for (int number = 2; fs::exists(aside); ++number)
    aside = fmt::format("{}.refused.{}", file.string(), number);
  std::error_code error;
  fs::rename(file, aside, error);
  if (error)
    return fail_errno(error.value(), fmt::format("'{}' cannot be set aside", file.string()));
  return aside;
}

fs::path origin_file(const fs::path& state_dir, const std::string& policy) {
  return state_dir / (policy + ".origin");
}

Result<std::string> read_origin(const fs::path& file) {
  auto origin = load_bytes(file);
  if (!origin && origin.error().code == ErrorCode::kNotFound)
    return std::string("not written down by the program that began");
  return origin;
}

Result<TakenOver> refuse(const fs::path& file, const std::string& why) {
  const auto aside = set_aside(file);
  if (!aside) return tl::unexpected(aside.error());
  TakenOver anew;
  anew.note =
      fmt::format("learning starts anew: {}; the file is kept as '{}'", why, aside->string());
  spdlog::error("{}", anew.note);
  return anew;
}

}  // namespace

fs::path checkpoint_file(const fs::path& state_dir, const std::string& policy) {
  return state_dir / (policy + ".checkpoint");
}

namespace {

Result<TakenOver> restored(const fs::path& state_dir, const std::string& policy, Learner& learner) {
  const fs::path file = checkpoint_file(state_dir, policy);
  const auto saved = load_bytes(file);
  if (!saved && saved.error().code == ErrorCode::kNotFound) return TakenOver{};
  if (!saved && saved.error().code != ErrorCode::kInvalid)
    return fail(saved.error().code, "learner checkpoint " + saved.error().message);
  if (!saved) return refuse(file, "learner checkpoint " + saved.error().message);
  if (Status status = learner.restore(*saved); !status)
    return refuse(
        file, fmt::format("learner checkpoint '{}': {}", file.string(), status.error().message));
  return TakenOver{.found = true};
}

}  // namespace

Result<TakenOver> take_over_learner(const fs::path& state_dir, const std::string& policy,
                                    const std::string& beginning, Learner& learner) {
  if (state_dir.empty()) return TakenOver{.origin = beginning};
  std::error_code error;
  fs::create_directories(state_dir, error);
  if (error)
    return fail_errno(error.value(),
                      fmt::format("state directory '{}' cannot be made", state_dir.string()));
  auto taken = restored(state_dir, policy, learner);
  if (!taken) return taken;
  const fs::path file = origin_file(state_dir, policy);
  taken->origin = beginning;
  if (!taken->found) {
    auto written = save_bytes(file, beginning);
    if (written) return taken;
    if (written.error().code != ErrorCode::kExhausted) return tl::unexpected(written.error());
    // Where the disk is full, tasks that were acknowledged are still served.
    spdlog::error("what learning begins from is not written down: {}", written.error().message);
    return taken;
  }
  auto origin = read_origin(file);
  if (!origin) return tl::unexpected(origin.error());
  taken->origin = std::move(*origin);
  return taken;
}

}  // namespace tierpilot
