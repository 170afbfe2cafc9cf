// Weights and memories of learners: valid ones, a part of which gives way to the input.
#include "policies/learning/byte_codec.h"
#include "policies/learning/envelope.h"
#include "policies/placement/dqn/token_codec.h"
#include "policies/placement/dqn/weights.h"
#include "policies/placement/published/checkpoint.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

namespace {

constexpr size_t kMagicBytes = 8, kHeaderBytes = kMagicBytes + 4 + 4 + 8;

// The input says where, how much goes, and what comes in its place.
std::string changed(std::string body, std::string_view input) {
  ByteReader in(input);
  const size_t at = in.get<uint16_t>() % (body.size() + 1), gone = in.get<uint8_t>();
  return in.ok() ? body.replace(at, std::min(gone, body.size() - at), input.substr(3)) : body;
}

// In the envelope that it had.
std::string changed_within(std::string_view sealed, std::string_view input) {
  const std::string magic(sealed.substr(0, kMagicBytes));
  const auto version = ByteReader(sealed.substr(kMagicBytes)).get<uint32_t>();
  return seal({.magic = magic, .version = version, .name = "fuzz"},
              changed(std::string(sealed.substr(kHeaderBytes)), input));
}

template <class Value>
void keeps_its_form(std::string_view bytes, Result<Value> (*decode)(std::string_view),
                    std::string (*encode)(const Value&)) {
  const auto value = decode(bytes);
  if (!value) return;
  const auto written = encode(*value);
  const auto again = decode(written);
  fuzz::promise(again && encode(*again) == written, "what is read and written is the same");
}

template <class Sight>
Experiences<Sight> two_of(Sight sight) {
  const auto seen = std::make_shared<const Sight>(std::move(sight));
  return {.replay = {{seen, seen, 1, -0.5}}, .pending = {{7, seen, nullptr, 0, 2.5}}};
}

std::string memory() {
  const TokenSet sight{.features = std::vector<float>(2 * kTokenSize, 0.5F),
                       .prior = {-1, -2},
                       .others = {0, -1},
                       .nodes = {3, 9},
                       .scale_s = 0.25};
  return encode_memory({.own = {1, 2}, .experiences = two_of(sight)});
}

std::string checkpoint() {
  Observation sight{.values = std::vector<float>(ObservationLayout::kSize, 0.5F)};
  sight.present.set(1);
  return encode_checkpoint({.weights = {1, 2}, .experiences = two_of(sight)});
}

}  // namespace

FUZZ(dqn_weights) {
  static const auto whole = encode_weights({});
  keeps_its_form(changed_within(whole, bytes), decode_weights, encode_weights);
}

FUZZ(dqn_memory) {
  static const auto whole = memory();
  keeps_its_form(changed(whole, bytes), decode_memory, encode_memory);
}

FUZZ(published_checkpoint) {
  static const auto whole = checkpoint();
  keeps_its_form(changed_within(whole, bytes), decode_checkpoint, encode_checkpoint);
}
