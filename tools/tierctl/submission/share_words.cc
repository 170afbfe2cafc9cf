#include "tools/tierctl/submission/share_words.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/bytes.h"
#include "base/content_digest.h"
#include "base/files/open_to_read.h"
#include "tools/cluster/duration.h"

namespace tierpilot::tierctl {
namespace {

constexpr uint32_t kWhole = 1000;
constexpr int64_t kLeastPromise_ms = 1000;
constexpr size_t kMostCardBytes = 64 * 1024;

struct ParsedShare {
  uint32_t milli = 0;
  uint64_t memory_bytes = 0;
};

Result<ParsedShare> parse_share(const std::string& words) {
  const size_t colon = words.find(':');
  const auto milli = words.substr(0, colon);
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorCode::kInvalid, fmt::format("share '{}': {}", words, why));
  };
  ParsedShare share;
  if (milli != "auto") {
    const auto [end, error] =
        std::from_chars(milli.data(), milli.data() + milli.size(), share.milli);
    if (error != std::errc() || end != milli.data() + milli.size() || share.milli == 0 ||
        share.milli > kWhole)
      return wrong(fmt::format("write auto, or thousandths of a unit from 1 to {}", kWhole));
  }
  if (colon == words.npos) return share;
  const auto bytes = parse_bytes(words.substr(colon + 1));
  if (!bytes) return wrong("behind ':' " + bytes.error().message);
  if (*bytes == 0)
    return wrong("no memory is no share: write a size such as 2GiB, or leave ':' out");
  share.memory_bytes = *bytes;
  return share;
}

Result<std::string> read_card(const std::string& path) {
  auto text = read_small_file(path, kMostCardBytes);
  if (!text) return fail(text.error().code, "model card: " + text.error().message);
  // The coordinator would take it for none.
  if (text->empty())
    return fail(ErrorCode::kInvalid, fmt::format("model card: '{}' is empty", path));
  return text;
}

}  // namespace

Result<int64_t> parse_promise_ms(std::string_view text) {
  auto promise_ms = parse_duration_ms(text);
  if (promise_ms && *promise_ms < kLeastPromise_ms)
    return fail(
        ErrorCode::kInvalid,
        fmt::format("'{}' is too short for a promise: ask for 1 s or more, or for none", text));
  return promise_ms;
}

std::string share_fault(const std::string& words) {
  const auto parsed = parse_share(words);
  return parsed ? "" : parsed.error().message;
}

Status apply(const ShareWords& words, TaskSpec& task) {
  auto& share = task.share;
  if (words.share.empty()) {
    if (words.job_class.empty() && words.promise_ms == 0 && words.card_file.empty() &&
        words.card.empty() && !words.promise_on_trial)
      return {};
    return fail(
        ErrorCode::kInvalid,
        "a class, a promise and a model card are for a task with a share: say --share auto");
  }
  share.wanted = true;
  const auto parsed = parse_share(words.share);
  if (!parsed) return tl::unexpected(parsed.error());
  share.milli = parsed->milli;
  if (parsed->memory_bytes > 0 && task.memory_bytes > 0)
    return fail(ErrorCode::kInvalid,
                fmt::format("share '{}': the memory is given twice", words.share));
  if (parsed->memory_bytes > 0) task.memory_bytes = parsed->memory_bytes;
  share.latency_sensitive =
      words.job_class == "latency-sensitive" || (words.job_class.empty() && words.promise_ms > 0);
  if (words.promise_ms > 0 && !share.latency_sensitive)
    return fail(ErrorCode::kInvalid, "a promise is for the class latency-sensitive");
  share.promise_ms = words.promise_ms;
  share.promise_on_trial = words.promise_on_trial;
  share.estimate_ms = std::exchange(task.gang.estimate_ms, 0);
  share.model_card = words.card;
  if (words.card_file.empty()) return {};
  auto card = read_card(words.card_file);
  if (!card) return tl::unexpected(card.error());
  share.model_card = std::move(*card);
  return {};
}

std::string name_by_command(const std::vector<std::string>& argv) {
  std::string command;
  for (const auto& word : argv) command.append(word).push_back('\0');
  return fmt::format("{}-{:.8}", argv.front(), to_string(digest_of(command)));
}

}  // namespace tierpilot::tierctl
