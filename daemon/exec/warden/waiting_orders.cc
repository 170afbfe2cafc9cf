#include "daemon/exec/warden/waiting_orders.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tierpilot {
namespace {

// None: it is for no task.
std::optional<std::pair<uint64_t, uint32_t>> attempt_of(const ExecMessage& order) {
  return std::visit(
      [](const auto& of) -> std::optional<std::pair<uint64_t, uint32_t>> {
        if constexpr (requires { of.attempt; }) return std::pair(of.task_id, of.attempt);
        return std::nullopt;
      },
      order);
}

size_t bytes_of(const ExecMessage& order) {
  size_t bytes = sizeof order;
  if (const auto* launch = std::get_if<TaskLaunch>(&order)) {
    for (const auto& word : launch->argv) bytes += sizeof word + word.size();
    for (const auto& [name, value] : launch->env)
      bytes += 2 * sizeof name + name.size() + value.size();
  }
  if (const auto* open = std::get_if<OpenFile>(&order)) bytes += open->path.size();
  return bytes;
}

}  // namespace

bool WaitingOrders::delays(const ExecMessage& order) const {
  if (std::holds_alternative<TaskLaunch>(order)) return true;
  const auto attempt = attempt_of(order);
  return attempt && std::any_of(orders_.begin(), orders_.end(),
                                [&](const auto& other) { return attempt_of(other) == attempt; });
}

void WaitingOrders::push(ExecMessage order) {
  bytes_ += bytes_of(order);
  orders_.push_back(std::move(order));
}

ExecMessage WaitingOrders::pop() {
  auto order = std::move(orders_.front());
  orders_.pop_front();
  bytes_ -= bytes_of(order);
  return order;
}

void WaitingOrders::clear() {
  orders_.clear();
  bytes_ = 0;
}

}  // namespace tierpilot
