#include "coordinator/policy_host/version_archive.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <system_error>

#include "base/log.h"
#include "policies/learning/byte_codec.h"
#include "policies/learning/envelope.h"
#include "policies/learning/saved_bytes.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

constexpr EnvelopeKind kAbout{"TPVERABT", 1, "description of a version of weights"};
constexpr EnvelopeKind kWeights{"TPVERWTS", 1, "version of weights"};

void put_interval(ByteWriter& out, const MeanInterval& interval) {
  out.put(interval.count);
  for (const double value : {interval.mean, interval.low, interval.high}) out.put(value);
}

MeanInterval get_interval(ByteReader& in) {
  MeanInterval interval;
  interval.count = in.get<uint64_t>();
  for (double* value : {&interval.mean, &interval.low, &interval.high}) *value = in.get<double>();
  return interval;
}

std::string encode(const WeightsVersion& version) {
  ByteWriter out;
  out.put(version.at_ms);
  out.put_text(version.why);
  out.put(version.experiences);
  out.put(version.batches);
  out.put(version.weights_version);
  put_interval(out, version.reward);
  put_interval(out, version.response);
  out.put_text(version.origin);
  return seal(kAbout, out.take());
}

Result<WeightsVersion> read_about(const fs::path& file) {
  const auto bytes = load_bytes(file);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorCode::kInvalid, fmt::format("'{}': {}", file.string(), why));
  };
  const auto body = unseal(kAbout, *bytes);
  if (!body) return wrong(body.error().message);
  ByteReader in(*body);
  WeightsVersion version;
  version.at_ms = in.get<int64_t>();
  version.why = in.get_text();
  version.experiences = in.get<uint64_t>();
  version.batches = in.get<uint64_t>();
  version.weights_version = in.get<uint64_t>();
  version.reward = get_interval(in);
  version.response = get_interval(in);
  if (!in.at_end()) version.origin = in.get_text();
  if (!in.ok() || !in.at_end()) return wrong("its length cannot be");
  return version;
}

// "12.about" -> 12; 0 for any other name.
uint64_t number_in(const fs::path& file) {
  const std::string stem = file.stem().string();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), number);
  const bool whole = error == std::errc() && end == stem.data() + stem.size();
  const auto kind = file.extension();
  return whole && (kind == ".about" || kind == ".weights") ? number : 0;
}

}  // namespace

VersionArchive::VersionArchive(fs::path folder, size_t keep)
    : folder_(std::move(folder)), keep_(keep) {}

fs::path VersionArchive::file(const std::string& policy, uint64_t number, const char* kind) const {
  return folder_ / (policy + ".versions") / fmt::format("{}.{}", number, kind);
}

Status VersionArchive::open(const std::string& policy) {
  if (folder_.empty()) return {};
  const fs::path folder = folder_ / (policy + ".versions");
  std::error_code error;
  fs::create_directories(folder, error);
  fs::directory_iterator files(folder, error);
  if (error) return fail_errno(error.value(), fmt::format("versions in '{}'", folder.string()));
  for (const auto& entry : files) {
    const uint64_t number = number_in(entry.path());
    // Numbers of damaged versions are not used again either.
    last_number_[policy] = std::max(last_number_[policy], number);
    if (number == 0 || entry.path().extension() != ".about") continue;
    auto version = read_about(entry.path());
    if (!version) {
      spdlog::error("a version of policy '{}' is left out: {}", policy, version.error().message);
      continue;
    }
    version->number = number;
    versions_[policy][number] = std::move(*version);
  }
  return {};
}

std::vector<WeightsVersion> VersionArchive::list(const std::string& policy) const {
  std::vector<WeightsVersion> listed;
  if (const auto known = versions_.find(policy); known != versions_.end())
    for (const auto& [number, version] : known->second) listed.push_back(version);
  return listed;
}

Result<WeightsVersion> VersionArchive::add(const std::string& policy, WeightsVersion version,
                                           std::string_view weights) {
  if (folder_.empty() || keep_ == 0)
    return fail(ErrorCode::kUnavailable, "versions of weights are not kept here");
  version.number = last_number_[policy] + 1;
  if (auto saved = save_bytes(file(policy, version.number, "weights"), seal(kWeights, weights));
      !saved)
    return tl::unexpected(saved.error());
  if (auto saved = save_bytes(file(policy, version.number, "about"), encode(version)); !saved)
    return tl::unexpected(saved.error());
  last_number_[policy] = version.number;
  versions_[policy][version.number] = version;
  while (versions_[policy].size() > keep_) drop_oldest(policy);
  return version;
}

void VersionArchive::drop_oldest(const std::string& policy) {
  auto& versions = versions_[policy];
  const uint64_t number = versions.begin()->first;
  versions.erase(versions.begin());
  std::error_code ignored;  // what cannot be removed is there again after a restart
  fs::remove(file(policy, number, "about"), ignored);
  fs::remove(file(policy, number, "weights"), ignored);
}

Result<std::string> VersionArchive::weights(const std::string& policy, uint64_t number) const {
  const auto known = versions_.find(policy);
  if (known == versions_.end() || !known->second.contains(number)) {
    std::string there;
    for (const auto& version : list(policy))
      there += fmt::format("{}{}", there.empty() ? "" : ", ", version.number);
    return fail(
        ErrorCode::kNotFound,
        fmt::format("policy '{}' has no {}version{}: there are {}", policy, number ? "" : "other ",
                    number ? fmt::format(" {}", number) : "", there.empty() ? "none yet" : there));
  }
  const fs::path name = file(policy, number, "weights");
  auto bytes = load_bytes(name);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto body = unseal(kWeights, *bytes);
  if (!body)
    return fail(ErrorCode::kInvalid, fmt::format("'{}': {}", name.string(), body.error().message));
  return std::string(*body);
}

}  // namespace tierpilot
