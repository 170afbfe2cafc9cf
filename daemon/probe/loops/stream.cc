#include "daemon/probe/loops/stream.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "daemon/probe/loops/simd.h"

namespace tierpilot {
namespace {

[[gnu::always_inline]] inline uint64_t sum_all(const std::byte* data, size_t bytes) {
  // Four sums: one would wait for its own addition.
  simd::U64 a{}, b{}, c{}, d{};
  const auto* at = reinterpret_cast<const simd::U64*>(data);
  for (const auto* end = at + bytes / sizeof(simd::U64) / 4 * 4; at < end; at += 4) {
    a += at[0];
    b += at[1];
    c += at[2];
    d += at[3];
  }
  a += b + c + d;
  return a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
}

TIERPILOT_SIMD(uint64_t, sum_words, (const std::byte* data, size_t bytes), sum_all(data, bytes))

void write_once(std::byte* data, size_t bytes) {
#if defined(__SSE2__)
  // Write-combining gathers whole lines: wider stores than 16 bytes gain nothing here.
  const __m128i value = _mm_set1_epi8(0x5a);
  for (size_t at = 0; at + 64 <= bytes; at += 64)
    for (size_t part = 0; part < 64; part += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(data + at + part), value);
  _mm_sfence();
#else
  simd::U64 value{};
  value += 0x5a5a5a5a5a5a5a5a;
  for (size_t at = 0; at + sizeof value <= bytes; at += sizeof value)
    *reinterpret_cast<volatile simd::U64*>(data + at) = value;
#endif
}

void copy_once(std::byte* to, const std::byte* from, size_t bytes) {
#if defined(__SSE2__)
  for (size_t at = 0; at + 64 <= bytes; at += 64)
    for (size_t part = 0; part < 64; part += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + part),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(from + at + part)));
  _mm_sfence();
#else
  memcpy(to, from, bytes);
#endif
}

// `pass` works on (offset, bytes) of the range.
template <class Pass>
double bytes_per_s(const Pass& pass, size_t bytes, int threads) {
  const size_t share = aligned_share(bytes, static_cast<size_t>(threads));
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i)
    others.emplace_back(pass, share * static_cast<size_t>(i), share);
  pass(0, share);
  others.clear();  // joins
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return static_cast<double>(share * static_cast<size_t>(threads)) / took.count();
}

}  // namespace

void read_once(const std::byte* data, size_t bytes) {
  // With AVX2 and SSE2 an unaligned vector is a fault; AVX-512 would hide the mistake.
  if (reinterpret_cast<uintptr_t>(data) % sizeof(simd::U64) != 0)
    throw std::logic_error("memory that is streamed begins within a cache line");
  uint64_t sum = sum_words(data, bytes);
  asm volatile("" : "+r"(sum));
}

double read_bytes_per_s(const std::byte* data, size_t bytes, int threads) {
  return bytes_per_s([data](size_t at, size_t size) { read_once(data + at, size); }, bytes,
                     threads);
}

double write_bytes_per_s(std::byte* data, size_t bytes, int threads) {
  return bytes_per_s([data](size_t at, size_t size) { write_once(data + at, size); }, bytes,
                     threads);
}

double copy_bytes_per_s(std::byte* to, const std::byte* from, size_t bytes, int threads) {
  return bytes_per_s([to, from](size_t at, size_t size) { copy_once(to + at, from + at, size); },
                     bytes, threads);
}

}  // namespace tierpilot
