#include "policies/placement/published/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <boost/crc.hpp>
#include <filesystem>
#include <random>

#include "policies/learning/byte_codec.h"
#include "policies/learning/saved_bytes.h"
#include "tests/unit/policies/experiences.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;
using testing_experiences::experience;
using testing_experiences::observation;

PublishedCheckpoint sample() {
  PublishedCheckpoint checkpoint;
  checkpoint.network.width = 64;
  checkpoint.weights = {0.5F, -1.25F, 3.0F};
  checkpoint.progress = {7, 6, 5, 4, 3.5, 0.25};
  for (int i = 0; i < 4; ++i) checkpoint.experiences.replay.push_back(experience(i));
  checkpoint.experiences.replay[1].seen = checkpoint.experiences.replay[0].next;
  checkpoint.experiences.pending.push_back({99, observation(5), nullptr, 1, std::nullopt});
  checkpoint.experiences.pending.push_back({100, observation(6), observation(7), 127, -0.5});
  return checkpoint;
}

// Magic, version and checksum as encode_checkpoint writes them, over any body.
std::string with_header(const std::string& body) {
  ByteWriter out;
  for (char c : std::string_view("TPLEARN1")) out.put(c);
  out.put<uint32_t>(1);
  boost::crc_32_type crc;
  crc.process_bytes(body.data(), body.size());
  out.put<uint32_t>(crc.checksum());
  out.put<uint64_t>(body.size());
  return out.take() + body;
}

class CheckpointFile : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ("tierpilot_checkpoint_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path file() const { return directory_ / "learner.checkpoint"; }
  std::filesystem::path directory_;
};

// As `--output dqn.weights` does, in the present folder.
TEST(SavedBytes, GoToABareName) {
  const auto before = std::filesystem::current_path();
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("bare-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::filesystem::current_path(folder);
  EXPECT_TRUE(save_bytes("bare.bin", "abc"));
  EXPECT_EQ(load_bytes("bare.bin").value_or(""), "abc");
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

TEST(PublishedCheckpoint, ComesBackAsItWas) {
  const auto back = decode_checkpoint(encode_checkpoint(sample()));
  ASSERT_TRUE(back) << back.error().message;
  const PublishedCheckpoint& expected = sample();
  EXPECT_EQ(back->network.width, 64);
  EXPECT_EQ(back->weights, expected.weights);
  EXPECT_EQ(back->progress.decisions, 7u);
  EXPECT_DOUBLE_EQ(back->progress.loss, 0.25);
  ASSERT_EQ(back->experiences.replay.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(*back->experiences.replay[i].seen, *expected.experiences.replay[i].seen);
    EXPECT_EQ(*back->experiences.replay[i].next, *expected.experiences.replay[i].next);
    EXPECT_EQ(back->experiences.replay[i].reward, expected.experiences.replay[i].reward);
  }
  EXPECT_EQ(back->experiences.replay[1].seen, back->experiences.replay[0].next)
      << "shared before, shared after";
  ASSERT_EQ(back->experiences.pending.size(), 2u);
  EXPECT_EQ(back->experiences.pending[0].id, 99u);
  EXPECT_EQ(back->experiences.pending[0].next, nullptr);
  EXPECT_FALSE(back->experiences.pending[0].reward);
  EXPECT_EQ(back->experiences.pending[1].action, 127u);
  EXPECT_EQ(back->experiences.pending[1].reward, -0.5);
}

TEST(PublishedCheckpoint, EveryTruncationIsRefused) {
  const std::string bytes = encode_checkpoint(sample());
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 50)
    EXPECT_FALSE(decode_checkpoint(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(decode_checkpoint(bytes + "x"));
}

TEST(PublishedCheckpoint, EveryFlippedBitIsRefused) {
  std::string bytes = encode_checkpoint(sample());
  std::mt19937_64 generator(1);
  for (int i = 0; i < 500; ++i) {
    const size_t at = generator() % bytes.size();
    const char old = bytes[at];
    bytes[at] = static_cast<char>(old ^ (1 << generator() % 8));
    EXPECT_FALSE(decode_checkpoint(bytes)) << at;
    bytes[at] = old;
  }
}

// A damaged body with a correct checksum: what a hostile file would look like.
TEST(PublishedCheckpoint, NonsenseUnderAGoodChecksumIsRefusedOrReadWhole) {
  std::mt19937_64 generator(2);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = encode_checkpoint(sample());
    constexpr size_t kHeader = 24;
    for (int j = 0; j < 4; ++j)
      bytes[kHeader + generator() % (bytes.size() - kHeader)] = static_cast<char>(generator());
    const std::string fixed = with_header(bytes.substr(kHeader));
    if (const auto read = decode_checkpoint(fixed)) {
      for (const PublishedExperience& entry : read->experiences.replay)
        ASSERT_TRUE(entry.seen && entry.next);
    }
  }
}

TEST(PublishedCheckpoint, SaysWhatIsWrong) {
  EXPECT_THAT(decode_checkpoint("garbage").error().message, HasSubstr("no learner checkpoint"));
  std::string bytes = encode_checkpoint(sample());
  bytes.back() ^= 1;
  EXPECT_THAT(decode_checkpoint(bytes).error().message, HasSubstr("checksum"));
  bytes[8] = 9;
  EXPECT_THAT(decode_checkpoint(bytes).error().message, HasSubstr("version is 9"));
}

TEST_F(CheckpointFile, ReplacesTheOldOneWhole) {
  ASSERT_TRUE(save_bytes(file(), "first"));
  ASSERT_TRUE(save_bytes(file(), "second"));
  const auto back = load_bytes(file());
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, "second");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1)
      << "nothing temporary is left";
}

TEST_F(CheckpointFile, NamesTheFileThatCannotBeUsed) {
  EXPECT_EQ(load_bytes(file()).error().code, ErrorCode::kNotFound);
  const auto folder = load_bytes(directory_);
  EXPECT_EQ(folder.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(folder.error().message, HasSubstr(directory_.string()));
  EXPECT_FALSE(save_bytes(directory_ / "missing" / "x", "x"));
}

}  // namespace
}  // namespace tierpilot
