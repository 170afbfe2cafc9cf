// What hosts know of policies: they hold modules, and know none by name. Each kind of decision has
// plain values, an interface between them, and one list of its modules:
//   where a task runs          policies/placement/registry.h
//   which units a gang gets    policies/gang/placement/placer.h
//   how many cores a job gets  policies/quality/allocator.h
//   which share of a unit      policies/sharing/live/share_policy.h
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tierpilot {

struct PolicyInfo {
  std::string name;
  std::string summary;  // a line for people
};

// `Given`: what a policy of this kind is made of, such as a seed.
template <class Policy, class Given>
struct PolicyModule {
  PolicyInfo info;
  std::function<Result<std::unique_ptr<Policy>>(const Given&)> make;
};

// The modules of one kind, in the order in which they are shown.
template <class Module>
class ModuleList {
 public:
  // `what` they are, for messages: "policy".
  ModuleList(std::string what, std::vector<Module> modules)
      : what_(std::move(what)), modules_(std::move(modules)) {}

  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }
  size_t size() const { return modules_.size(); }
  const Module& operator[](size_t i) const { return modules_[i]; }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Module& module : modules_) names.push_back(module.info.name);
    return names;
  }
  // Null: there is none of the name.
  const Module* find(std::string_view name) const {
    const auto found = std::find_if(begin(), end(),
                                    [&](const Module& module) { return module.info.name == name; });
    return found == end() ? nullptr : &*found;
  }
  // kNotFound lists the names there are.
  Result<const Module*> get(std::string_view name) const {
    if (const Module* module = find(name)) return module;
    std::string known;
    for (const Module& module : modules_) known += (known.empty() ? "" : ", ") + module.info.name;
    return fail(ErrorCode::kNotFound,
                what_ + " '" + std::string(name) + "' does not exist: there are " + known);
  }
  // As get(), then Module::make.
  template <class Given>
  auto make(std::string_view name, const Given& given) const
      -> decltype(std::declval<const Module&>().make(given)) {
    const auto module = get(name);
    if (!module) return tl::unexpected(module.error());
    return (*module)->make(given);
  }
  // In the place of the one that has its name.
  void put(Module module) {
    for (Module& each : modules_)
      if (each.info.name == module.info.name) return void(each = std::move(module));
    modules_.push_back(std::move(module));
  }

 private:
  std::string what_;
  std::vector<Module> modules_;
};

}  // namespace tierpilot
