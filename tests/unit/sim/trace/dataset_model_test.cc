#include "policies/sim/model/dataset_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tierpilot::sim {
namespace {

Workload jobs(std::vector<int> of_user) {
  Workload workload;
  for (uint32_t user = 0; user < of_user.size(); ++user) {
    workload.users.push_back("u" + std::to_string(user));
    for (int i = 0; i < of_user[user]; ++i)
      workload.tasks.push_back({.arrival_ns = i, .operations = 1, .units = 2, .user = user});
  }
  return workload;
}

Workload modelled(std::vector<int> of_user, const DatasetModel& model) {
  auto workload = jobs(std::move(of_user));
  const auto done = add_datasets(workload, model);
  EXPECT_TRUE(done) << done.error().message;
  return workload;
}

std::vector<std::vector<uint32_t>> used(const Workload& workload, uint32_t user) {
  std::vector<std::vector<uint32_t>> result;
  for (const auto& task : workload.tasks)
    if (task.user == user) {
      result.emplace_back();
      for (const auto& use : workload.uses_of(task)) result.back().push_back(use.dataset);
    }
  return result;
}

TEST(DatasetModel, EqualSeedsEqualResult) {
  const auto one = modelled({500, 20}, {.seed = 7});
  const auto same = modelled({500, 20}, {.seed = 7});
  const auto other = modelled({500, 20}, {.seed = 8});
  const auto bytes = [](const Workload& workload) {
    std::vector<uint64_t> all;
    for (const auto& dataset : workload.datasets) all.push_back(dataset.bytes);
    for (const auto& use : workload.uses) all.push_back(2 * use.dataset + use.write);
    for (const auto& task : workload.tasks) all.push_back(task.memory_bytes);
    return all;
  };
  EXPECT_EQ(bytes(one), bytes(same));
  EXPECT_NE(bytes(one), bytes(other));
}

TEST(DatasetModel, AnotherUsersTasksChangeNothing) {
  const DatasetModel model{.shared_datasets = 0};
  const auto alone = modelled({100}, model);
  const auto beside = modelled({100, 1000}, model);
  EXPECT_EQ(used(alone, 0), used(beside, 0));
}

TEST(DatasetModel, UsersHaveDatasetsOfTheirOwn) {
  const auto workload = modelled({800, 80}, {.tasks_per_dataset = 8, .shared_datasets = 0});
  EXPECT_EQ(workload.datasets.size(), 110u);
  std::set<uint32_t> of[2];
  for (uint32_t user : {0u, 1u})
    for (const auto& uses : used(workload, user)) of[user].insert(uses.begin(), uses.end());
  for (const auto dataset : of[0]) EXPECT_FALSE(of[1].contains(dataset));
  EXPECT_GT(of[0].size(), 60u);
}

TEST(DatasetModel, PopularityIsZipf) {
  const auto workload = modelled({200'000}, {.tasks_per_dataset = 2000,
                                             .shared_datasets = 0,
                                             .zipf_slope = 1,
                                             .repeat = 0,
                                             .another = 0});
  std::map<uint32_t, double> count;
  for (const auto& use : workload.uses) ++count[use.dataset];
  EXPECT_NEAR(count[0] / count[9], 10, 1);
  EXPECT_NEAR(count[0] / count[1], 2, 0.1);
}

TEST(DatasetModel, SizesAreLogNormalWithinBounds) {
  const DatasetModel model{.tasks_per_dataset = 1,
                           .median_bytes = 1e9,
                           .sigma = 1.4,
                           .min_bytes = 1 << 20,
                           .max_bytes = uint64_t{1} << 36};
  const auto workload = modelled({20'000}, model);
  std::vector<double> logs;
  for (const auto& dataset : workload.datasets) {
    EXPECT_GE(dataset.bytes, model.min_bytes);
    EXPECT_LE(dataset.bytes, model.max_bytes);
    logs.push_back(std::log(static_cast<double>(dataset.bytes)));
  }
  std::ranges::sort(logs);
  const auto quantile = [&](double q) { return logs[static_cast<size_t>(q * logs.size())]; };
  EXPECT_NEAR(quantile(0.5), std::log(1e9), 0.05);
  EXPECT_NEAR(quantile(0.8413) - quantile(0.5), 1.4, 0.06);
  EXPECT_NEAR(quantile(0.5) - quantile(0.1587), 1.4, 0.06);
}

TEST(DatasetModel, RepeatsWritesAndSharesAreAsOftenAsAsked) {
  const auto workload = modelled({50'000}, {.shared_datasets = 10,
                                            .repeat = 0.6,
                                            .shared = 0.25,
                                            .another = 0.5,
                                            .max_per_task = 3,
                                            .write = 0.3});
  const auto all = used(workload, 0);
  double repeats = 0, shared = 0, draws = 0, most = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    most = std::max<double>(most, all[i].size());
    if (all[i] == all[i - 1]) {
      ++repeats;
    } else {
      ++draws;
      shared += all[i][0] < 10;
    }
  }
  EXPECT_NEAR(repeats / 50'000, 0.6, 0.03);
  EXPECT_NEAR(shared / draws, 0.25, 0.03);
  EXPECT_EQ(most, 3);
  double writes = 0;
  for (const auto& use : workload.uses) {
    writes += use.write;
    EXPECT_FALSE(use.write && use.dataset < 10) << "nobody writes what is shared";
  }
  EXPECT_NEAR(writes / 50'000, 0.3 * 0.75, 0.02);
}

TEST(DatasetModel, MemoryIsKeptWhereTheTraceTellsIt) {
  auto workload = jobs({10});
  workload.tasks[3].memory_bytes = 77;
  ASSERT_TRUE(add_datasets(workload, {}));
  EXPECT_EQ(workload.tasks[3].memory_bytes, 77u);
  EXPECT_GT(workload.tasks[4].memory_bytes, 1u << 20);
  workload = jobs({10});
  ASSERT_TRUE(add_datasets(workload, {.memory_median_bytes = 0}));
  EXPECT_EQ(workload.tasks[4].memory_bytes, 0u);
}

TEST(DatasetModel, WrongParametersAreNamed) {
  for (const auto& [model, name] : std::vector<std::pair<DatasetModel, const char*>>{
           {{.tasks_per_dataset = 0}, "tasks_per_dataset"},
           {{.zipf_slope = NAN}, "zipf_slope"},
           {{.repeat = 1.5}, "repeat"},
           {{.another = 1}, "another"},
           {{.max_per_task = 0}, "max_per_task"},
           {{.sigma = -1}, "sigma"},
           {{.min_bytes = 2, .max_bytes = 1}, "min_bytes"}}) {
    auto workload = jobs({1});
    const auto done = add_datasets(workload, model);
    ASSERT_FALSE(done) << name;
    EXPECT_THAT(done.error().message, testing::HasSubstr(name));
  }
}

}  // namespace
}  // namespace tierpilot::sim
