#include <pthread.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>

#include "swap/libtorch/engine.h"
#include "swap/libtorch/keeper.h"
#include "swap/libtorch/tensor_pool.h"
#include "swap/libtorch/tierpilot_swap_torch.h"

namespace tierpilot::swap {
namespace {

using libtorch::TensorPool;

// The pools of this process, by their settings. Never freed, as graphs may outlive everything.
struct Pools {
  std::mutex mutex;
  std::map<std::tuple<std::string, std::string, std::string, std::string, std::string, bool>,
           std::shared_ptr<TensorPool>>
      by_settings;
};

Pools& pools() {
  static auto* const all = new Pools;
  return *all;
}

void keep_all() {
  const std::lock_guard lock(pools().mutex);
  for (const auto& [settings, pool] : pools().by_settings)
    if (const auto wrong = pool->keep(); !wrong.empty())
      std::fprintf(stderr, "warning: tierpilot::swap: %s\n", wrong.c_str());
}

// A fork while another thread looks a pool up leaves the child with pools that it can look up.
void at_first() {
  static const int once = std::atexit(keep_all) + pthread_atfork([] { pools().mutex.lock(); },
                                                                 [] { pools().mutex.unlock(); },
                                                                 [] { pools().mutex.unlock(); });
  (void)once;
}

void check_policy(const std::string& policy) {
  if (policy == "vdnn")
    throw std::invalid_argument("tierpilot::swap: policy '" + policy +
                                "' needs to know the model's layers, which hooks of libtorch do "
                                "not tell: take another one, or PyTorch in Python");
}

// What the library takes the budget of the environment for.
constexpr int64_t kGiven = 0;

std::string given_budget() {
  const char* given = std::getenv("TIERPILOT_SWAP_BUDGET");
  if (given && *given) return given;
  throw std::invalid_argument(
      "tierpilot::swap: no budget: give one, as in Scope({.budget = \"4GiB\"}), or set "
      "TIERPILOT_SWAP_BUDGET, which a task with --memory and --swap-room has");
}

// The least tensor that may leave has so many: whoever says less means another unit.
constexpr int64_t kLeastSaid = 64 << 10;

int64_t budget_of(const ScopeSettings& settings) {
  if (settings.budget.empty()) return kGiven;
  const auto bytes = tierpilot_swap_bytes(settings.budget.c_str());
  if (bytes < 0)
    throw std::invalid_argument("tierpilot::swap: the budget '" + settings.budget +
                                "' is no size, such as '4GiB'");
  if (bytes == 0) throw std::invalid_argument("tierpilot::swap: the budget has to be above 0");
  if (bytes < kLeastSaid)
    throw std::invalid_argument("tierpilot::swap: the budget '" + settings.budget +
                                "' holds no tensor: say a unit, as in '4GiB'");
  return bytes;
}

std::shared_ptr<TensorPool> opened(const ScopeSettings& settings) {
  check_policy(settings.policy);
  const tierpilot_swap_settings said{.size = sizeof said,
                                     .reserved = 0,
                                     .budget_bytes = budget_of(settings),
                                     .tiers = settings.tiers.c_str(),
                                     .policy = settings.policy.c_str(),
                                     .out_threads = 0,
                                     .in_threads = 0,
                                     .plan_file = settings.plan_file.c_str()};
  std::array<char, 1024> error{};
  auto* const core = tierpilot_swap_open(&said, error.data(), error.size());
  if (!core) throw std::invalid_argument(std::string("tierpilot::swap: ") + error.data());
  return std::make_shared<TensorPool>(core, settings.recompute);
}

std::shared_ptr<TensorPool> pool_of(ScopeSettings settings) {
  if (!settings.plan_file.empty())
    settings.plan_file = std::filesystem::absolute(settings.plan_file).lexically_normal();
  const std::string given = settings.budget.empty() ? given_budget() : "";
  settings.recompute = settings.recompute || settings.policy == "checkpoint";
  at_first();
  const std::lock_guard lock(pools().mutex);
  auto& all = pools().by_settings;
  const std::tuple key{settings.budget,    given,
                       settings.policy,    settings.tiers,
                       settings.plan_file, settings.recompute};
  const auto found = all.find(key);
  if (found != all.end() && !found->second->forked()) return found->second;
  auto pool = opened(settings);
  all.insert_or_assign(key, pool);
  return pool;
}

}  // namespace

Scope::Scope(const ScopeSettings& settings) : outer_(libtorch::active_keeper()) {
  libtorch::require_hooks();
  pool_ = pool_of(settings);
  libtorch::activate(pool_.get());
}

Scope::~Scope() {
  pool_->finish();
  libtorch::activate(outer_);
}

std::string Scope::statistics() const {
  return pool_->describe("statistics");
}

std::string Scope::tiers() const {
  return pool_->describe("tiers");
}

std::string Scope::last_step() const {
  return pool_->describe("step");
}

}  // namespace tierpilot::swap
