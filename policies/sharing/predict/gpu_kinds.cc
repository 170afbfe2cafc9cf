#include "policies/sharing/predict/gpu_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/table/cell.h"

namespace tierpilot::sharing {
namespace {

// Of a K80 and an M60 one of the two processors, of others the usual board. NVIDIA's data sheets
// and CUDA's table of compute capabilities; clocks of memory as drivers tell them.
const std::vector<GpuFeatures>& published() {
  constexpr uint64_t kGib = 1ull << 30;
  static const std::vector<GpuFeatures> kPublished{
      {"k80", 3.7, 12 * kGib, 2496, 875, 2505, 384},
      {"m40", 5.2, 24 * kGib, 3072, 1114, 3004, 384},
      {"m60", 5.2, 8 * kGib, 2048, 1178, 2505, 256},
      {"p4", 6.1, 8 * kGib, 2560, 1114, 3003, 256},
      {"p40", 6.1, 24 * kGib, 3840, 1531, 3615, 384},
      {"p100", 6.0, 16 * kGib, 3584, 1328, 715, 4096},
      {"gtx1080", 6.1, 8 * kGib, 2560, 1733, 5005, 256},
      {"gtx1080ti", 6.1, 11 * kGib, 3584, 1582, 5505, 352},
      {"titanxp", 6.1, 12 * kGib, 3840, 1582, 5705, 384},
      {"v100", 7.0, 32 * kGib, 5120, 1530, 877, 4096},
      {"titanv", 7.0, 12 * kGib, 5120, 1455, 850, 3072},
      {"t4", 7.5, 16 * kGib, 2560, 1590, 5001, 256},
      {"rtx2080ti", 7.5, 11 * kGib, 4352, 1545, 7000, 352},
      {"titanrtx", 7.5, 24 * kGib, 4608, 1770, 7001, 384},
      {"rtx6000", 7.5, 24 * kGib, 4608, 1770, 7001, 384},
      {"rtx8000", 7.5, 48 * kGib, 4608, 1770, 7001, 384},
      {"a100", 8.0, 40 * kGib, 6912, 1410, 1215, 5120},
      {"a30", 8.0, 24 * kGib, 3584, 1440, 1215, 3072},
      {"a10", 8.6, 24 * kGib, 9216, 1695, 6251, 384},
      {"a40", 8.6, 48 * kGib, 10752, 1740, 7251, 384},
      {"a4000", 8.6, 16 * kGib, 6144, 1560, 7001, 256},
      {"a5000", 8.6, 24 * kGib, 8192, 1695, 8001, 384},
      {"a6000", 8.6, 48 * kGib, 10752, 1800, 8001, 384},
      {"rtx3070", 8.6, 8 * kGib, 5888, 1725, 7001, 256},
      {"rtx3080", 8.6, 10 * kGib, 8704, 1710, 9501, 320},
      {"rtx3090", 8.6, 24 * kGib, 10496, 1695, 9751, 384},
      {"l4", 8.9, 24 * kGib, 7424, 2040, 6251, 192},
      {"l40", 8.9, 48 * kGib, 18176, 2490, 9001, 384},
      {"l40s", 8.9, 48 * kGib, 18176, 2520, 9001, 384},
      {"rtx6000ada", 8.9, 48 * kGib, 18176, 2505, 10001, 384},
      {"rtx4090", 8.9, 24 * kGib, 16384, 2520, 10501, 384},
      {"h100", 9.0, 80 * kGib, 16896, 1980, 2619, 5120},
      {"h200", 9.0, 141 * kGib, 16896, 1980, 3201, 6144}};
  return kPublished;
}

// "Quadro RTX 6000": quadro, rtx, 6000.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte))
      words.back() += static_cast<char>(std::tolower(byte));
    else if (!words.back().empty())
      words.emplace_back();
  }
  return words;
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

// The longest name that one to three of its words make up.
const GpuFeatures* published_gpu(std::string_view name) {
  constexpr size_t kMostLetters = 200, kMostWords = 3;
  const auto words = words_of(name.substr(0, kMostLetters));
  const GpuFeatures* found = nullptr;
  for (size_t begin = 0; begin < words.size(); ++begin) {
    std::string joined;
    for (size_t i = begin; i < std::min(begin + kMostWords, words.size()); ++i) {
      joined += words[i];
      for (const auto& gpu : published())
        if (gpu.name == joined && (!found || joined.size() > found->name.size())) found = &gpu;
    }
  }
  return found;
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
