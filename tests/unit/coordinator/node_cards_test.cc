// What is kept of nodes to be shown, whatever they say.
#include "coordinator/service/node_cards.h"

#include <gmock/gmock.h>

#include <string>

#include "coordinator/service/wire.h"

namespace tierpilot {
namespace {

constexpr size_t kMost = 1 << 20;

class Cards : public testing::Test {
 protected:
  // KJ's members make it noexcept(false), which testing::Test is not.
  ~Cards() noexcept override = default;
  Cards() {
    info_.setName("n1");
    cards_.joined("n1", info_.asReader(), nullptr);
  }

  wire::NodeInfo::Reader shown_info() {
    return cards_.find("n1")->info->getRoot<wire::NodeInfo>().asReader();
  }
  wire::NodeStatus::Reader shown_status() {
    return cards_.find("n1")->status->getRoot<wire::NodeStatus>().asReader();
  }

  const std::string much_ = std::string(kMost, 'x'), cut_ = std::string(512, 'x') + "...";
  capnp::MallocMessageBuilder info_message_, status_message_;
  wire::NodeInfo::Builder info_ = info_message_.initRoot<wire::NodeInfo>();
  wire::NodeStatus::Builder status_ = status_message_.initRoot<wire::NodeStatus>();
  NodeCards cards_;
};

TEST_F(Cards, WhatIsSaidIsShownAsItCame) {
  auto tier = info_.initTiers(1)[0];
  tier.setTier("dram");
  tier.initReadGbPerS().setValue(20);
  tier.initLatencyNs().initP50().setUnavailable("not measured yet");
  status_.initEvictGbPerS().setUnavailable("nothing was evicted yet");
  cards_.described("n1", info_.asReader());
  cards_.reported("n1", status_.asReader());
  EXPECT_EQ(text(shown_info().getTiers()[0].getLatencyNs().getP50().getUnavailable()),
            "not measured yet");
  EXPECT_EQ(shown_info().getTiers()[0].getReadGbPerS().getValue(), 20);
  EXPECT_EQ(text(shown_status().getEvictGbPerS().getUnavailable()), "nothing was evicted yet");
}

TEST_F(Cards, WhyAFigureIsMissingIsCutAndCounted) {
  auto tier = info_.initTiers(1)[0];
  tier.initLatencyNs().initP99().setUnavailable(much_);
  tier.initPromoteGbPerS().setUnavailable(much_);
  info_.initInt32ToFloat().setUnavailable(much_);
  status_.initSelfCpuShare().setUnavailable(much_);
  auto metric = status_.initMetrics(1)[0];
  metric.setName("migrated_pages");
  metric.initValue().setUnavailable(much_);
  status_.initGpus(1)[0].initBusyPercent().setUnavailable(much_);
  const size_t before = cards_.bytes("n1");
  cards_.described("n1", info_.asReader());
  cards_.reported("n1", status_.asReader());
  EXPECT_EQ(text(shown_info().getTiers()[0].getLatencyNs().getP99().getUnavailable()), cut_);
  EXPECT_EQ(text(shown_info().getTiers()[0].getPromoteGbPerS().getUnavailable()), cut_);
  EXPECT_EQ(text(shown_info().getInt32ToFloat().getUnavailable()), cut_);
  EXPECT_EQ(text(shown_status().getMetrics()[0].getName()), "migrated_pages");
  EXPECT_EQ(text(shown_status().getMetrics()[0].getValue().getUnavailable()), cut_);
  EXPECT_EQ(text(shown_status().getGpus()[0].getBusyPercent().getUnavailable()), cut_);
  EXPECT_GT(cards_.bytes("n1"), before + 6 * 512);
  EXPECT_LT(cards_.bytes("n1"), before + 6 * 1'024);
}

TEST_F(Cards, OneThatSaysTooMuchIsShownWithout) {
  status_.setTakesNone(much_ + much_);
  info_.setHostname(much_ + much_);
  cards_.described("n1", info_.asReader());
  cards_.reported("n1", status_.asReader());
  EXPECT_EQ(text(shown_info().getName()), "n1");
  EXPECT_EQ(shown_info().getHostname().size(), 0u);
  EXPECT_EQ(shown_status().getTakesNone().size(), 0u);
  EXPECT_LT(cards_.bytes("n1"), 4'096u);
  status_.setTakesNone("it drains");
  cards_.reported("n1", status_.asReader());
  EXPECT_EQ(text(shown_status().getTakesNone()), "it drains");
}

}  // namespace
}  // namespace tierpilot
