#include "policies/gang/rates/history_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <ctime>
#include <fstream>
#include <thread>

namespace tierpilot::gang {
namespace {

class HistoryFilesTest : public testing::Test {
 protected:
  ~HistoryFilesTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file(const std::string& name, const std::string& text) {
    std::filesystem::create_directory(folder_);
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

 private:
  const std::filesystem::path folder_ =
      testing::TempDir() + "history-" + std::to_string(::getpid());
};

TEST_F(HistoryFilesTest, FurtherColumnsAreGroups) {
  const auto history = read_failure_history(
      {.failures =
           file("a.csv", "kind,device,time_days,node,model\nxid,d1,3.5,n1,A\necc,d2,9,n1,B\n")});
  ASSERT_TRUE(history.has_value()) << history.error().message;
  ASSERT_EQ(history->columns.size(), 2U);
  EXPECT_EQ(history->columns[0].name, "node");
  EXPECT_EQ(history->columns[1].levels, (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(history->kinds.size(), 2U);
  EXPECT_EQ(history->failures[0].day, 3.5);
  EXPECT_FALSE(history->whole_fleet);
}

// As from "/dev/stdin": it is read once.
TEST_F(HistoryFilesTest, APipeHasGroupsToo) {
  const auto pipe = file("pipe", "");
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "device,time_days,model\nd1,3.5,A\nd2,9,B\n"; });
  const auto history = read_failure_history({.failures = pipe});
  writer.join();
  ASSERT_TRUE(history.has_value()) << history.error().message;
  ASSERT_EQ(history->columns.size(), 1U);
  EXPECT_EQ(history->columns[0].name, "model");
}

TEST_F(HistoryFilesTest, EmptyLinesBeforeTheNamesOfColumnsDoNotCount) {
  const auto history = read_failure_history(
      {.failures = file("e.csv", "\ndevice,time_days,model\nd1,3.5,A\nd2,9,B\n")});
  ASSERT_TRUE(history.has_value()) << history.error().message;
  ASSERT_EQ(history->columns.size(), 1U);
  EXPECT_EQ(history->columns[0].name, "model");
}

TEST_F(HistoryFilesTest, InstallationsSayWhoWasInServiceWhen) {
  const auto history = read_failure_history(
      {.failures = file("b.csv", "time_days,device,node,kind\n5,d1,n1,xid\n"),
       .installed =
           file("b2.csv", "device,node,start_day,end_day,batch\nd1,n1,0,5,x\nd2,n2,2,,y\n")});
  ASSERT_TRUE(history.has_value()) << history.error().message;
  EXPECT_TRUE(history->whole_fleet);
  ASSERT_EQ(history->services.size(), 2U);
  EXPECT_EQ(history->services[1].begin_day, 2);
  EXPECT_EQ(history->services[1].end_day, 5);
  EXPECT_EQ(history->outside_service, 0U);
  EXPECT_EQ(history->columns[1].name, "batch");
}

TEST_F(HistoryFilesTest, TheOrderOfItsRowsMakesNoDifference) {
  const std::string head = "node,start_day,end_day\n", healthy = "c,,\n";
  const std::vector<std::string> rows{"a,9,10\n", healthy, "a,1,4\n", "b,2,3\n"};
  std::vector<double> days;
  for (const auto& order : {std::vector<size_t>{0, 1, 2, 3}, {2, 3, 0, 1}, {1, 2, 3, 0}}) {
    std::string text = head;
    for (const size_t row : order) text += rows[row];
    const auto history = read_failure_history({.failures = file("o.csv", text)});
    ASSERT_TRUE(history.has_value()) << history.error().message;
    double in_service = 0;
    for (const auto& service : history->services)
      if (history->units[service.unit] == "a") in_service += service.end_day - service.begin_day;
    days.push_back(in_service);
  }
  EXPECT_EQ(days[0], days[1]);
  EXPECT_EQ(days[0], days[2]);
}

TEST_F(HistoryFilesTest, AUnitUnderRepairIsNotInService) {
  const auto history = read_failure_history(
      {.failures = file("c.csv",
                        "node,start_day,end_day,level,class,description\n"
                        "a,1,4,Hardware,GPU,x\na,6,,Hardware,GPU,y\nb,2,10,Hardware,NIC,z\n"),
       .fleet = 4});
  ASSERT_TRUE(history.has_value()) << history.error().message;
  EXPECT_EQ(history->units.size(), 4U);
  EXPECT_TRUE(history->columns.empty());
  double days = 0;
  for (const auto& service : history->services)
    if (history->units[service.unit] == "a") days += service.end_day - service.begin_day;
  EXPECT_EQ(days, 2);
}

TEST_F(HistoryFilesTest, NoTimeInServiceCountsTwice) {
  const auto failures = file("f.csv", "time_days,device\n1,a\n90,b\n");
  const auto expect_days = [&](const std::string& rows, double days, uint64_t overlapping) {
    const auto installed = file("i.csv", "device,start_day,end_day\n" + rows);
    const auto history = read_failure_history({.failures = failures, .installed = installed});
    ASSERT_TRUE(history.has_value()) << history.error().message;
    for (const auto& service : history->services) days -= service.end_day - service.begin_day;
    EXPECT_NEAR(days, 0, 1e-9) << rows;
    EXPECT_EQ(history->overlapping_services, overlapping) << rows;
  };
  expect_days("a,0,50\na,50,100\nb,0,100\n", 200, 0);
  expect_days("a,0,100\na,0,100\nb,0,100\n", 200, 1);
  expect_days("a,40,100\na,0,50\nb,0,100\n", 200, 1);
  expect_days("a,0,\na,20,30\na,25,100\nb,0,100\n", 200, 2);
}

TEST_F(HistoryFilesTest, WhatIsWrongIsSaidWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"time_days,device,node,kind\nsoon,d,n,x\n", ":2: column 1: 'soon'"},
      {"time_days,device\n3,\n", ":2: this row names no unit"},
      {"time_days,kind\n3,x\n", "device"},
      {"time_days,device\n", "has no failure"},
      {"time_days,device\n3,d\n", "all failures are at day 3"},
      {"node,start_day,end_day\na,5,3\n", "before it begins"}};
  for (const auto& [text, said] : cases) {
    const auto history = read_failure_history({.failures = file("d.csv", text)});
    ASSERT_FALSE(history.has_value()) << text;
    EXPECT_NE(history.error().message.find(said), std::string::npos) << history.error().message;
  }
}

// Each short row had a cell of every column: 43 KB took gigabytes.
TEST_F(HistoryFilesTest, ColumnsThatNoRowHasTakeNothing) {
  std::string text = "device,time_days";
  for (int column = 0; column < 9000; ++column) text += ",c";
  text += '\n';
  for (int row = 0; row < 20'000; ++row) text += fmt::format("d{},{}\n", row, row);
  const auto wide = file("wide.csv", text);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const auto history = read_failure_history({.failures = wide});
  getrusage(RUSAGE_SELF, &after);
  ASSERT_FALSE(history) << "180 million levels";
  EXPECT_NE(history.error().message.find("9000 groups of 20000 services"), std::string::npos)
      << history.error().message;
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 256 << 10) << "KiB";
}

// Each failure looked at all services of its unit: 3 MB took 16 s.
TEST_F(HistoryFilesTest, ManyRepairsOfOneUnitTakeTheirNumber) {
  std::string text = "device,start_day,end_day\n";
  constexpr int kRepairs = 200'000;
  for (int repair = 0; repair < kRepairs; ++repair)
    text += fmt::format("d,{},{}\n", 3 * repair, 3 * repair + 1);
  const auto began = std::clock();
  const auto history = read_failure_history({.failures = file("long.csv", text)});
  ASSERT_TRUE(history.has_value()) << history.error().message;
  EXPECT_EQ(history->outside_service, 0U);
  EXPECT_LT(std::clock() - began, 8 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace tierpilot::gang
