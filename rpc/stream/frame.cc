#include "rpc/stream/frame.h"

#include <capnp/any.h>
#include <capnp/serialize.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "rpc/error.h"

namespace tierpilot {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kMagic = 0x31465054;  // "TPF1"
constexpr uint64_t kMaxSegments = 512;   // as in Cap'n Proto's own readers
// The check in open_frame() is the first visit; Cap'n Proto counts every getter call as another.
constexpr uint64_t kTraversalPerWord = 8;

tl::unexpected<Error> bad(std::string why) {
  return fail(ErrorCode::kInvalid, "bad frame: " + std::move(why));
}

uint32_t u32_at(const void* base, size_t index) {
  uint32_t value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + index * sizeof value, sizeof value);
  return value;
}

Status check_segment_table(kj::ArrayPtr<const capnp::word> payload) {
  // 64 bits: a count of FFFFFFFF must not become zero by adding one.
  const uint64_t segments = uint64_t{u32_at(payload.begin(), 0)} + 1;
  if (segments > kMaxSegments)
    return bad(fmt::format("{} segments, the limit is {}", segments, kMaxSegments));
  const uint64_t table_words = segments / 2 + 1;
  if (table_words > payload.size())
    return bad(fmt::format("its table of {} segments ends outside", segments));
  uint64_t words = table_words;
  for (uint64_t i = 0; i < segments; ++i) words += u32_at(payload.begin(), 1 + i);
  if (words != payload.size())
    return bad(fmt::format("its segments need {} words, it has {}", words, payload.size()));
  return {};
}

struct Payload {
  kj::Array<capnp::word> words;
};

class Frame final : private Payload, public capnp::FlatArrayMessageReader {
 public:
  Frame(kj::Array<capnp::word> payload, const capnp::ReaderOptions& options)
      : Payload{kj::mv(payload)}, FlatArrayMessageReader(words, options) {}
};

}  // namespace

Result<size_t> parse_frame_header(const kj::byte* header, const RpcLimits& limits) {
  const uint32_t magic = u32_at(header, 0);
  const uint32_t bytes = u32_at(header, 1);
  if (magic != kMagic)
    return bad(fmt::format("it starts with {:08x}, not {:08x}: the peer speaks another protocol",
                           magic, kMagic));
  if (bytes == 0 || bytes % sizeof(capnp::word) != 0)
    return bad(fmt::format("its size of {} bytes is not a positive multiple of 8", bytes));
  if (bytes > limits.max_frame_bytes)
    return bad(
        fmt::format("its size of {} bytes is over the limit of {}", bytes, limits.max_frame_bytes));
  return bytes / sizeof(capnp::word);
}

Result<kj::Own<capnp::MessageReader>> open_frame(kj::Array<capnp::word> payload,
                                                 const RpcLimits& limits) {
  if (payload.size() == 0) return bad("it is empty");
  if (auto status = check_segment_table(payload); !status) return tl::unexpected(status.error());
  capnp::ReaderOptions options;
  options.traversalLimitInWords =
      std::max<uint64_t>(limits.traversal_limit_words, kTraversalPerWord * payload.size());
  options.nestingLimit = limits.nesting_limit;
  auto frame = kj::heap<Frame>(kj::mv(payload), options);
  // Measuring the message follows all its pointers, so a message that no method could read is
  // refused here and not somewhere in the middle of one.
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions(
                              [&] { frame->getRoot<capnp::AnyPointer>().targetSize(); })) {
    return bad(to_error(*exception).message);
  }
  return kj::Own<capnp::MessageReader>(kj::mv(frame));
}

std::vector<uint32_t> frame_prefix(Segments segments) {
  const size_t table_words = segments.size() / 2 + 1;
  size_t words = table_words;
  for (const auto& segment : segments) words += segment.size();
  std::vector<uint32_t> prefix(2 + 2 * table_words);
  prefix[0] = kMagic;
  prefix[1] = static_cast<uint32_t>(words * sizeof(capnp::word));
  prefix[2] = static_cast<uint32_t>(segments.size() - 1);
  for (size_t i = 0; i < segments.size(); ++i)
    prefix[3 + i] = static_cast<uint32_t>(segments[i].size());
  return prefix;
}

}  // namespace tierpilot
