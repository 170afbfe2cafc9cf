#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "swap/tiers/tier_list.h"

namespace tierpilot::swap {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr int64_t kProbeBytes = 16 << 20, kSmallBytes = 4096;
constexpr int kRounds = 3, kSmallReads = 15;

template <class Work>
int64_t nanoseconds(const Work& work) {
  const auto begin = SteadyClock::now();
  work();
  const auto took =
      std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now() - begin);
  return std::max<int64_t>(took.count(), 1);
}

// `data` has kProbeBytes of the device. Medians: the first write of a file also finds room for it.
// A tier that cannot take all that is measured with is measured with what it takes.
Status measure(MeasuredTier& measured, Copier& copier, std::byte* data) {
  auto& tier = *measured.tier;
  const auto bytes = std::min(kProbeBytes, tier.capacity_bytes());
  if (bytes < kSmallBytes)
    return fail(ErrorCode::kExhausted,
                fmt::format("tier '{}': there is room for {} bytes, and {} are the least",
                            tier.name(), bytes, kSmallBytes));
  Status status;
  std::array<int64_t, kRounds> writes{}, reads{};
  for (int round = 0; round < kRounds; ++round) {
    writes[round] = nanoseconds([&] { status = copier.out(tier, 0, data, bytes); });
    if (!status) return status;
    reads[round] = nanoseconds([&] { status = copier.in(tier, 0, data, bytes); });
    if (!status) return status;
  }
  std::array<int64_t, kSmallReads> small{};
  const auto steps = bytes / kSmallBytes;
  for (int at = 0; at < kSmallReads; ++at) {
    const auto offset = (at * 997) % steps * kSmallBytes;
    small[at] = nanoseconds([&] { status = copier.in(tier, offset, data, kSmallBytes); });
    if (!status) return status;
  }
  std::sort(writes.begin(), writes.end());
  std::sort(reads.begin(), reads.end());
  std::sort(small.begin(), small.end());
  measured.write_gb_per_s = static_cast<double>(bytes) / static_cast<double>(writes[kRounds / 2]);
  measured.read_gb_per_s = static_cast<double>(bytes) / static_cast<double>(reads[kRounds / 2]);
  measured.latency_ns = small[kSmallReads / 2];
  return {};
}

double seconds_a_gigabyte(const MeasuredTier& tier) {
  return 1 / tier.read_gb_per_s + 1 / tier.write_gb_per_s;
}

}  // namespace

Link MeasuredTier::link() const {
  return {.gb_per_s = std::min(read_gb_per_s, write_gb_per_s), .latency_ns = latency_ns};
}

Result<std::vector<MeasuredTier>> measured(std::vector<std::unique_ptr<Tier>> tiers,
                                           ComputeDevice& device) {
  const auto data = device.take(kProbeBytes);
  if (!data) return tl::unexpected(data.error());
  const auto copier = device.copier();
  std::vector<MeasuredTier> good;
  std::string reasons;
  for (auto& tier : tiers) {
    MeasuredTier one{.tier = std::move(tier)};
    if (auto status = measure(one, *copier, *data); !status)
      reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", status.error().message);
    else
      good.push_back(std::move(one));
  }
  device.give(*data);
  device.unpin();  // before a tier that is left out ends
  if (good.empty())
    return fail(ErrorCode::kUnavailable,
                "no tier can be used: " + reasons +
                    "; name a folder on a disk with room, and one that takes what is written");
  std::stable_sort(good.begin(), good.end(), [](const auto& a, const auto& b) {
    return seconds_a_gigabyte(a) < seconds_a_gigabyte(b);
  });
  return good;
}

double memory_gb_per_s() {
  std::vector<std::byte> from(kProbeBytes, std::byte{1}), to(kProbeBytes, std::byte{2});
  std::array<int64_t, kRounds> times{};
  for (auto& time : times) {
    time = nanoseconds([&] {
      std::memcpy(to.data(), from.data(), from.size());
      asm volatile("" : : "r"(to.data()) : "memory");
    });
  }
  std::sort(times.begin(), times.end());
  return static_cast<double>(kProbeBytes) / static_cast<double>(times[kRounds / 2]);
}

}  // namespace tierpilot::swap
