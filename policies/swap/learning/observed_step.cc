#include "policies/swap/learning/observed_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "policies/swap/graph_builder.h"

namespace tierpilot::swap {

int64_t ObservedStep::compute_ns() const {
  return std::accumulate(time_ns.begin(), time_ns.end(), int64_t{0});
}

int64_t ObservedStep::saved_bytes() const {
  int64_t sum = 0;
  for (const auto& save : saves) sum += save.held ? 0 : save.bytes;
  return sum;
}

int64_t ObservedStep::kept_bytes() const {
  int64_t alive = 0, most = 0;
  for (size_t at = 0; at < other_bytes.size(); ++at) {
    if (at < saves.size() && !saves[at].held) alive += saves[at].bytes;
    most = std::max(most, alive + other_bytes[at]);
    if (at <= saves.size()) continue;
    const auto& save = saves[uses[at - saves.size() - 1]];
    alive -= save.held ? 0 : save.bytes;
  }
  return most;
}

int64_t ObservedStep::least_bytes() const {
  int64_t most = 0;
  for (size_t at = 0; at < other_bytes.size(); ++at) {
    int64_t here = 0;  // what this interval makes, or has been asked for
    if (at < saves.size()) here = saves[at].held ? 0 : saves[at].bytes;
    if (at > saves.size()) {
      const auto& save = saves[uses[at - saves.size() - 1]];
      here = save.held ? 0 : save.bytes;
    }
    most = std::max(most, other_bytes[at] + here);
  }
  return most;
}

namespace {

class Builder {
 public:
  explicit Builder(const ObservedStep& step) : step_(step) {
    made_.storage_of.assign(step.saves.size(), kNone);
    if (!step.other_bytes.empty())
      base_ = *std::min_element(step.other_bytes.begin(), step.other_bytes.end());
  }

  StepGraph build() {
    (void)builder_.constant("rest", std::max<int64_t>(base_, 0));
    for (size_t at = 0; at < step_.time_ns.size(); ++at) interval(at);
    made_.graph = builder_.take("step");
    return std::move(made_);
  }

 private:
  static std::string name_of(uint32_t save) { return fmt::format("s{}", save); }

  void interval(size_t at) {
    const auto saves = step_.saves.size();
    if (at == saves) builder_.backward();
    std::vector<std::string> args;
    if (at > saves && made_.storage_of[step_.uses[at - saves - 1]] != kNone)
      args.push_back(name_of(step_.uses[at - saves - 1]));
    const auto scratch = fmt::format("x{}", at);
    std::vector<NewTensor> results{{scratch, std::max<int64_t>(step_.other_bytes[at] - base_, 0)}};
    ++storages_;
    if (at < saves && !step_.saves[at].held) {
      results.push_back({name_of(static_cast<uint32_t>(at)), step_.saves[at].bytes});
      made_.storage_of[at] = storages_++;
    }
    // Names are unique and figures were checked when they were observed: it cannot fail.
    (void)builder_.call("interval", args, results, step_.time_ns[at]);
    (void)builder_.release(scratch);
    for (const auto& arg : args) (void)builder_.release(arg);
  }

  const ObservedStep& step_;
  GraphBuilder builder_;
  StepGraph made_;
  StorageId storages_ = 1;  // the constant is there
  int64_t base_ = 0;
};

}  // namespace

StepGraph graph_of(const ObservedStep& step) {
  return Builder(step).build();
}

}  // namespace tierpilot::swap
