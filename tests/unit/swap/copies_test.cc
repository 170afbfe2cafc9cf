// Copies over the link: one at a time each way, and what they are for leaves when they end.
#include "policies/swap/machine/copies.h"

#include <gtest/gtest.h>

namespace tierpilot::swap {
namespace {

constexpr Link kLink{.gb_per_s = 1, .latency_ns = 10};  // a byte takes a nanosecond

TEST(LinkCopies, OneAfterTheOtherOut) {
  LinkCopies copies(2, kLink);
  copies.leave(0, 100, 1);
  copies.leave(1, 50, 1);
  EXPECT_FALSE(copies.has_copy(0, 110));
  EXPECT_TRUE(copies.has_copy(0, 111));
  EXPECT_EQ(copies.next_departure_ns(), 111);
  EXPECT_EQ(copies.take_departed(110), kNone);
  EXPECT_EQ(copies.take_departed(200), 0U);
  EXPECT_EQ(copies.take_departed(200), 1U);
  EXPECT_EQ(copies.take_departed(200), kNone);
  EXPECT_TRUE(copies.has_copy(1, 161)) << "150 of both copies, and the latency once";
}

TEST(LinkCopies, WhatStaysHasItsCopyAndLeavesLaterWithoutAnotherOne) {
  LinkCopies copies(1, kLink);
  copies.leave(0, 100, 1);
  copies.stay(0);
  EXPECT_EQ(copies.next_departure_ns(), LinkCopies::kNever);
  EXPECT_EQ(copies.take_departed(1000), kNone);
  EXPECT_TRUE(copies.has_copy(0, 111));
  copies.leave(0, 100, 50);
  EXPECT_EQ(copies.next_departure_ns(), 111);
  Counts counts;
  copies.add_to(counts);
  EXPECT_EQ(counts.swaps_out, 1);
  EXPECT_EQ(counts.bytes_out, 100);
}

TEST(LinkCopies, OneAfterTheOtherBackBesideThoseOut) {
  LinkCopies copies(3, kLink);
  copies.leave(2, 1000, 1);
  copies.come_back(0, 100, 1);
  copies.come_back(1, 100, 1);
  EXPECT_EQ(copies.ready_ns(0), 111);
  EXPECT_EQ(copies.ready_ns(1), 211);
  copies.made(1);
  EXPECT_EQ(copies.ready_ns(1), 0) << "who makes it again waits for no copy";
}

TEST(LinkCopies, OutBeginsWhenItsWayInHasEnded) {
  LinkCopies copies(1, kLink);
  copies.come_back(0, 100, 1);
  copies.leave(0, 100, 1);
  EXPECT_EQ(copies.next_departure_ns(), 221);
}

}  // namespace
}  // namespace tierpilot::swap
