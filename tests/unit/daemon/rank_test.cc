// Ranks of a gang on one node: units by number, a port to meet at, and what they find in their
// environment.
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.h"
#include "daemon/agent/tasks/port_hold.h"
#include "daemon/agent/tasks/task_env.h"
#include "task_table_fixture.h"

namespace tierpilot::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RankTest : public TaskTableTest {
 protected:
  static Assignment rank(AttemptId id, uint32_t number, std::vector<uint32_t> units = {}) {
    auto assignment = work(id);
    assignment.rank =
        RankAssignment{.gang = 9,
                       .rank = number,
                       .world_size = 2,
                       .place = {.node_rank = number, .cpu_units = std::move(units), .gpus = {}},
                       .master_address = "10.0.0.1",
                       .master_port = static_cast<uint16_t>(number == 0 ? 0 : 4000),
                       .restarts = 3};
    return assignment;
  }
};

bool can_be_bound(uint16_t port) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

TEST_F(RankTest, GetsTheUnitsThatItWasGivenAndTellsWhich) {
  ASSERT_TRUE(table.start(rank(kFirst, 1, {1})));
  EXPECT_THAT(runner.cpus[kFirst], ElementsAre(5));
  table.started(kFirst, 77);
  const auto started = events<StartedEvent>();
  ASSERT_EQ(started.size(), 1u);
  EXPECT_THAT(started[0].cpu_units, ElementsAre(1u));
}

TEST_F(RankTest, TakesTheNextBestUnitWhereTheBestIsBusyAndWaitsForNoneButItsOwn) {
  ASSERT_TRUE(table.start(work(kFirst)));  // on unit 0
  ASSERT_TRUE(table.start(rank(kSecond, 1, {0, 1})));
  EXPECT_THAT(runner.cpus[kSecond], ElementsAre(5));
  table.exited(kSecond, exit_code(0));
  ASSERT_TRUE(table.start(rank(kThird, 1, {0})));
  EXPECT_THAT(runner.launched, ElementsAre(kFirst, kSecond)) << "unit 1 is not one of its own";
  table.exited(kFirst, exit_code(0));
  EXPECT_THAT(runner.cpus[kThird], ElementsAre(4));
}

TEST_F(RankTest, OfUnitsThatTheNodeHasNotIsRefused) {
  const auto refused = table.start(rank(kFirst, 1, {7, 8}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(runner.launched, IsEmpty());
}

TEST_F(RankTest, TheFirstFindsAPortThatIsFreeWhenItStartsAndNobodyElsesBefore) {
  ASSERT_TRUE(table.start(work({8, 1}, 2)));  // all units: the rank has to wait
  ASSERT_TRUE(table.start(rank(kFirst, 0)));
  ASSERT_TRUE(table.start(rank(kSecond, 0)));
  const uint16_t port = table.attempts().master_port(kFirst);
  EXPECT_NE(port, 0);
  EXPECT_NE(table.attempts().master_port(kSecond), port);
  EXPECT_FALSE(can_be_bound(port));
  ASSERT_TRUE(table.start(rank(kFirst, 0))) << "a repeated call";
  EXPECT_EQ(table.attempts().master_port(kFirst), port);
  table.exited({8, 1}, exit_code(0));
  EXPECT_TRUE(can_be_bound(port));
}

TEST_F(RankTest, OthersAreToldWhereTheFirstIs) {
  ASSERT_TRUE(table.start(rank(kFirst, 1)));
  EXPECT_EQ(table.attempts().master_port(kFirst), 4000);
  EXPECT_EQ(table.attempts().master_port(kThird), 0) << "unknown";
}

TEST_F(RankTest, ItsEnvironmentIsWhatPyTorchLooksForAndNoTaskCanChangeIt) {
  auto assignment = rank(kFirst, 1);
  assignment.env = {{"RANK", "5"}, {"CUDA_VISIBLE_DEVICES", "0,1"}, {"OWN", "kept"}};
  assignment.rank->place.gpus = {"GPU-a", "GPU-b"};
  const auto list = task_environment(assignment, {}, {4}, "n1", "/srv/1-1");
  const std::map<std::string, std::string> env(list.begin(), list.end());
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"RANK", "1"},
                                          {"WORLD_SIZE", "2"},
                                          {"LOCAL_RANK", "0"},
                                          {"LOCAL_WORLD_SIZE", "1"},
                                          {"NODE_RANK", "1"},
                                          {"MASTER_ADDR", "10.0.0.1"},
                                          {"MASTER_PORT", "4000"},
                                          {"CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"},
                                          {"TIERPILOT_GANG", "9"},
                                          {"TIERPILOT_RESTARTS", "3"},
                                          {"OWN", "kept"}})
    EXPECT_EQ(env.at(name), value) << name;
}

}  // namespace
}  // namespace tierpilot::agent
