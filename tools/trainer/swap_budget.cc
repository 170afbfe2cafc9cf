#include "tools/trainer/swap_budget.h"

#include <exception>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "swap/libtorch/tierpilot_swap_torch.h"

namespace tierpilot::trainer {

struct SwapBudget::Impl {
  Impl(const std::string& size, bool recompute) : scope({.budget = size, .recompute = recompute}) {}
  swap::Scope scope;
};

SwapBudget::SwapBudget(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SwapBudget::SwapBudget(SwapBudget&&) noexcept = default;
SwapBudget::~SwapBudget() = default;

Result<SwapBudget> SwapBudget::of(const std::string& size, bool recompute) {
  if (size.empty()) return SwapBudget(nullptr);
  try {
    return SwapBudget(std::make_unique<Impl>(size, recompute));
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInvalid, std::string("--swap-budget: ") + error.what());
  }
}

std::map<std::string, double> SwapBudget::measures() const {
  std::map<std::string, double> shown;
  if (!impl_) return shown;
  const auto said = parse_json<nlohmann::json>(statistics());
  for (const auto* name :
       {"bytes_out", "bytes_in", "last_stall_ns", "last_peak_bytes", "refused", "late"})
    shown[std::string("swap_") + name] = said[name];
  return shown;
}

std::string SwapBudget::statistics() const {
  return impl_ ? impl_->scope.statistics() : "null";
}

}  // namespace tierpilot::trainer
