// A store with much behind it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace tierpilot::bench {

// Makes the store of a coordinator in `state_dir`: `ended` tasks of a year ago in submits of ten,
// with their decisions, rewards and receipts, then submits of 10,000 tasks, of which the first is
// queued and the others wait for it, `waiting` in all. Throws std::runtime_error when it cannot.
void write_store(const std::filesystem::path& state_dir, uint64_t ended, uint64_t waiting);
// How many ended tasks the store has; while no coordinator has it.
uint64_t ended_tasks(const std::filesystem::path& state_dir);

}  // namespace tierpilot::bench
