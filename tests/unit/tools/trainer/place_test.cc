// The rank's place in its gang, from the environment.
#include "tools/trainer/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tierpilot::trainer {
namespace {

using ::testing::HasSubstr;

Result<Place> place_in(const std::map<std::string, std::string>& environment) {
  return place_of([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(Place, WithoutAWorldItIsAlone) {
  for (const auto& environment : std::vector<std::map<std::string, std::string>>{
           {}, {{"WORLD_SIZE", ""}}, {{"WORLD_SIZE", "1"}, {"RANK", "0"}}}) {
    const auto place = place_in(environment);
    ASSERT_TRUE(place) << place.error().message;
    EXPECT_TRUE(place->alone());
    EXPECT_EQ(place->rank, 0u);
  }
}

TEST(Place, IsWhatTierpilotSays) {
  const auto place = place_in({{"RANK", "2"},
                               {"WORLD_SIZE", "3"},
                               {"MASTER_ADDR", "10.0.0.1"},
                               {"MASTER_PORT", "4000"},
                               {"GLOO_SOCKET_IFNAME", "lo"}});
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_FALSE(place->alone());
  EXPECT_EQ(place->rank, 2u);
  EXPECT_EQ(place->world, 3u);
  EXPECT_EQ(place->master_host, "10.0.0.1");
  EXPECT_EQ(place->master_port, 4000);
  EXPECT_EQ(place->network_interface, "lo");
}

TEST(Place, WhatIsWrongIsNamed) {
  const std::map<std::string, std::string> right{
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}};
  const std::pair<const char*, const char*> wrong[] = {
      {"RANK", "2"},          {"RANK", ""},
      {"RANK", "-1"},         {"RANK", "1x"},
      {"WORLD_SIZE", "0"},    {"WORLD_SIZE", "a"},
      {"MASTER_PORT", ""},    {"MASTER_PORT", "0"},
      {"MASTER_PORT", "1e4"}, {"MASTER_PORT", "65536"},
      {"MASTER_ADDR", ""},    {"WORLD_SIZE", "99999999999999999999999"}};
  for (const auto& [name, value] : wrong) {
    auto environment = right;
    environment[name] = value;
    const auto place = place_in(environment);
    ASSERT_FALSE(place) << name << "=" << value;
    EXPECT_EQ(place.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(place.error().message, HasSubstr(name));
  }
}

}  // namespace
}  // namespace tierpilot::trainer
