#include "tools/trainer/state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/content_digest.h"
#include "policies/learning/byte_codec.h"
#include "policies/learning/saved_bytes.h"

namespace tierpilot::trainer {
namespace {

// The digest's digits and the content, whose digest it is, stand behind it.
constexpr std::string_view kMagic = "tierpilot-trainer state 1\n";
constexpr size_t kDigestDigits = 32;

tl::unexpected<Error> unfit(const std::filesystem::path& file, const std::string& why) {
  return fail(ErrorCode::kInvalid,
              fmt::format("the saved state '{}' is of no use: {}", file.string(), why));
}

}  // namespace

Status save_state(const std::filesystem::path& file, const std::string& training,
                  const TrainingState& state) {
  ByteWriter writer;
  writer.put_text(training);
  writer.put<uint64_t>(state.step);
  writer.put_all<float>(state.weights);
  writer.put_all<float>(state.velocity);
  const auto content = writer.take();
  return save_bytes(file, fmt::format("{}{}{}", kMagic, to_string(digest_of(content)), content));
}

Result<TrainingState> load_state(const std::filesystem::path& file, const std::string& training,
                                 size_t weights) {
  const auto bytes = load_bytes(file);
  if (!bytes)
    return fail(bytes.error().code, "the saved state cannot be read: " + bytes.error().message);
  if (!bytes->starts_with(kMagic)) return unfit(file, "it was not written by tierpilot-trainer");
  const auto behind = std::string_view(*bytes).substr(kMagic.size());
  const auto content = behind.substr(std::min(kDigestDigits, behind.size()));
  const auto digest = parse_content_digest(behind.substr(0, kDigestDigits));
  ByteReader reader(content);
  const auto saved = reader.get_text();
  TrainingState state{.step = reader.get<uint64_t>(), .weights = {}, .velocity = {}};
  state.weights = reader.get_all<float>();
  state.velocity = reader.get_all<float>();
  if (digest != digest_of(content) || !reader.ok() || !reader.at_end())
    return unfit(file, "it is damaged; begin from an older one, or anew");
  if (saved != training || state.weights.size() != weights || state.velocity.size() != weights)
    return unfit(file, fmt::format("it is of the training '{}', and this one is '{}'",
                                   saved.substr(0, 200), training));
  return state;
}

}  // namespace tierpilot::trainer
