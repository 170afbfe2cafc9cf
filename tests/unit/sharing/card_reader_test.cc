#include "policies/sharing/card/card_reader.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"

namespace tierpilot::sharing {
namespace {

using nlohmann::ordered_json;

ModelCard some_card() {
  ModelCard card{.producer = "pytorch 2.1",
                 .batch = 32,
                 .input_elements = 1024,
                 .parameters = 4000,
                 .parameter_bytes = 16000,
                 .parameter_tensors = 4,
                 .activation_bytes = 1e6,
                 .traffic_bytes = 3e6,
                 .flops = 5e8,
                 .depth = 12,
                 .launches = 20,
                 .unknown_operators = {{"lgamma", 2}}};
  card.operators["MatMul"] = {2, 1024, 2048, 640, 4000, 5e8};
  card.job = JobCard{.iterations = 1000,
                     .optimizer = "Adam",
                     .samples_per_s = 640,
                     .loads_ahead = true,
                     .threads = 1};
  return card;
}

ordered_json some_json() {
  auto value = card_json(some_card());
  value["schema"] = 1;
  return value;
}

TEST(CardReader, ReadsWhatIsWritten) {
  const auto card = read_card(some_json().dump());
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card_json(*card), card_json(some_card()));
  EXPECT_EQ(card->job->loading_s(card->batch), 0.05);
}

TEST(CardReader, TheJobIsOptional) {
  auto value = some_json();
  value.erase("job");
  const auto card = read_card(value.dump());
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_FALSE(card->job);
}

void refuses(const ordered_json& value, const std::string& word) {
  const auto card = read_card(value.dump());
  ASSERT_FALSE(card) << value.dump();
  EXPECT_EQ(card.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(card.error().message.starts_with("model card"))
      << "whoever asks names it: " << card.error().message;
  EXPECT_NE(card.error().message.find(word), std::string::npos) << card.error().message;
}

TEST(CardReader, NamesWhatIsWrong) {
  const auto with = [](const char* at, const ordered_json& what) {
    auto value = some_json();
    value[ordered_json::json_pointer(at)] = what;
    return value;
  };
  refuses(with("/schema", 2), "schema");
  refuses(with("/kind", "card"), "kind");
  refuses(with("/batch", 0), "batch");
  refuses(with("/batch", 1.5), "batch");
  refuses(with("/flops", -1), "flops");
  refuses(with("/flops", "many"), "flops");
  refuses(with("/flops", 1e300), "flops");
  refuses(with("/operators", ordered_json::array()), "operators");
  refuses(with("/operators/MatMul/count", nullptr), "MatMul");
  refuses(with("/operators/MatMul/colour", 1), "colour");
  refuses(with("/unknown_operators/lgamma", -3), "lgamma");
  refuses(with("/uncertain", false), "uncertain");
  refuses(with("/guessed", 3), "guessed");
  refuses(with("/job/iteration", 5), "iteration");
  refuses(with("/job/samples_per_s", 0), "samples_per_s");
  refuses(with("/job/loads_ahead", 1), "loads_ahead");
  refuses(with("/job/iterations", 0), "'iterations' of 0");
  refuses(with("/job/threads", 0), "'threads' of 0");
  refuses(with("/other", 1), "other");
  for (const char* name : {"schema", "kind", "batch", "operators", "flops", "depth", "uncertain"}) {
    auto value = some_json();
    value.erase(name);
    refuses(value, name);
  }
}

TEST(CardReader, RefusesWhatIsTooLargeOrTooDeepOrNoJson) {
  EXPECT_FALSE(read_card(""));
  EXPECT_FALSE(read_card("[]"));
  EXPECT_FALSE(read_card("{\"schema\": 1e999}"));
  EXPECT_FALSE(read_card(std::string(kMaxCardBytes + 1, ' ')));
  EXPECT_FALSE(read_card(std::string(60'000, '[')));
  auto nested = some_json().dump();
  EXPECT_FALSE(read_card("{\"operators\": " + std::string(60'000, '{')));
  nested.insert(1,
                "\"x\": \"\\\"[[[[[[[[[[[[\", ");  // brackets in a text are not deep: another error
  const auto card = read_card(nested);
  ASSERT_FALSE(card);
  EXPECT_NE(card.error().message.find("'x'"), std::string::npos) << card.error().message;
}

TEST(CardReader, BrokenBytesNeverCrash) {
  const auto good = some_json().dump();
  SeededRandom random(7);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto text = good;
    for (int k = 0; k < 3; ++k)
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    if (i % 5 == 0) text.resize(random.below(text.size()));
    read += read_card(text).has_value();
  }
  EXPECT_LT(read, 20'000);
}

}  // namespace
}  // namespace tierpilot::sharing
