#include "coordinator/policy_host/saved_learner.h"

#include <fmt/format.h>

#include <system_error>

#include "base/log.h"
#include "policies/dqn/checkpoint.h"

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

Result<SavedLearner> refuse(const fs::path& file, const std::string& why) {
  const auto aside = set_aside(file);
  if (!aside) return tl::unexpected(aside.error());
  SavedLearner anew;
  anew.note =
      fmt::format("learning starts anew: {}; the file is kept as '{}'", why, aside->string());
  spdlog::error("{}", anew.note);
  return anew;
}

}  // namespace

fs::path checkpoint_file(const fs::path& state_dir) {
  return state_dir / "learner.checkpoint";
}

Result<SavedLearner> take_over_learner(const fs::path& state_dir, Trainer& trainer) {
  if (state_dir.empty()) return SavedLearner{};
  std::error_code error;
  fs::create_directories(state_dir, error);
  if (error)
    return fail_errno(error.value(),
                      fmt::format("state directory '{}' cannot be made", state_dir.string()));
  const fs::path file = checkpoint_file(state_dir);
  auto checkpoint = load_checkpoint(file);
  if (!checkpoint && checkpoint.error().code == ErrorCode::kNotFound) return SavedLearner{};
  if (!checkpoint && checkpoint.error().code != ErrorCode::kInvalid)
    return tl::unexpected(checkpoint.error());
  if (!checkpoint) return refuse(file, checkpoint.error().message);
  if (Status status = trainer.restore(*checkpoint); !status)
    return refuse(
        file, fmt::format("learner checkpoint '{}': {}", file.string(), status.error().message));
  return SavedLearner{std::move(checkpoint->pending), checkpoint->progress.decisions,
                      checkpoint->progress.experiences, ""};
}

}  // namespace tierpilot
