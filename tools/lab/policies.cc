#include "tools/lab/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/config.h"
#include "policies/learning/training_pace.h"
#include "policies/sim/evaluation/teacher.h"
#include "tools/cluster/program.h"

namespace tierpilot::lab {
namespace {

constexpr const char* kNone = "none";  // of weights
constexpr size_t kPending = 16384;     // as in a coordinator

Result<PlacementModules> read_modules(const std::string& path) {
  if (path.empty()) return placement_modules();
  auto reader = ConfigReader::load(path);
  if (!reader) return tl::unexpected(reader.error());
  auto modules = read_placement_modules(*reader, [](const std::string&) { return ""; });
  for (const PlacementModule& module : modules)
    if (module.learning && !module.learning->traits().weights_file.empty())
      if (auto section = reader->section(module.info.name); section.has("weights"))
        section.complain("weights", "is what --weights says here");
  (void)read_training_pace(*reader);  // training takes no time here
  if (auto status = reader->finish(); !status) return tl::unexpected(status.error());
  return modules;
}

// Those that were asked for, or the shipped ones.
Status load_weights(LearningModule& module, const std::string& wanted) {
  const auto shipped = module.traits().weights_file;
  if (shipped.empty() || wanted == kNone) return {};
  if (!wanted.empty()) return module.load(wanted);
  const auto file = find_data_file(shipped);
  return file ? module.load(*file) : tl::unexpected(file.error());
}

Result<sim::Player> make_player(const Policies& policies, const std::string& name, uint64_t seed) {
  const auto module = policies.modules.get(name);
  if (!module) return tl::unexpected(module.error());
  sim::Player player;
  if (const auto& learning = (*module)->learning; learning && policies.learning) {
    auto started = learning->start(seed, kPending);
    if (!started) return tl::unexpected(started.error());
    player.policy = std::move(started->policy);
    player.learner = sim::learn_during_run(std::move(started->learner));
    return player;
  }
  auto policy = (*module)->make(seed);
  if (!policy && policy.error().code == ErrorCode::kUnavailable)
    return fail(ErrorCode::kUnavailable, policy.error().message + ": let it learn, with --learn");
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

std::vector<std::string> usual_policies(bool learners) {
  std::vector<std::string> names;
  for (const PlacementModule& module : placement_modules())
    if (!module.learning || (learners && module.learning->traits().learns_always))
      names.push_back(module.info.name);
  return names;
}

sim::PlayerMaker Policies::maker() const {
  return [policies = *this](const std::string& name, uint64_t seed) {
    return make_player(policies, name, seed);
  };
}

bool Policies::repeatable_in_threads(const std::vector<std::string>& names) const {
  return std::none_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto* module = modules.find(name);
    return learning && module && module->learning &&
           !module->learning->traits().repeatable_in_threads;
  });
}

std::optional<WeightsOrigin> Policies::weights(const std::vector<std::string>& names) const {
  for (const auto& name : names)
    if (const auto* module = modules.find(name); module && module->learning)
      if (auto loaded = module->learning->loaded()) return loaded;
  return std::nullopt;
}

Status each_once(const std::vector<std::string>& names, const std::string& option) {
  std::set<std::string> seen;
  for (const auto& name : names)
    if (!seen.insert(name).second)
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: '{}' is named twice; each runs once", option, name));
  return {};
}

Result<Policies> open_policies(const std::vector<std::string>& names, const std::string& option,
                               const PolicyOptions& options) {
  if (auto once = each_once(names, option); !once) return tl::unexpected(once.error());
  auto modules = read_modules(options.learning);
  if (!modules) return tl::unexpected(modules.error());
  Policies policies{std::move(*modules), options.learn};
  for (const auto& name : names)
    if (const auto* module = policies.modules.find(name); module && module->learning)
      if (auto loaded = load_weights(*module->learning, options.weights); !loaded)
        return tl::unexpected(loaded.error());
  const auto make = policies.maker();
  for (const auto& name : names)
    if (auto made = make(name, 1); !made) return tl::unexpected(made.error());
  return policies;
}

int refuse(const Output& output, const Error& error) {
  return print_error(output, error) == kExitNotFound ? kExitNotFound : kExitUsage;
}

}  // namespace tierpilot::lab
