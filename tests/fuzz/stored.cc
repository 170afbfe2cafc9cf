// What stands in the rows of a coordinator's store, of which a copy may come from anywhere.
#include "coordinator/job_point.h"
#include "coordinator/model_json.h"
#include "coordinator/records/past_runs.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

namespace {

template <class Value>
void kept(std::string_view bytes, Result<Value> (*parse)(const std::string&),
          std::string (*text_of)(const Value&)) {
  const auto value = parse(std::string(bytes));
  if (!value) return;
  const auto text = text_of(*value);
  const auto again = parse(text);
  fuzz::promise(again && text_of(*again) == text, "a row that is read and written is the same row");
}

}  // namespace

// One text for all: a row of one column is none of another.
FUZZ(stored_row) {
  kept(bytes, parse_spec, spec_text);
  kept(bytes, parse_exit, exit_text);
  kept(bytes, parse_served, served_text);
  kept(bytes, parse_rank, rank_text);
  kept(bytes, parse_unit_share, share_text);
  kept(bytes, parse_reward, reward_text);
  kept(bytes, parse_decision, decision_text);
  kept(bytes, parse_job_points, job_points_text);
  kept(bytes, parse_past_runs, past_runs_text);
}
