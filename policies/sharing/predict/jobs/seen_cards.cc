#include "policies/sharing/predict/jobs/seen_cards.h"

#include <fmt/format.h>

#include <algorithm>

#include "policies/sharing/predict/jobs/card_rows.h"

namespace tierpilot::sharing {
namespace {

constexpr double kFarther = 4;         // times the least and the most that it was trained on
constexpr double kMostUnknown = 0.05;  // of a card's operators
constexpr const char* kTotalNames[]{"FLOPs", "parameters", "bytes of activations", "operators"};

}  // namespace

std::vector<double> totals_of(const ModelCard& card) {
  return {card.flops, card.parameters, card.activation_bytes, static_cast<double>(card.launches)};
}

void SeenCards::add(const ModelCard& card) {
  const auto its = totals_of(card);
  if (totals.empty())
    for (const double total : its) totals.push_back({total, total});
  for (size_t i = 0; i < its.size(); ++i) {
    totals[i].least = std::min(totals[i].least, its[i]);
    totals[i].most = std::max(totals[i].most, its[i]);
  }
  for (const auto& [kind, use] : card.operators) kinds.insert(kind);
}

std::string SeenCards::unlike_why(const ModelCard& card) const {
  uint64_t operators = 0, unknown = 0;
  for (const auto& [kind, use] : card.operators) {
    operators += use.count;
    if (kind == "Unknown") unknown += use.count;
    if (use.count > 0 && kind != "Unknown" && !kinds.contains(kind))
      return fmt::format("no operator of kind {} was among what it was trained on", kind);
  }
  if (operators == 0) return "the card has no operators";
  if (static_cast<double>(unknown) > kMostUnknown * static_cast<double>(operators))
    return fmt::format("{} of {} operators are of no known kind", unknown, operators);
  if (card.unknown_shapes > 0)
    return fmt::format("the sizes of {} values are not known", card.unknown_shapes);
  if (card.job && !is_known_optimizer(card.job->optimizer))
    return fmt::format("nothing was measured with an optimizer like '{}'", card.job->optimizer);
  const auto its = totals_of(card);
  for (size_t i = 0; i < its.size(); ++i)
    if (its[i] < totals[i].least / kFarther || its[i] > totals[i].most * kFarther)
      return fmt::format("it has {:.3g} {}, and was trained on {:.3g} to {:.3g}", its[i],
                         kTotalNames[i], totals[i].least, totals[i].most);
  return {};
}

}  // namespace tierpilot::sharing
