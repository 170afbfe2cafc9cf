#include "swap/tiers/given.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/bytes.h"
#include "policies/swap/graph_builder.h"
#include "swap/tiers/tier_list.h"

namespace tierpilot::swap {
namespace {

constexpr int kMostWorkers = 4096;

std::string_view variable(const char* name) {
  const char* const said = std::getenv(name);
  return said ? said : "";
}

}  // namespace

int workers_of_this_program() {
  // torch.distributed.run of PyTorch 1.13 and 2.x sets it; nobody else's world is of one program.
  if (variable("TORCHELASTIC_RUN_ID").empty()) return 1;
  const auto said = variable("LOCAL_WORLD_SIZE");
  int workers = 1;
  const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), workers);
  const bool whole = error == std::errc() && end == said.data() + said.size();
  return whole && workers >= 1 && workers <= kMostWorkers ? workers : 1;
}

Result<int64_t> given_budget_bytes(const ComputeDevice& device, int workers) {
  const auto said = variable("TIERPILOT_SWAP_BUDGET");
  if (said.empty())
    return fail(ErrorCode::kInvalid,
                "the budget has to be above 0, or TIERPILOT_SWAP_BUDGET has to be set");
  const auto bytes = parse_bytes(said);
  if (!bytes || *bytes == 0 || *bytes > static_cast<uint64_t>(kMaxBytes))
    return fail(
        ErrorCode::kInvalid,
        fmt::format("TIERPILOT_SWAP_BUDGET '{}': a budget is a size, such as '4GiB'", said));
  return std::max<int64_t>(1, static_cast<int64_t>(*bytes) / device.sharers(workers));
}

Result<std::vector<std::unique_ptr<Tier>>> given_tiers(const ComputeDevice& device, int workers,
                                                       int64_t host_bytes) {
  const auto said = variable("TIERPILOT_SWAP_TIERS");
  return said.empty() ? found_tiers(device, workers, host_bytes)
                      : tiers_of(said, pages_for(device), workers);
}

}  // namespace tierpilot::swap
