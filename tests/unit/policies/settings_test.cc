#include "policies/placement/published/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/learning/training_pace.h"
#include "policies/placement/dqn/settings.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

TEST(PublishedSettings, DefaultsAndPublishedValuesAreValid) {
  EXPECT_TRUE(validate(PublishedSettings{}));
  EXPECT_TRUE(validate(PublishedSettings::published()));
}

TEST(PublishedSettings, PublishedHasThePublishedValues) {
  const PublishedSettings s = PublishedSettings::published();
  EXPECT_EQ(s.network.width, 512);
  EXPECT_EQ(s.network.layers, 2);
  EXPECT_EQ(s.network.heads, 4);
  EXPECT_EQ(s.network.feed_forward, 2048);
  EXPECT_EQ(s.network.dropout, 0.25);
  EXPECT_EQ(s.replay_capacity, 1024u);
  EXPECT_EQ(s.train_start, 1024u);
  EXPECT_EQ(s.batch, 128u);
  EXPECT_EQ(s.batches_per_step, 8u);
  EXPECT_EQ(s.gamma, 0.9);
  EXPECT_EQ(s.epsilon, 0.05);
  EXPECT_EQ(s.copy_interval, 1024u);
  EXPECT_TRUE(s.delete_drawn);
  EXPECT_EQ(s.optimizer, OptimizerKind::kSgd);
  EXPECT_EQ(s.loss, LossForm::kPublished);
}

TEST(PublishedSettings, ReadsATable) {
  auto reader = ConfigReader::parse(R"(
[dqn-published]
preset = "published"
loss = "weighted"
gamma = 0.5
width = 64
)",
                                    "t.toml");
  ASSERT_TRUE(reader);
  const PublishedSettings s = read_published_settings(reader->section("dqn-published"));
  EXPECT_TRUE(reader->finish());
  EXPECT_EQ(s.loss, LossForm::kWeighted);
  EXPECT_EQ(s.gamma, 0.5);
  EXPECT_EQ(s.network.width, 64);
  EXPECT_TRUE(s.delete_drawn) << "from the preset";
}

TEST(PublishedSettings, NamesWhatCannotBe) {
  auto reader = ConfigReader::parse(R"(
[dqn-published]
optimizer = "magic"
width = 30
heads = 4
outputs = 129
)",
                                    "t.toml");
  ASSERT_TRUE(reader);
  read_published_settings(reader->section("dqn-published"));
  const Status status = reader->finish();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("'magic' is none of: sgd, adam"));
  EXPECT_THAT(status.error().message, HasSubstr("width 30 is not a multiple of heads 4"));
  EXPECT_THAT(status.error().message, HasSubstr("dqn-published.outputs"));
}

TEST(DqnSettings, ReadsATableAndNamesWhatCannotBe) {
  EXPECT_TRUE(validate(DqnSettings{}));
  auto reader = ConfigReader::parse(R"(
[dqn]
leave_out = ["gpu", "speed"]
gamma = 0.3
return_steps = 8
)",
                                    "t.toml");
  ASSERT_TRUE(reader);
  const DqnSettings s = read_dqn_settings(reader->section("dqn"));
  EXPECT_TRUE(reader->finish());
  EXPECT_EQ(s.features, without(FeatureGroup::kGpu) & without(FeatureGroup::kSpeed));
  EXPECT_EQ(s.gamma, 0.3);
  EXPECT_EQ(s.return_steps, 8u);

  auto wrong = ConfigReader::parse("[dqn]\nleave_out = [\"colour\"]\nbatch = 9999\n", "t.toml");
  ASSERT_TRUE(wrong);
  read_dqn_settings(wrong->section("dqn"));
  const Status status = wrong->finish();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("'colour' is none of: time, load"));
  EXPECT_THAT(status.error().message, HasSubstr("train_start"));

  auto old = ConfigReader::parse("[dqn]\nremembered_tokens = 64\n", "t.toml");
  ASSERT_TRUE(old);
  read_dqn_settings(old->section("dqn"));
  const Status renamed = old->finish();
  ASSERT_FALSE(renamed);
  EXPECT_THAT(renamed.error().message, HasSubstr("remembered_tokens: is now 'tokens'"));
}

TEST(DqnSettings, GivenWeightsAreTheDefaultWhereTheyFit) {
  const auto weights = [](const char* text) {
    auto reader = ConfigReader::parse(text, "t.toml");
    return read_dqn_settings(reader->section("dqn"), "/usr/share/x").weights;
  };
  EXPECT_EQ(weights(""), "/usr/share/x");
  EXPECT_EQ(weights("[dqn]\nweights = \"\"\n"), "");
  EXPECT_EQ(weights("[dqn]\nweights = \"/y\"\n"), "/y");
  EXPECT_EQ(weights("[dqn]\nleave_out = [\"gpu\"]\n"), "") << "they were trained on all features";
}

TEST(TrainingPace, HasASectionAndStillReadsTheKeysOfEarlierFiles) {
  auto reader = ConfigReader::parse("[training]\nnice = 3\ncpu_share = 0.5\n", "t.toml");
  ASSERT_TRUE(reader);
  const TrainingPace pace = read_training_pace(*reader);
  EXPECT_TRUE(reader->finish());
  EXPECT_TRUE(reader->hints().empty());
  EXPECT_EQ(pace.nice, 3);
  EXPECT_EQ(pace.cpu_share, 0.5);
  EXPECT_EQ(pace.decisions_per_s, TrainingPace{}.decisions_per_s);

  auto before = ConfigReader::parse(
      "[training]\nnice = 3\n[dqn]\ntraining_nice = 5\ntraining_when_idle = true\n"
      "training_decisions_per_s = 20\n",
      "t.toml");
  ASSERT_TRUE(before);
  const TrainingPace old = read_training_pace(*before);
  EXPECT_TRUE(before->finish());
  EXPECT_EQ(old.nice, 3) << "the new key counts";
  EXPECT_TRUE(old.when_idle);
  EXPECT_EQ(old.decisions_per_s, 20);
  ASSERT_EQ(before->hints().size(), 3u);
  EXPECT_EQ(before->hints()[1],
            "t.toml:5: dqn.training_when_idle: is 'when_idle' of [training] now: move it there");

  auto wrong = ConfigReader::parse("[dqn]\ntraining_cpu_share = 7\n", "t.toml");
  ASSERT_TRUE(wrong);
  read_training_pace(*wrong);
  EXPECT_THAT(wrong->finish().error().message, HasSubstr("t.toml:2: dqn.training_cpu_share"));
}

}  // namespace
}  // namespace tierpilot
