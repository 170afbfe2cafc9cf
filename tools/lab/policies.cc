#include "tools/lab/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/config.h"
#include "policies/placement/dqn/dqn_policy.h"
#include "policies/placement/published/weights.h"
#include "policies/sim/evaluation/teacher.h"
#include "tools/cluster/program.h"

namespace tierpilot::lab {
namespace {

constexpr const char* kNoWeights = "none";
constexpr size_t kPending = 16384;  // as in a coordinator

bool is_named(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<Learning> read_learning(const std::string& path) {
  if (path.empty()) return Learning{};
  auto reader = ConfigReader::load(path);
  if (!reader) return tl::unexpected(reader.error());
  auto dqn = reader->section("dqn");
  if (dqn.has("weights")) dqn.complain("weights", "is what --weights says here");
  Learning learning{read_dqn_settings(dqn),
                    read_published_settings(reader->section("dqn-published"))};
  if (auto status = reader->finish(); !status) return tl::unexpected(status.error());
  return learning;
}

Result<std::shared_ptr<const WeightsFile>> load(const PolicyOptions& options) {
  std::filesystem::path file = options.weights;
  if (options.weights.empty()) {
    auto shipped = find_data_file("dqn.weights");
    if (!shipped) return tl::unexpected(shipped.error());
    file = *shipped;
  }
  auto loaded = load_weights(file);
  if (!loaded) return tl::unexpected(loaded.error());
  return std::make_shared<const WeightsFile>(std::move(*loaded));
}

// In a context of its own: mailboxes have one reader.
PolicyContext context_for(const Policies& policies, uint64_t seed) {
  PolicyContext context{.seed = seed};
  if (policies.learning) {
    context.dqn = policies.learning->dqn;
    context.published = policies.learning->published;
  } else {
    context.dqn.epsilon = 0;
  }
  context.dqn_weights = std::make_shared<Mailbox<DqnWeights>>();
  context.published_weights = std::make_shared<Mailbox<PublishedWeights>>();
  if (policies.weights) {
    context.dqn.features = policies.weights->features;
    context.start = {policies.weights, &policies.weights->weights};
  }
  return context;
}

bool learns(const std::string& name) {
  const auto& known = registered_policies();
  return std::any_of(known.begin(), known.end(),
                     [&](const PolicyInfo& info) { return info.name == name && info.learns; });
}

Result<sim::Player> make_player(const Policies& policies, const std::string& name, uint64_t seed) {
  const PolicyContext context = context_for(policies, seed);
  sim::Player player;
  if (learns(name) && policies.learning) {
    auto learner = make_learner(name, context, kPending);
    if (!learner) return tl::unexpected(learner.error());
    player.learner = sim::learn_during_run(std::move(*learner));
  } else if (name == "dqn" && context.start) {
    context.dqn_weights->put(context.start);
  } else if (learns(name)) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("policy '{}' has no weights here: let it learn, with --learn", name));
  }
  auto policy = make_policy(name, context);
  if (!policy) return tl::unexpected(policy.error());
  player.policy = std::move(*policy);
  return player;
}

}  // namespace

void add_policy_options(CLI::App& command, PolicyOptions& options) {
  command
      .add_option("--weights", options.weights,
                  "of the dqn (default: the shipped ones); 'none' to learn from nothing")
      ->type_name("FILE");
  auto* learn = command.add_flag(
      "--learn", options.learn,
      "policies that learn do so during each run, as in a coordinator; else they stay as they are");
  command
      .add_option("--learning", options.learning,
                  "how: tables [dqn] and [dqn-published] as in coordinator.toml")
      ->type_name("FILE")
      ->needs(learn);
}

sim::PlayerMaker Policies::maker() const {
  return [policies = *this](const std::string& name, uint64_t seed) {
    return make_player(policies, name, seed);
  };
}

bool Policies::repeatable_in_threads(const std::vector<std::string>& names) const {
  return !learning || !is_named(names, "dqn-published");
}

Result<Policies> open_policies(const std::vector<std::string>& names, const std::string& option,
                               const PolicyOptions& options) {
  const std::set<std::string> unique(names.begin(), names.end());
  if (unique.size() != names.size())
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: a policy is named twice; each runs once", option));
  Policies policies;
  if (options.learn) {
    auto learning = read_learning(options.learning);
    if (!learning) return tl::unexpected(learning.error());
    policies.learning = std::move(*learning);
  }
  if (is_named(names, "dqn") && options.weights != kNoWeights) {
    auto weights = load(options);
    if (!weights) return tl::unexpected(weights.error());
    if (policies.learning && policies.learning->dqn.features != (*weights)->features)
      return fail(ErrorCode::kInvalid,
                  fmt::format("--learning: the weights were trained on other features than "
                              "'dqn.leave_out' in '{}' says",
                              options.learning));
    policies.weights = std::move(*weights);
  }
  const auto make = policies.maker();
  for (const auto& name : names)
    if (auto made = make(name, 1); !made) return tl::unexpected(made.error());
  return policies;
}

int refuse(const Output& output, const Error& error) {
  return print_error(output, error) == kExitNotFound ? kExitNotFound : kExitUsage;
}

}  // namespace tierpilot::lab
