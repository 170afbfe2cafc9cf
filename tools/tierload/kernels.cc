#include "tools/tierload/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace tierpilot::tierload {
namespace {

__extension__ using Wide = unsigned __int128;

// Integer operations of one step of `gather`: the splitmix64 index and the add, each 64-bit
// operation counted as one.
constexpr double kIntsPerGather = 9;

std::span<const uint32_t> words_of(const Region& region) {
  return {reinterpret_cast<const uint32_t*>(region.data), region.bytes / 4};
}
std::span<uint32_t> writable_words_of(const Region& region) {
  return {reinterpret_cast<uint32_t*>(region.data), region.bytes / 4};
}
uint64_t words_in(uint64_t bytes) {
  return bytes / 4;
}

float unit_float(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

uint64_t sum_words(std::span<const uint32_t> words) {
  uint64_t sum = 0;
  for (const uint32_t word : words) sum += word;
  return sum;
}

// Steele, Lea and Flood: Fast Splittable Pseudorandom Number Generators (OOPSLA 2014).
uint64_t splitmix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Runs `work` once per pass and dataset; it gives a checksum that is summed.
template <class Work>
KernelResult for_each_region(std::span<const Region> regions, const KernelParameters& parameters,
                             Work work) {
  KernelResult result;
  for (uint32_t pass = 0; pass < parameters.passes; ++pass)
    for (const Region& region : regions) result.checksum += work(region, pass, result);
  return result;
}

KernelResult run_sum(std::span<const Region> regions, const KernelParameters& parameters) {
  return for_each_region(regions, parameters, [](const Region& region, uint32_t, KernelResult& r) {
    r.read_bytes += region.bytes;
    return sum_words(words_of(region));
  });
}

KernelResult run_gather(std::span<const Region> regions, const KernelParameters& parameters) {
  return for_each_region(regions, parameters,
                         [&](const Region& region, uint32_t pass, KernelResult& r) {
                           const auto words = words_of(region);
                           const uint64_t stream = splitmix64(parameters.seed + pass);
                           uint64_t sum = 0;
                           for (uint64_t i = 0; i < parameters.size; ++i)
                             // Multiply-high maps the hash to [0, words) without a division (Lemire
                             // 2019).
                             sum += words[static_cast<size_t>(
                                 (static_cast<Wide>(splitmix64(stream + i)) * words.size()) >> 64)];
                           r.read_bytes += parameters.size * 4;
                           return sum;
                         });
}

KernelResult run_update(std::span<const Region> regions, const KernelParameters& parameters) {
  const auto addend = static_cast<uint32_t>(parameters.seed);
  return for_each_region(regions, parameters, [=](const Region& region, uint32_t, KernelResult& r) {
    uint64_t sum = 0;
    for (uint32_t& word : writable_words_of(region)) {
      word = word * 2654435761u + addend;
      sum += word;
    }
    r.read_bytes += region.bytes;
    r.written_bytes += region.bytes;
    return sum;
  });
}

// Fills the last dataset with the words of the others, repeated as needed.
KernelResult run_copy(std::span<const Region> regions, const KernelParameters& parameters) {
  const auto target = writable_words_of(regions.back());
  KernelResult result;
  for (uint32_t pass = 0; pass < parameters.passes; ++pass) {
    size_t done = 0;
    for (size_t source = 0; done < target.size(); source = (source + 1) % (regions.size() - 1)) {
      const auto from = words_of(regions[source]);
      const size_t count = std::min(from.size(), target.size() - done);
      std::memcpy(target.data() + done, from.data(), count * 4);
      done += count;
    }
    result.read_bytes += target.size() * 4;
    result.written_bytes += target.size() * 4;
    result.checksum += sum_words(target);
  }
  return result;
}

KernelResult run_sort(std::span<const Region> regions, const KernelParameters& parameters) {
  std::vector<uint32_t> keys;
  return for_each_region(regions, parameters, [&](const Region& region, uint32_t, KernelResult& r) {
    uint64_t sum = 0;
    for (auto rest = words_of(region); !rest.empty();) {
      const size_t count = std::min<size_t>(parameters.size, rest.size());
      keys.assign(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(count));
      rest = rest.subspan(count);
      std::sort(keys.begin(), keys.end());
      for (size_t i = 0; i < count; ++i) sum += (i + 1) * keys[i];
    }
    r.read_bytes += region.bytes;
    return sum;
  });
}

double squares(std::span<const uint32_t> words) {
  constexpr size_t kLanes = 16, kBlock = 1 << 14;  // floats stay exact enough within a block
  double total = 0;
  while (!words.empty()) {
    const auto block = words.first(std::min(kBlock, words.size()));
    words = words.subspan(block.size());
    std::array<float, kLanes> lanes{};
    size_t i = 0;
    for (; i + kLanes <= block.size(); i += kLanes)
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const float x = unit_float(block[i + lane]);
        lanes[lane] += x * x;
      }
    for (; i < block.size(); ++i) lanes[0] += unit_float(block[i]) * unit_float(block[i]);
    for (const float lane : lanes) total += lane;
  }
  return total;
}

KernelResult run_norm(std::span<const Region> regions, const KernelParameters& parameters) {
  double total = 0;
  auto result =
      for_each_region(regions, parameters, [&](const Region& region, uint32_t, KernelResult& r) {
        total += squares(words_of(region));
        r.read_bytes += region.bytes;
        return uint64_t{0};
      });
  result.checksum = std::bit_cast<uint64_t>(total);
  return result;
}

// c += a * b for row-major n x n matrices.
void multiply_add(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& c,
                  size_t n) {
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < n; ++k) {
      const float factor = a[i * n + k];
      const float* row = &b[k * n];
      float* out = &c[i * n];
      for (size_t j = 0; j < n; ++j) out[j] += factor * row[j];
    }
}

// Walks a dataset as pairs of n x n matrices and multiplies each pair.
KernelResult run_matmul(std::span<const Region> regions, const KernelParameters& parameters) {
  const size_t n = parameters.size, words = n * n;
  std::vector<float> a(words), b(words), c(words);
  double total = 0;
  auto result =
      for_each_region(regions, parameters, [&](const Region& region, uint32_t, KernelResult& r) {
        for (auto rest = words_of(region); rest.size() >= 2 * words;
             rest = rest.subspan(2 * words)) {
          std::transform(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(words), a.begin(),
                         unit_float);
          std::transform(rest.begin() + static_cast<ptrdiff_t>(words),
                         rest.begin() + static_cast<ptrdiff_t>(2 * words), b.begin(), unit_float);
          std::fill(c.begin(), c.end(), 0.0f);
          multiply_add(a, b, c, n);
          for (const float value : c) total += value;
          r.read_bytes += 8 * words;
        }
        return uint64_t{0};
      });
  result.checksum = std::bit_cast<uint64_t>(total);
  return result;
}

Operations per_pass(double floats, double ints, const KernelParameters& parameters) {
  return {floats * parameters.passes, ints * parameters.passes};
}
double as_double(uint64_t value) {
  return static_cast<double>(value);
}

Operations estimate_sum(uint64_t bytes, const KernelParameters& p) {
  return per_pass(0, as_double(words_in(bytes)), p);
}
Operations estimate_gather(uint64_t, const KernelParameters& p) {
  return per_pass(0, kIntsPerGather * as_double(p.size), p);
}
Operations estimate_update(uint64_t bytes, const KernelParameters& p) {
  return per_pass(0, 3 * as_double(words_in(bytes)), p);
}
// Compares and moves of n log2 n, and the weighted checksum.
Operations estimate_sort(uint64_t bytes, const KernelParameters& p) {
  return per_pass(0, as_double(words_in(bytes)) * (std::log2(as_double(p.size)) + 2), p);
}
Operations estimate_norm(uint64_t bytes, const KernelParameters& p) {
  return per_pass(2 * as_double(words_in(bytes)), 0, p);
}
Operations estimate_matmul(uint64_t bytes, const KernelParameters& p) {
  const uint64_t pairs = words_in(bytes) / (2 * p.size * p.size);
  return per_pass(2 * as_double(pairs * p.size * p.size * p.size), 0, p);
}

using enum Kernel::Access;
constexpr std::array kKernels{
    Kernel{"sum", "streams a dataset and adds its words", "", 0, 0, 0, kRead, false, run_sum,
           estimate_sum},
    Kernel{"norm", "streams a dataset and adds the squares of its words as floats", "", 0, 0, 0,
           kRead, true, run_norm, estimate_norm},
    Kernel{"gather", "reads words at random places", "reads per pass", 1 << 20, 1, 1ull << 36,
           kRead, false, run_gather, estimate_gather},
    Kernel{"matmul", "multiplies the square float matrices a dataset is made of", "matrix edge",
           128, 1, 8192, kRead, true, run_matmul, estimate_matmul},
    Kernel{"sort", "sorts a dataset's words piece by piece in private memory", "words per piece",
           1 << 16, 2, 1ull << 30, kRead, false, run_sort, estimate_sort},
    Kernel{"update", "rewrites every word of a dataset", "", 0, 0, 0, kWrite, false, run_update,
           estimate_update},
    Kernel{"copy", "fills the last dataset with the words of the others", "", 0, 0, 0,
           kReadThenWrite, false, run_copy, estimate_sum},
};

uint64_t least_bytes(const Kernel& kernel, const KernelParameters& parameters) {
  return kernel.name == "matmul" ? 8 * parameters.size * parameters.size : 4;
}

KernelParameters with_defaults(const Kernel& kernel, KernelParameters parameters) {
  if (parameters.size == 0) parameters.size = kernel.default_size;
  return parameters;
}

Status check(const Kernel& kernel, std::span<const Region> regions, const KernelParameters& p) {
  const auto refuse = [&](std::string why) {
    return fail(ErrorCode::kInvalid, fmt::format("kernel {}: {}", kernel.name, why));
  };
  if (p.passes == 0 || p.passes > kMaxPasses)
    return refuse(fmt::format("passes is {}; it must be 1 to {}", p.passes, kMaxPasses));
  if (kernel.size_meaning.empty() && p.size != 0) return refuse("takes no size");
  if (p.size < kernel.min_size || p.size > kernel.max_size)
    return refuse(fmt::format("size ({}) is {}; it must be {} to {}", kernel.size_meaning, p.size,
                              kernel.min_size, kernel.max_size));
  const size_t needed = kernel.access == kReadThenWrite ? 2 : 1;
  if (regions.size() < needed)
    return refuse(fmt::format("needs at least {} dataset{}, got {}", needed, needed == 1 ? "" : "s",
                              regions.size()));
  for (size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].bytes < least_bytes(kernel, p))
      return refuse(fmt::format("dataset {} has {} bytes; at least {} are needed", i + 1,
                                regions[i].bytes, least_bytes(kernel, p)));
    const bool writes =
        kernel.access == kWrite || (kernel.access == kReadThenWrite && i + 1 == regions.size());
    if (writes && !regions[i].writable)
      return refuse(fmt::format("dataset {} is not opened for writing", i + 1));
  }
  return {};
}

}  // namespace

std::span<const Kernel> kernels() {
  return kKernels;
}

Result<const Kernel*> find_kernel(std::string_view name) {
  std::string known;
  for (const Kernel& kernel : kKernels) {
    if (kernel.name == name) return &kernel;
    known += (known.empty() ? "" : ", ") + std::string(kernel.name);
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("there is no kernel '{}'; there are: {}", name, known));
}

Result<KernelResult> run_kernel(const Kernel& kernel, std::span<const Region> regions,
                                KernelParameters parameters) {
  parameters = with_defaults(kernel, parameters);
  if (auto status = check(kernel, regions, parameters); !status)
    return tl::unexpected(status.error());
  KernelResult result = kernel.run(regions, parameters);
  const auto counted = kernel.access == kReadThenWrite ? regions.last(1) : regions;
  for (const Region& region : counted) {
    const Operations some = kernel.estimate(region.bytes, parameters);
    result.operations.floats += some.floats;
    result.operations.ints += some.ints;
  }
  return result;
}

Operations estimate_operations(const Kernel& kernel, uint64_t bytes, KernelParameters parameters) {
  return kernel.estimate(bytes, with_defaults(kernel, parameters));
}

}  // namespace tierpilot::tierload
