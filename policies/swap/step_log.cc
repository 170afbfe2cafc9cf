#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/text/json_member.h"
#include "policies/swap/graph_builder.h"
#include "policies/swap/readers.h"

namespace tierpilot::swap {
namespace {

using nlohmann::json;
constexpr int64_t kMostFileBytes = 256 << 20;

tl::unexpected<Error> wrong(std::string why) {
  return fail(ErrorCode::kInvalid, std::move(why));
}

Result<std::vector<size_t>> numbers_of(const json& op, const char* key, size_t count) {
  const auto found = op.find(key);
  if (found == op.end() || !found->is_array())
    return wrong(fmt::format("needs \"{}\", a list of tensor numbers", key));
  std::vector<size_t> numbers;
  for (const auto& number : *found) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() >= count)
      return wrong(fmt::format("\"{}\" may only have numbers of tensors, below {}", key, count));
    numbers.push_back(number.get<size_t>());
  }
  return numbers;
}

class StepReader {
 public:
  Status read(const json& step) {
    const auto tensors = step.find("tensors"), ops = step.find("ops");
    if (tensors == step.end() || !tensors->is_array() || ops == step.end() || !ops->is_array())
      return wrong("needs \"tensors\" and \"ops\", two lists");
    if (ops->empty()) return wrong("has no operators");
    for (const auto& bytes : *tensors) {
      if (!bytes.is_number_integer()) return wrong("\"tensors\" may only have bytes in it");
      bytes_.push_back(bytes.get<int64_t>());
    }
    last_use_.assign(bytes_.size(), 0);
    produced_.assign(bytes_.size(), false);
    known_.assign(bytes_.size(), false);
    if (auto status = survey(*ops); !status) return status;
    for (size_t at = 0; at < ops->size(); ++at)
      if (auto status = run((*ops)[at], at); !status)
        return wrong(fmt::format("ops[{}]: {}", at, status.error().message));
    return {};
  }
  Graph take(std::string name) { return builder_.take(std::move(name)); }

 private:
  static std::string name_of(size_t tensor) { return fmt::format("t{}", tensor); }

  // What an operator makes before any reads it, and when each is used last.
  Status survey(const json& ops) {
    std::vector<char> seen(bytes_.size());
    for (size_t at = 0; at < ops.size(); ++at) {
      if (!ops[at].is_object()) return wrong(fmt::format("ops[{}]: has to be an object", at));
      const auto in = numbers_of(ops[at], "in", bytes_.size());
      const auto out = numbers_of(ops[at], "out", bytes_.size());
      if (!in) return wrong(fmt::format("ops[{}]: {}", at, in.error().message));
      if (!out) return wrong(fmt::format("ops[{}]: {}", at, out.error().message));
      for (const auto tensor : *in) {
        seen[tensor] = true;
        last_use_[tensor] = at;
      }
      for (const auto tensor : *out) {
        if (!seen[tensor]) produced_[tensor] = true;
        seen[tensor] = true;
        last_use_[tensor] = at;
      }
    }
    return {};
  }

  Status constant(size_t tensor) {
    if (std::exchange(known_[tensor], true)) return {};
    return builder_.constant(name_of(tensor), bytes_[tensor]);
  }

  Status run(const json& op, size_t at) {
    const auto in = *numbers_of(op, "in", bytes_.size());
    const auto out = *numbers_of(op, "out", bytes_.size());
    const auto us = op.find("us");
    if (us == op.end() || !us->is_number() || us->get<double>() < 0 || us->get<double>() > 1e12)
      return wrong("needs \"us\", microseconds");
    const auto time_ns = static_cast<int64_t>(us->get<double>() * 1000);
    const auto named = op.find("name");
    const auto name = named != op.end() && named->is_string() ? named->get<std::string>() : "?";
    if (member_is(op, "phase", "backward")) builder_.backward();
    std::vector<std::string> args;
    for (const auto tensor : in) {
      if (auto status = constant(tensor); !status) return status;
      args.push_back(name_of(tensor));
    }
    if (auto status = make(name, args, out, time_ns); !status) return status;
    const std::set<size_t> made(out.begin(), out.end());
    for (const auto tensor : made)
      if (auto status = let_go(tensor, at); !status) return status;
    for (const auto tensor : std::set<size_t>(in.begin(), in.end()))
      if (!made.contains(tensor))
        if (auto status = let_go(tensor, at); !status) return status;
    return {};
  }

  // What is there already is overwritten; an operator that also makes new ones is two, of which the
  // second takes no time.
  Status make(const std::string& name, const std::vector<std::string>& args,
              const std::vector<size_t>& out, int64_t time_ns) {
    std::vector<NewTensor> fresh;
    std::vector<int64_t> changed;
    auto all = args;
    std::unordered_map<std::string, size_t> place_of;
    for (size_t at = 0; at < all.size(); ++at) place_of.try_emplace(all[at], at);
    for (const auto tensor : std::set<size_t>(out.begin(), out.end())) {
      if (!std::exchange(known_[tensor], true)) {
        fresh.push_back({name_of(tensor), bytes_[tensor], -1});
        continue;
      }
      const auto [place, added] = place_of.try_emplace(name_of(tensor), all.size());
      changed.push_back(static_cast<int64_t>(place->second));
      if (added) all.push_back(place->first);
    }
    if (!fresh.empty() || changed.empty())
      if (auto status = builder_.call(name, args, fresh, time_ns); !status) return status;
    if (changed.empty()) return {};
    return builder_.mutate(name, all, changed, fresh.empty() ? time_ns : 0);
  }

  Status let_go(size_t tensor, size_t at) {
    if (last_use_[tensor] != at || !produced_[tensor]) return {};
    return builder_.release(name_of(tensor));
  }

  GraphBuilder builder_;
  std::vector<int64_t> bytes_;
  std::vector<size_t> last_use_;
  std::vector<char> produced_, known_;
};

}  // namespace

Result<Graph> read_step(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[1 << 16];
  while (file.read(block, sizeof block) || file.gcount() > 0) {
    text.append(block, static_cast<size_t>(file.gcount()));
    if (text.size() > kMostFileBytes) return wrong(fmt::format("{}: is too large", path.string()));
  }
  if (!file.eof()) return fail_errno(errno, fmt::format("log '{}'", path.string()));
  // Of what is nested deeper a few bytes take many times as much.
  constexpr int kDeepest = 8;
  const auto flat = [](int depth, json::parse_event_t, json&) { return depth <= kDeepest; };
  const auto step = json::parse(text, flat, false);
  if (!step.is_object()) return wrong(fmt::format("{}: is not a JSON object", path.string()));
  StepReader reader;
  if (auto status = reader.read(step); !status)
    return wrong(fmt::format("{}: {}", path.string(), status.error().message));
  return reader.take(path.filename().string());
}

}  // namespace tierpilot::swap
