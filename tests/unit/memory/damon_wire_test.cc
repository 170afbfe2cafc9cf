// What goes over the keeper's socket: everything that was meant arrives, and nothing else does.
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "daemon/memory/damon/wire.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;
using Kind = KeeperRequest::Kind;

const KeeperRequest kWatch{.kind = Kind::kWatch,
                           .pid = 42,
                           .attrs = {.sample_us = 1'000,
                                     .aggregation_us = 100'000,
                                     .update_us = 500'000,
                                     .min_regions = 10,
                                     .max_regions = 1'000}};

template <class Number>
KeeperBytes with(KeeperBytes bytes, size_t at, Number value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

TEST(DamonWire, RequestsArriveAsTheyWereMeant) {
  for (const auto kind : {Kind::kCheck, Kind::kWatch, Kind::kRead, Kind::kIntervals}) {
    auto request = kWatch;
    request.kind = kind;
    const auto bytes = encode(request);
    EXPECT_EQ(bytes.size(), kKeeperRequestBytes);
    EXPECT_EQ(decode_request(bytes).value(), request);
  }
  EXPECT_TRUE(decode_request(encode(KeeperRequest{})));
}

TEST(DamonWire, RequestsOfAnotherShapeAreInvalid) {
  const auto bytes = encode(kWatch);
  EXPECT_TRUE(decode_request(bytes));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_request(std::span(bytes).first(size))) << size;
  auto longer = bytes;
  longer.push_back({});
  EXPECT_FALSE(decode_request(longer));
  EXPECT_FALSE(decode_request(with(bytes, 0, uint32_t{1})));
  for (const uint32_t kind : {0U, 5U, UINT32_MAX})
    EXPECT_FALSE(decode_request(with(bytes, 4, kind))) << kind;
  for (const int32_t pid : {0, -1, INT32_MIN})
    EXPECT_FALSE(decode_request(with(bytes, 8, pid))) << pid;
  EXPECT_FALSE(decode_request(with(bytes, 12, uint32_t{1})));
}

TEST(DamonWire, WhatWouldCostTheMachineTooMuchIsInvalid) {
  const auto refused = [](auto change) {
    auto request = kWatch;
    change(request.attrs);
    return !decode_request(encode(request));
  };
  EXPECT_TRUE(refused([](auto& attrs) { attrs.sample_us = 999; }));
  EXPECT_TRUE(refused([](auto& attrs) { attrs.sample_us = 100'001; })) << "above the aggregation";
  EXPECT_TRUE(refused([](auto& attrs) { attrs.aggregation_us = 2'500'001; }));
  EXPECT_TRUE(refused([](auto& attrs) { attrs.update_us = 999; }));
  EXPECT_TRUE(refused([](auto& attrs) { attrs.min_regions = 2; }));
  EXPECT_TRUE(refused([](auto& attrs) { attrs.max_regions = 1'001; }));
  EXPECT_TRUE(refused([](auto& attrs) { attrs.max_regions = attrs.min_regions - 1; }));
  for (const int64_t extreme : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    EXPECT_TRUE(refused([&](auto& attrs) { attrs.sample_us = extreme; })) << extreme;
    EXPECT_TRUE(refused([&](auto& attrs) { attrs.max_regions = extreme; })) << extreme;
  }
}

TEST(DamonWire, RepliesArriveAsTheyWereMeant) {
  const DamonReading reading{.regions = {{4096, 8192, 3}, {1, UINT64_MAX, UINT64_MAX}},
                             .cpu_ns = 77};
  const auto arrived = decode_reply(encode(Result<DamonReading>(reading))).value();
  EXPECT_EQ(arrived.regions, reading.regions);
  EXPECT_EQ(arrived.cpu_ns, 77);
  EXPECT_TRUE(decode_reply(encode(Result<DamonReading>(DamonReading{}))).value().regions.empty());
  for (const auto code : {ErrorCode::kInvalid, ErrorCode::kDenied, ErrorCode::kTimeout}) {
    const auto error = decode_reply(encode(Result<DamonReading>(fail(code, "because")))).error();
    EXPECT_EQ(error.code, code);
    EXPECT_EQ(error.message, "because");
  }
}

TEST(DamonWire, RepliesAreBounded) {
  const auto most = encode(
      Result<DamonReading>(DamonReading{.regions = std::vector<DamonRegion>(kMaxReadingRegions)}));
  EXPECT_LE(most.size(), kMaxKeeperReplyBytes);
  EXPECT_EQ(decode_reply(most).value().regions.size(), kMaxReadingRegions);
  const auto more = encode(Result<DamonReading>(
      DamonReading{.regions = std::vector<DamonRegion>(kMaxReadingRegions + 1)}));
  EXPECT_EQ(decode_reply(more).error().code, ErrorCode::kExhausted);
  const auto wordy = encode(Result<DamonReading>(fail(ErrorCode::kIo, std::string(100'000, 'x'))));
  EXPECT_LE(wordy.size(), kMaxKeeperReplyBytes);
  EXPECT_THAT(decode_reply(wordy).error().message, HasSubstr("xxx"));
}

TEST(DamonWire, RepliesOfAnotherShapeAreInvalid) {
  const auto good =
      encode(Result<DamonReading>(DamonReading{.regions = std::vector<DamonRegion>(3)}));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(decode_reply(std::span(good).first(size)).error().code, ErrorCode::kInvalid) << size;
  EXPECT_FALSE(decode_reply(with(good, 0, uint32_t{0})));
  EXPECT_FALSE(decode_reply(with(good, 4, uint32_t{10'000}))) << "an unknown code";
  EXPECT_FALSE(decode_reply(with(good, 8, UINT32_MAX))) << "more regions than bytes";
  EXPECT_FALSE(decode_reply(with(with(good, 8, uint32_t{2}), 12, uint32_t{24}))) << "both";
}

TEST(DamonWire, NoiseNeverPasses) {
  std::mt19937_64 random(1);
  const auto request = encode(kWatch);
  for (int i = 0; i < 20'000; ++i) {
    KeeperBytes noise(random() % 200);
    for (auto& byte : noise) byte = static_cast<std::byte>(random());
    EXPECT_FALSE(decode_request(noise));
    EXPECT_FALSE(decode_reply(noise));
    // One wrong byte is caught, or is another request within the bounds.
    auto bent = request;
    bent[random() % bent.size()] = static_cast<std::byte>(random());
    if (const auto decoded = decode_request(bent)) {
      EXPECT_TRUE(check(decoded->attrs));
      EXPECT_GT(decoded->pid, 0);
    }
  }
}

}  // namespace
}  // namespace tierpilot
