// Bytes that know what they are: magic, version, CRC-32 and size of a body, then the body.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot {

struct EnvelopeKind {
  std::string_view magic;  // 8 bytes
  uint32_t version = 1;
  std::string_view name;  // for messages: "learner checkpoint"
};

std::string seal(const EnvelopeKind& kind, std::string_view body);
// The body inside `bytes`. kInvalid says what is wrong: another kind, another version, cut short,
// checksum.
Result<std::string_view> unseal(const EnvelopeKind& kind, std::string_view bytes);

}  // namespace tierpilot
