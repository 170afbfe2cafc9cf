// The model's variable parts as JSON, as they stand in the store.
#pragma once

#include "base/result.h"
#include "coordinator/model.h"

namespace tierpilot {

std::string spec_text(const TaskSpec& spec);
std::string exit_text(const TaskExit& exit);
std::string served_text(const ServedData& served);
std::string rank_text(const RankOf& rank);
std::string share_text(const UnitShare& share);
std::string reward_text(const RewardRecord& reward);
// Without what the network saw and without the reward: those are columns of their own.
std::string decision_text(const DecisionRecord& decision);
// kInvalid when the text is not what the functions above write (a store from elsewhere).
Result<TaskSpec> parse_spec(const std::string& text);
Result<TaskExit> parse_exit(const std::string& text);
Result<ServedData> parse_served(const std::string& text);
Result<RankOf> parse_rank(const std::string& text);
Result<UnitShare> parse_unit_share(const std::string& text);
Result<RewardRecord> parse_reward(const std::string& text);
Result<DecisionRecord> parse_decision(const std::string& text);

}  // namespace tierpilot
