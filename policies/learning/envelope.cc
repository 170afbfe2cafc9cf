#include "policies/learning/envelope.h"

#include <fmt/format.h>

#include <boost/crc.hpp>

#include "policies/learning/byte_codec.h"

namespace tierpilot {
namespace {

uint32_t crc32_of(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

}  // namespace

std::string seal(const EnvelopeKind& kind, std::string_view body) {
  ByteWriter header;
  for (char c : kind.magic) header.put(c);
  header.put(kind.version);
  header.put(crc32_of(body));
  header.put<uint64_t>(body.size());
  return header.take().append(body);
}

Result<std::string_view> unseal(const EnvelopeKind& kind, std::string_view bytes) {
  const size_t header_bytes = kind.magic.size() + 4 + 4 + 8;
  if (bytes.size() < header_bytes || !bytes.starts_with(kind.magic))
    return fail(ErrorCode::kInvalid, fmt::format("this is no {}", kind.name));
  ByteReader header(bytes.substr(kind.magic.size(), header_bytes - kind.magic.size()));
  const auto version = header.get<uint32_t>();
  const auto crc = header.get<uint32_t>();
  const auto size = header.get<uint64_t>();
  const std::string_view body = bytes.substr(header_bytes);
  if (version != kind.version)
    return fail(ErrorCode::kInvalid,
                fmt::format("its version is {}, this program reads {}", version, kind.version));
  if (size != body.size())
    return fail(ErrorCode::kInvalid,
                fmt::format("it should hold {} bytes and holds {}", size, body.size()));
  if (crc != crc32_of(body)) return fail(ErrorCode::kInvalid, "its checksum is wrong");
  return body;
}

}  // namespace tierpilot
