#include "policies/sharing/predict/gpu_kinds.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/table/cell.h"

namespace tierpilot::sharing {
namespace {

// Of a K80 one of its two processors. NVIDIA's data sheets and CUDA's table of compute
// capabilities.
const std::vector<GpuFeatures>& published() {
  constexpr uint64_t kGib = 1ull << 30;
  static const std::vector<GpuFeatures> kPublished{
      {"k80", 3.7, 12 * kGib, 2496, 875, 2505, 384},
      {"p100", 6.0, 16 * kGib, 3584, 1328, 715, 4096},
      {"v100", 7.0, 32 * kGib, 5120, 1530, 877, 4096},
      {"rtx6000", 7.5, 24 * kGib, 4608, 1770, 7001, 384}};
  return kPublished;
}

Status set_field(GpuFeatures& gpu, const std::string& name, const std::string& value) {
  if (name == "name") {
    gpu.name = value;
    return {};
  }
  const auto number = parse_number(value);
  if (!number || *number < 0 || *number > 1e15)
    return fail(ErrorCode::kInvalid, fmt::format("GPU: '{}' is no figure of {}", value, name));
  const auto whole = static_cast<uint32_t>(std::min(*number, 4e9));
  if (name == "compute_capability")
    gpu.compute_capability = *number;
  else if (name == "memory_bytes")
    gpu.memory_bytes = static_cast<uint64_t>(*number);
  else if (name == "cores")
    gpu.cores = whole;
  else if (name == "sm_clock_mhz")
    gpu.sm_clock_mhz = whole;
  else if (name == "memory_clock_mhz")
    gpu.memory_clock_mhz = whole;
  else if (name == "bus_width_bits")
    gpu.bus_width_bits = whole;
  else
    return fail(ErrorCode::kInvalid,
                fmt::format("GPU: '{}' is no feature: name, cores, sm_clock_mhz, memory_clock_mhz, "
                            "bus_width_bits, compute_capability and memory_bytes are",
                            name));
  return {};
}

}  // namespace

const GpuFeatures* published_gpu(std::string_view name) {
  const auto found = std::find_if(published().begin(), published().end(),
                                  [&](const GpuFeatures& gpu) { return gpu.name == name; });
  return found == published().end() ? nullptr : &*found;
}

Result<GpuFeatures> parse_gpu(const std::string& text, const std::vector<GpuFeatures>& measured) {
  std::string names;
  for (const auto& gpu : measured) {
    if (gpu.name == text) return gpu;
    names += (names.empty() ? "" : ", ") + gpu.name;
  }
  if (text.find('=') == text.npos)
    return fail(ErrorCode::kInvalid,
                fmt::format("GPU '{}' was not measured, {}: give its features, as cores=5120,...",
                            text, names.empty() ? "and no other was" : "only " + names));
  GpuFeatures gpu;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto word = text.substr(begin, end - begin);
    const size_t equals = word.find('=');
    if (equals == word.npos)
      return fail(ErrorCode::kInvalid, fmt::format("GPU: '{}' is not NAME=VALUE", word));
    if (auto set = set_field(gpu, word.substr(0, equals), word.substr(equals + 1)); !set)
      return tl::unexpected(set.error());
    begin = end + 1;
  }
  return gpu;
}

}  // namespace tierpilot::sharing
