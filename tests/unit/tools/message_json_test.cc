#include "tools/cluster/message_json.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include "base/text/json_text.h"
#include "rpc/cluster.capnp.h"

namespace tierpilot {
namespace {

TEST(SnakeCase, SplitsAtCapitals) {
  EXPECT_EQ(snake_case("readGbPerS"), "read_gb_per_s");
  EXPECT_EQ(snake_case("p50"), "p50");
  EXPECT_EQ(snake_case("float32OpsPerS"), "float32_ops_per_s");
  EXPECT_EQ(snake_case(""), "");
}

TEST(MessageJson, MeasuresAreNumbersOrNullWithTheReason) {
  capnp::MallocMessageBuilder message;
  auto tier = message.initRoot<wire::Tier>();
  tier.setTier("fast");
  tier.initReadGbPerS().setValue(11.5);
  tier.initWriteGbPerS().setUnavailable("no buffer");
  tier.initLatencyNs().initP50().setValue(80);

  const auto json = message_json(tier.asReader());
  EXPECT_EQ(json["tier"], "fast");
  EXPECT_EQ(json["read_gb_per_s"], 11.5);
  EXPECT_FALSE(json.contains("read_gb_per_s_unavailable"));
  EXPECT_TRUE(json["write_gb_per_s"].is_null());
  EXPECT_EQ(json["write_gb_per_s_unavailable"], "no buffer");
  EXPECT_EQ(json["latency_ns"]["p50"], 80);
}

TEST(MessageJson, WhatWasNotSentIsNeverZero) {
  capnp::MallocMessageBuilder message;
  const auto json = message_json(message.initRoot<wire::Tier>().asReader());
  EXPECT_TRUE(json["read_gb_per_s"].is_null());
  EXPECT_EQ(json["read_gb_per_s_unavailable"], "not reported");
  EXPECT_TRUE(json["latency_ns"].is_null());
}

TEST(MessageJson, InfinityIsNoMeasure) {
  capnp::MallocMessageBuilder message;
  auto tier = message.initRoot<wire::Tier>();
  tier.initReadGbPerS().setValue(1.0 / 0.0);
  const auto json = message_json(tier.asReader());
  EXPECT_TRUE(json["read_gb_per_s"].is_null());
  EXPECT_EQ(json["read_gb_per_s_unavailable"], "not a finite number");
}

TEST(MessageJson, WideNumbersStayNumbers) {
  capnp::MallocMessageBuilder message;
  auto task = message.initRoot<wire::Task>();
  task.setId(UINT64_MAX);
  task.setSubmittedMs(INT64_MIN);
  const auto json = message_json(task.asReader());
  EXPECT_EQ(json["id"].get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(json["submitted_ms"].get<int64_t>(), INT64_MIN);
}

TEST(MessageJson, ShowsOnlyTheSetMemberOfAUnion) {
  capnp::MallocMessageBuilder message;
  auto source = message.initRoot<wire::DatasetSource>();
  auto random = source.initRandom();
  random.setBytes(7);
  random.setSeed(9);
  EXPECT_EQ(message_json(source.asReader()),
            parse_json<nlohmann::ordered_json>(R"({"random": {"bytes": 7, "seed": 9}})"));
}

TEST(MessageJson, ListsOfTextAndOfStructs) {
  capnp::MallocMessageBuilder message;
  auto spec = message.initRoot<wire::TaskSpec>();
  auto argv = spec.initArgv(2);
  argv.set(0, "sh");
  argv.set(1, "-c");
  spec.initDatasets(1)[0].setDataset("genes");
  const auto json = message_json(spec.asReader());
  EXPECT_EQ(json["argv"], (nlohmann::ordered_json{"sh", "-c"}));
  EXPECT_EQ(json["datasets"][0]["dataset"], "genes");
  EXPECT_EQ(json["env"], nlohmann::ordered_json::array());
}

}  // namespace
}  // namespace tierpilot
