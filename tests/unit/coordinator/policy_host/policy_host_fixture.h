// A policy host with small learners that begin to learn after sixteen experiences.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "coordinator/policy_host/policy_host.h"
#include "policies/placement/dqn/module.h"
#include "policies/placement/published/module.h"

namespace tierpilot::testing {

DqnSettings small_dqn();
PublishedSettings small_published();
PlacementModules with(const DqnSettings& dqn, const PublishedSettings& published = {});
PlacementModules with_small();
View three_nodes(double operations);
std::shared_ptr<const View> shared(View view);

class PolicyHostTest : public ::testing::Test {
 protected:
  PolicyHostTest();
  ~PolicyHostTest() override { std::filesystem::remove_all(directory_); }

  // A second one goes on with what the first has left.
  std::unique_ptr<PolicyHost> start(std::string active = "dqn");
  // What one would know that started now, after this one was killed.
  LearnerState after_a_crash(const std::string& policy);
  PolicyHost::Decided answer(PolicyHost& host, uint64_t id, std::shared_ptr<const View> view);
  // Acts on the answer.
  PolicyHost::Decided decide(PolicyHost& host, uint64_t id, const View& view);
  PolicyHost::Decided decide(PolicyHost& host, uint64_t id) {
    return decide(host, id, three_nodes(static_cast<double>(id * 1000)));
  }
  // Decides and rewards ids [from, to).
  void live_through(PolicyHost& host, uint64_t from, uint64_t to);
  // Within half a minute.
  static bool eventually(const std::function<bool()>& condition);

  std::filesystem::path directory_;
};

}  // namespace tierpilot::testing
