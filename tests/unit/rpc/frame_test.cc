#include "rpc/stream/frame.h"

#include <capnp/any.h>
#include <capnp/serialize.h>
#include <gtest/gtest.h>

#include <cstring>

namespace tierpilot {
namespace {

constexpr uint32_t kMagic = 0x31465054;

Result<size_t> header(uint32_t magic, uint32_t bytes, const RpcLimits& limits = {}) {
  const uint32_t words[2] = {magic, bytes};
  return parse_frame_header(reinterpret_cast<const kj::byte*>(words), limits);
}

kj::Array<capnp::word> payload(std::initializer_list<uint64_t> values) {
  auto words = kj::heapArray<capnp::word>(values.size());
  std::memcpy(words.asBytes().begin(), values.begin(), values.size() * sizeof(uint64_t));
  return words;
}

std::string refusal(kj::Array<capnp::word> words, const RpcLimits& limits = {}) {
  auto frame = open_frame(kj::mv(words), limits);
  if (frame) return "opened";
  EXPECT_EQ(frame.error().code, ErrorCode::kInvalid);
  return frame.error().message;
}

TEST(FrameHeader, SizeIsInWordsAndBounded) {
  EXPECT_EQ(header(kMagic, 8).value(), 1u);
  EXPECT_EQ(header(kMagic, 4 << 20).value(), (size_t{4} << 20) / 8);
  EXPECT_FALSE(header(kMagic, (4 << 20) + 8));
  EXPECT_FALSE(header(kMagic, 0));
  EXPECT_FALSE(header(kMagic, 12));
  EXPECT_FALSE(header(kMagic + 1, 8));
  RpcLimits limits;
  limits.max_frame_bytes = 64;
  EXPECT_TRUE(header(kMagic, 64, limits));
  EXPECT_FALSE(header(kMagic, 72, limits));
}

TEST(Frame, WhatIsWrittenIsReadAgain) {
  // Little room in the first segment: the message gets several.
  capnp::MallocMessageBuilder message(1, capnp::AllocationStrategy::FIXED_SIZE);
  auto list = message.initRoot<capnp::AnyPointer>().initAsListOfAnyStruct(1, 1, 4);
  for (auto item : list) item.getPointerSection()[0].setAs<capnp::Text>("some text");
  const auto segments = message.getSegmentsForOutput();
  ASSERT_GT(segments.size(), 2u);

  const auto prefix = frame_prefix(segments);
  auto flat = capnp::messageToFlatArray(segments);
  EXPECT_EQ(header(prefix[0], prefix[1]).value(), flat.size());
  EXPECT_EQ(std::memcmp(prefix.data() + 2, flat.begin(), 4 * prefix.size() - 8), 0);

  auto frame = open_frame(kj::mv(flat), {});
  ASSERT_TRUE(frame) << frame.error().message;
  auto read = (*frame)->getRoot<capnp::AnyPointer>().getAs<capnp::AnyList>();
  EXPECT_EQ(read.size(), 4u);
}

TEST(Frame, SegmentTableMustFillTheFrameExactly) {
  EXPECT_NE(refusal(kj::heapArray<capnp::word>(0)).find("empty"), std::string::npos);
  EXPECT_NE(refusal(payload({0x00000000'ffffffff, 0})).find("segments, the limit"),
            std::string::npos);
  EXPECT_NE(refusal(payload({0x00000001'00000009})).find("ends outside"), std::string::npos);
  EXPECT_NE(refusal(payload({0x00000002'00000000, 0})).find("need 3 words"), std::string::npos);
  EXPECT_NE(refusal(payload({0xffffffff'00000000, 0})).find("need"), std::string::npos);
  EXPECT_NE(refusal(payload({0x00000001'00000000, 0, 0})).find("need 2 words"), std::string::npos);
  EXPECT_EQ(refusal(payload({0x00000001'00000000, 0})), "opened");
  EXPECT_NE(refusal(payload({0x00000000'00000000})).find("root pointer"), std::string::npos);
}

kj::Array<capnp::word> nested(uint32_t depth) {
  auto words = kj::heapArray<capnp::word>(1 + depth + 1);
  std::memset(words.asBytes().begin(), 0, words.asBytes().size());
  auto* raw = reinterpret_cast<uint64_t*>(words.begin());
  raw[0] = uint64_t{depth + 1} << 32;
  for (uint32_t i = 0; i < depth; ++i) raw[1 + i] = uint64_t{1} << 48;  // to the next word
  return words;
}

TEST(Frame, NestingIsBounded) {
  EXPECT_EQ(refusal(nested(15)), "opened");
  EXPECT_NE(refusal(nested(17)).find("nested"), std::string::npos);
  RpcLimits limits;
  limits.nesting_limit = 64;
  EXPECT_EQ(refusal(nested(60), limits), "opened");
}

TEST(Frame, PointersMustLeadInside) {
  EXPECT_NE(refusal(payload({0x00000001'00000000, 0x0001'0000'0000'0100})), "opened");
  EXPECT_NE(refusal(payload({0x00000001'00000000, 0x0000'0009'0000'0002})), "opened");
}

TEST(Frame, TraversalIsBoundedByTheLimitOrTheSizeOfTheFrame) {
  RpcLimits limits;
  limits.traversal_limit_words = 16;
  const auto opened_data = [&](kj::uint bytes) {
    capnp::MallocMessageBuilder message;
    message.initRoot<capnp::AnyPointer>().initAs<capnp::Data>(bytes);
    return open_frame(capnp::messageToFlatArray(message), limits);
  };
  auto frame = opened_data(1 << 20);
  ASSERT_TRUE(frame);
  const auto look = [&] {
    return (*frame)->getRoot<capnp::AnyPointer>().getAs<capnp::Data>().size();
  };
  for (int i = 0; i < 6; ++i) EXPECT_EQ(look(), size_t{1} << 20);
  EXPECT_ANY_THROW(for (int i = 0; i < 6; ++i) look());
}

}  // namespace
}  // namespace tierpilot
