// Tasks with shares on simulated nodes, and a keeper of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/sharing/share_keeper.h"
#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {

class ShareKeeperTest : public CoreTest {
 protected:
  ShareKeeperTest() {
    make_keeper("share");
    node_ = join_sharing("n1", 1);
  }
  void make_keeper(const char* policy) {
    settings_.share_policy = state_->settings.share_policy = policy;
    checkpoints_ = std::make_unique<Checkpoints>(*state_, *datasets_);
    keeper_ = std::make_unique<ShareKeeper>(*state_, *lifecycle_, *checkpoints_, nullptr);
    elastic_started_ = [this](const Task& task) { keeper_->started(task); };

  }  // namespace tierpilot::testing
