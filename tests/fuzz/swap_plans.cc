// What a program has learned of its steps, as the next run reads it.
#include "base/content_digest.h"
#include "policies/swap/learning/kept_plans.h"
#include "policies/swap/learning/merged_plans.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

namespace {

constexpr const char* kSettings = "fuzz";

// With the magic and the checksum that belong to it.
std::string plan_file(std::string_view body) {
  const auto empty = swap::write_plans({}, kSettings);
  const auto digest = to_string(digest_of(body));
  const auto magic = empty.substr(0, empty.find('\n') - digest.size());
  return magic + digest + "\n" + std::string(body);
}

}  // namespace

FUZZ(plan_file) {
  const auto plans = swap::read_plans(plan_file(bytes), kSettings);
  if (!plans) return;
  const auto written = swap::write_plans(*plans, kSettings);
  const auto again = swap::read_plans(written, kSettings);
  fuzz::promise(again && swap::write_plans(*again, kSettings) == written,
                "plans that are read and written are the same plans");
  swap::merged(*plans, *again);
}
