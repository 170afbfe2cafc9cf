#include "daemon/memory/damon/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tierpilot {
namespace {

constexpr uint32_t kMagic = 0x314e4454;  // "TDN1": another layout gets another number
constexpr size_t kMaxTextBytes = 1'024;

struct RequestLayout {
  uint32_t magic;
  uint32_t kind;
  int32_t pid;
  uint32_t zero;
  int64_t sample_us;
  int64_t aggregation_us;
  int64_t update_us;
  int64_t min_regions;
  int64_t max_regions;
};
static_assert(sizeof(RequestLayout) == kKeeperRequestBytes);

// Followed by `regions` of RegionLayout, or by an error's `text_bytes`.
struct ReplyLayout {
  uint32_t magic;
  uint32_t code;  // 0: it went well; else an ErrorCode, plus 1
  uint32_t regions;
  uint32_t text_bytes;
  int64_t cpu_ns;
};
static_assert(sizeof(ReplyLayout) == 24);

struct RegionLayout {
  uint64_t start;
  uint64_t end;
  uint64_t accesses;
};
static_assert(sizeof(RegionLayout) == 24);
static_assert(sizeof(ReplyLayout) + kMaxReadingRegions * sizeof(RegionLayout) <=
              kMaxKeeperReplyBytes);

constexpr auto kLastKind = static_cast<uint32_t>(KeeperRequest::Kind::kIntervals);
constexpr auto kLastCode = static_cast<uint32_t>(ErrorCode::kTimeout) + 1;

void append(KeeperBytes& bytes, const void* data, size_t size) {
  const size_t at = bytes.size();
  bytes.resize(at + size);
  if (size > 0) std::memcpy(&bytes[at], data, size);
}

template <class Layout>
void append(KeeperBytes& bytes, const Layout& value) {
  append(bytes, &value, sizeof value);
}

template <class Layout>
Layout take(std::span<const std::byte>& bytes) {
  Layout value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return value;
}

tl::unexpected<Error> malformed(std::string_view what) {
  return fail(ErrorCode::kInvalid, fmt::format("DAMON keeper: {}", what));
}

}  // namespace

KeeperBytes encode(const KeeperRequest& request) {
  KeeperBytes bytes;
  append(bytes, RequestLayout{.magic = kMagic,
                              .kind = static_cast<uint32_t>(request.kind),
                              .pid = request.pid,
                              .zero = 0,
                              .sample_us = request.attrs.sample_us,
                              .aggregation_us = request.attrs.aggregation_us,
                              .update_us = request.attrs.update_us,
                              .min_regions = request.attrs.min_regions,
                              .max_regions = request.attrs.max_regions});
  return bytes;
}

Result<KeeperRequest> decode_request(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(RequestLayout))
    return malformed(
        fmt::format("a request of {} bytes, not {}", bytes.size(), sizeof(RequestLayout)));
  const auto raw = take<RequestLayout>(bytes);
  if (raw.magic != kMagic) return malformed("a request of another protocol");
  if (raw.kind == 0 || raw.kind > kLastKind) return malformed("a request of an unknown kind");
  if (raw.zero != 0) return malformed("a request with a reserved field in use");
  const KeeperRequest request{.kind = static_cast<KeeperRequest::Kind>(raw.kind),
                              .pid = raw.pid,
                              .attrs = {.sample_us = raw.sample_us,
                                        .aggregation_us = raw.aggregation_us,
                                        .update_us = raw.update_us,
                                        .min_regions = raw.min_regions,
                                        .max_regions = raw.max_regions}};
  if (request.kind == KeeperRequest::Kind::kWatch && request.pid <= 0)
    return malformed(fmt::format("process {}: there is none of that number", request.pid));
  if (auto status = check(request.attrs); !status) return tl::unexpected(status.error());
  return request;
}

KeeperBytes encode(const Result<DamonReading>& reply) {
  if (reply && reply->regions.size() > kMaxReadingRegions)
    return encode(Result<DamonReading>(
        fail(ErrorCode::kExhausted,
             fmt::format("DAMON: {} regions, more than a reply may have", reply->regions.size()))));
  KeeperBytes bytes;
  if (!reply) {
    const auto text = std::string_view(reply.error().message).substr(0, kMaxTextBytes);
    append(bytes, ReplyLayout{.magic = kMagic,
                              .code = static_cast<uint32_t>(reply.error().code) + 1,
                              .regions = 0,
                              .text_bytes = static_cast<uint32_t>(text.size()),
                              .cpu_ns = 0});
    append(bytes, text.data(), text.size());
    return bytes;
  }
  append(bytes, ReplyLayout{.magic = kMagic,
                            .code = 0,
                            .regions = static_cast<uint32_t>(reply->regions.size()),
                            .text_bytes = 0,
                            .cpu_ns = reply->cpu_ns});
  for (const auto& region : reply->regions)
    append(bytes, RegionLayout{region.start, region.end, region.accesses});
  return bytes;
}

Result<DamonReading> decode_reply(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(ReplyLayout)) return malformed("a reply without a header");
  const auto header = take<ReplyLayout>(bytes);
  if (header.magic != kMagic || header.code > kLastCode)
    return malformed("a reply of another protocol");
  const uint64_t body_bytes =
      uint64_t{header.regions} * sizeof(RegionLayout) + uint64_t{header.text_bytes};
  if (bytes.size() != body_bytes || (header.regions > 0 && header.text_bytes > 0))
    return malformed("a reply of another size than it says");
  if (header.code != 0)
    return fail(static_cast<ErrorCode>(header.code - 1),
                std::string(reinterpret_cast<const char*>(bytes.data()), header.text_bytes));
  DamonReading reading{.regions = {}, .cpu_ns = std::max<int64_t>(header.cpu_ns, 0)};
  reading.regions.reserve(header.regions);
  for (uint32_t i = 0; i < header.regions; ++i) {
    const auto raw = take<RegionLayout>(bytes);
    reading.regions.push_back({raw.start, raw.end, raw.accesses});
  }
  return reading;
}

}  // namespace tierpilot
