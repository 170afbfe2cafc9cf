// A placement policy, as hosts know it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/result.h"
#include "policies/interface/module.h"
#include "policies/interface/policy.h"
#include "policies/learning/learner.h"
#include "policies/learning/provenance.h"

namespace tierpilot {

// A policy and the learner that hands it its weights, from the start.
struct LearningPolicy {
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Learner> learner;
  std::string begins_from;  // for people: "no weights", or which
};

inline constexpr const char* kNoWeights = "no weights";

using ShownSettings = std::vector<std::pair<std::string, double>>;

// What a policy that learns adds to its module: its settings, its weights and its learner. An
// object belongs to one host. The const calls may come from any thread.
class LearningModule {
 public:
  struct Traits {
    std::string judged;  // what its guard judges: a name of placement_measures()
    // It learns from all that is measured, whoever decided; else only once it was used, as that
    // costs much.
    bool learns_always = true;
    // False: it draws from a generator of the whole process, and runs are repeatable only one after
    // the other.
    bool repeatable_in_threads = true;
    std::string weights_file;  // that is installed for it to begin from; empty: none
  };
  virtual ~LearningModule() = default;
  virtual Traits traits() const = 0;

  // The settings of the section that has its name, over the defaults; wrong values are noted there.
  // `installed`: weights to begin from, where the section names none; empty: there are none.
  virtual void read(ConfigSection section, const std::filesystem::path& installed) = 0;
  // kInvalid names the first setting that cannot be.
  virtual Status check() const = 0;
  // Those that tell how it learns.
  virtual ShownSettings settings() const = 0;
  virtual double epsilon() const = 0;  // share of decisions that explore

  // Weights to begin from, in place of those that its settings name.
  virtual Status load(const std::filesystem::path& weights) = 0;
  // Of what load() has read.
  virtual std::optional<WeightsOrigin> loaded() const = 0;
  // It decides by what it learns. Weights that its settings name are read here: kNotFound,
  // kInvalid.
  virtual Result<LearningPolicy> start(uint64_t seed, size_t pending_capacity) const = 0;
  // It decides by what load() has read, and explores nothing. kUnavailable: nothing was.
  virtual Result<std::unique_ptr<Policy>> frozen(uint64_t seed) const = 0;
};

// Made of a seed. One that learns decides by loaded weights, see LearningModule::frozen().
struct PlacementModule : PolicyModule<Policy, uint64_t> {
  bool holds = false;  // it may keep tasks back, see Policy::holds()
  std::shared_ptr<LearningModule> learning = nullptr;  // null: it does not learn
};

using PlacementModules = ModuleList<PlacementModule>;

// The module of a policy that learns.
inline PlacementModule learning_module(PolicyInfo info, bool holds,
                                       std::shared_ptr<LearningModule> learning) {
  return {{std::move(info), [learning](uint64_t seed) { return learning->frozen(seed); }},
          holds,
          learning};
}

}  // namespace tierpilot
