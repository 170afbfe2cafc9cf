#include "policies/gang/learned/ac_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace tierpilot::gang {
namespace {

// How much a candidate's expected hours count before anything is learned: one that takes 5 % more
// is e times less likely. The least one has a head start.
constexpr double kHoursWeight = 20;
constexpr float kHeadStart = 0.5;
constexpr uint32_t kHidden = 24;
constexpr const char* kHead = "tierpilot ac 2";

float logit_of_hours(double hours, double least_h) {
  constexpr double kMost = 1e4;
  const double longer = kHoursWeight * std::log(hours / least_h);
  return std::isnan(longer) ? 0 : -static_cast<float>(std::clamp(longer, 0.0, kMost));
}

class AcPlacer : public Placer {
 public:
  explicit AcPlacer(std::shared_ptr<const AcNet> net) : net_(std::move(net)) {}
  Units place(const PlacementState& state, const Job& job) override {
    auto input = ac_input(state, job, net_->view);
    const auto logits = net_->logits(input);
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    return std::move(input.candidates[static_cast<size_t>(best)].units);
  }

 private:
  std::shared_ptr<const AcNet> net_;
};

// Of a line; its number is counted up.
Status read_numbers(std::istream& in, const std::string& name, size_t& line,
                    std::span<float> into) {
  std::string text;
  for (float& value : into) {
    ++line;
    char* end = nullptr;
    if (!std::getline(in, text))
      return fail(ErrorCode::kInvalid, fmt::format("{}:{}: ends too early", name, line));
    value = std::strtof(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0' || !std::isfinite(value))
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}:{}: '{}' is no weight", name, line, text.substr(0, 40)));
  }
  return {};
}

}  // namespace

AcNet::AcNet(uint64_t seed, AcView of)
    : AcNet(of, SeededRandom(derived_seed(seed, "gang ac weights"))) {}

AcNet::AcNet(AcView of, SeededRandom random)
    : view(of),
      actor({kUnitFeatures, kHidden, kHidden, 1}, random, 0),
      critic({kStateFeatures, kHidden, 1}, random, 0) {}

std::vector<float> AcNet::logits(const AcInput& input,
                                 std::vector<std::vector<DenseNet::Pass>>* passes) const {
  std::vector<float> logits;
  const double least_h = input.candidates[input.heuristic].hours;
  DenseNet::Pass pass;
  if (passes) passes->resize(input.candidates.size());
  for (size_t i = 0; i < input.candidates.size(); ++i) {
    const auto& candidate = input.candidates[i];
    float sum = 0;
    if (passes) (*passes)[i].resize(candidate.seen.size());
    for (size_t unit = 0; unit < candidate.seen.size(); ++unit) {
      auto& used = passes ? (*passes)[i][unit] : pass;
      actor.forward(candidate.seen[unit], used);
      sum += used.output()[0];
    }
    logits.push_back(sum / static_cast<float>(candidate.seen.size()) +
                     logit_of_hours(candidate.hours, least_h) +
                     (i == input.heuristic ? kHeadStart : 0));
  }
  return logits;
}

std::string ac_weights_text(const AcNet& net, const std::string& origin) {
  std::string text = fmt::format("{}; {}\n", kHead, origin);
  for (const auto* part : {&net.actor, &net.critic})
    for (const float weight : part->parameters()) text += fmt::format("{}\n", weight);
  return text;
}

Result<AcNet> read_ac_weights(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  std::string head;
  if (!std::getline(in, head) || !head.starts_with(kHead))
    return fail(ErrorCode::kInvalid,
                fmt::format("{}:1: no weights of the gang policy 'ac' in this version's form "
                            "(expected '{}'); make some with: tierctl policy train --kind gang",
                            name, kHead));
  AcNet net(0);
  size_t line = 1;
  for (auto* part : {&net.actor, &net.critic})
    if (auto read = read_numbers(in, name, line, part->parameters()); !read)
      return tl::unexpected(read.error());
  if (std::getline(in, head))
    return fail(ErrorCode::kInvalid, fmt::format("{}:{}: more than the weights", name, line + 1));
  return net;
}

std::unique_ptr<Placer> make_ac_placer(std::shared_ptr<const AcNet> net) {
  return std::make_unique<AcPlacer>(std::move(net));
}

}  // namespace tierpilot::gang
