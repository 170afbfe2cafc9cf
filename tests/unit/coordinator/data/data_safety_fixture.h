// Nodes that come and go with replicas, and stores that break.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {

class DataSafetyTest : public CoreTest {
 protected:
  uint64_t submit_writer(const std::string& name = "w") {
    auto writer = spec(name);
    writer.datasets = {{"d", true}};
    return submit({writer})->first_task;
  }
  static TaskExit wrote(uint64_t version, uint64_t content = 0) {
    auto exit = success();
    exit.written = {{"d", version, 4096, {0, content}}};
    return exit;
  }
  void lose_all_nodes() {
    clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
    membership_->expire();
  }
  using Replicas = std::vector<std::pair<std::string, ReplicaState>>;
  std::shared_ptr<FakeNode> come_back(const std::string& name, uint64_t instance,
                                      const Replicas& replicas, std::set<AttemptId> live = {}) {
    auto link = std::make_shared<FakeNode>();
    EXPECT_TRUE(membership_->join(facts(name, instance), link, replicas, live));
    return link;
  }
  void break_store(const char* sql) {
    store_->write([sql](Db& db) { return db.execute(sql); }, nullptr);
    flush();
  }
  Status remove(const std::string& name) {
    std::optional<Status> removed;
    datasets_->remove(name, [&](Status status) { removed = std::move(status); });
    EXPECT_TRUE(posts_.run_until([&] { return removed.has_value(); }));
    return *removed;
  }
};

}  // namespace tierpilot::testing
