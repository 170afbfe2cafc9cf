#include "policies/sharing/card/onnx_einsum.h"

#include <algorithm>
#include <map>
#include <string>

namespace tierpilot::sharing {
namespace {

constexpr size_t kMostOfEllipsis = 64;  // of an ellipsis; letters come after it
static_assert(kMostOfEllipsis < 'A');

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// A label for each of the dimensions: those of an ellipsis are numbered from the last, as operands
// are aligned there.
std::optional<std::string> labels_of(std::string term, size_t dimensions) {
  const auto dots = term.find("...");
  if (dots != std::string::npos) term.erase(dots, 3);
  if (!std::all_of(term.begin(), term.end(), is_letter) || term.size() > dimensions ||
      dimensions > kMostOfEllipsis)
    return std::nullopt;
  const size_t many = dimensions - term.size();
  if (dots == std::string::npos) return many == 0 ? std::optional(term) : std::nullopt;
  for (size_t i = 1; i <= many; ++i) term.insert(dots, 1, static_cast<char>(i));
  return term;
}

std::vector<std::string> split(const std::string& terms) {
  std::vector<std::string> all(1);
  for (const char c : terms)
    if (c == ',')
      all.emplace_back();
    else
      all.back() += c;
  return all;
}

struct Label {
  double size = 1;
  int uses = 0;
};

using Labels = std::map<char, Label>;

std::optional<Labels> labels_of(const std::vector<std::string>& terms,
                                const std::vector<const Value*>& operands) {
  Labels all;
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto labels = labels_of(terms[i], operands[i]->dims.size());
    if (!labels) return std::nullopt;
    for (size_t place = 0; place < labels->size(); ++place) {
      auto& label = all[(*labels)[place]];
      const double size = operands[i]->dims[place];
      if (label.uses++ == 0 || label.size == 1) label.size = size;
      if (size != label.size && size != 1) return std::nullopt;
    }
  }
  return all;
}

// Whether some label is not in the output; nothing where the output has what no operand has.
// Without an output, labels that are there once stay, and those of an ellipsis.
std::optional<bool> sums(const Labels& labels, const std::optional<std::string>& output) {
  std::string kept = output.value_or("...");
  const auto dots = kept.find("...");
  if (dots != std::string::npos) kept.erase(dots, 3);
  for (const char c : kept)
    if (!is_letter(c) || !labels.contains(c)) return std::nullopt;
  return std::any_of(labels.begin(), labels.end(), [&](const auto& each) {
    if (!is_letter(each.first)) return dots == std::string::npos;
    return output ? kept.find(each.first) == std::string::npos : each.second.uses > 1;
  });
}

}  // namespace

std::optional<double> einsum_flops(std::string_view equation,
                                   const std::vector<const Value*>& operands) {
  std::string plain(equation);
  std::erase(plain, ' ');
  std::optional<std::string> output;
  if (const auto arrow = plain.find("->"); arrow != std::string::npos) {
    output = plain.substr(arrow + 2);
    plain.resize(arrow);
  }
  const auto terms = split(plain);
  if (terms.size() != operands.size()) return std::nullopt;
  const auto labels = labels_of(terms, operands);
  if (!labels) return std::nullopt;
  const auto summed = sums(*labels, output);
  if (!summed) return std::nullopt;
  double combinations = 1;
  for (const auto& [name, label] : *labels) combinations *= label.size;
  if (operands.size() > 1) return 2 * combinations;
  return *summed ? combinations : 0;
}

}  // namespace tierpilot::sharing
