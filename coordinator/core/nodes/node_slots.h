// The numbers that nodes keep for good, by which the published network knows them: each name has
// one, also of nodes that are away. Event loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tierpilot {

class NodeSlots {
 public:
  // Against names without end. The published network has outputs for the first 128 only.
  static constexpr uint32_t kMost = 16384;

  // That of the name, or the lowest that is free; nothing when all are taken.
  std::optional<uint32_t> take(const std::string& name);
  // One from before a restart; who had the number, or the name, has it no more.
  void remember(const std::string& name, uint32_t slot);
  void forget(const std::string& name);

  bool is_known(const std::string& name) const { return slots_.contains(name); }
  std::optional<uint32_t> find(const std::string& name) const;
  // Every node that ever joined.
  const std::map<std::string, uint32_t>& all() const { return slots_; }
  std::vector<std::string> names() const;
  // "" for none.
  std::string name_of(uint32_t slot) const;

 private:
  std::map<std::string, uint32_t> slots_;
  std::map<uint32_t, std::string> names_;
  uint32_t lowest_free_ = 0;  // every slot below it is taken
};

}  // namespace tierpilot
