// Graphs of training steps with as many tensors as wanted, of the shapes that nets have.
#pragma once

#include <filesystem>
#include <optional>

#include "policies/swap/graph.h"
#include "policies/swap/learning/observed_step.h"

namespace tierpilot::swap {

Graph transformer(size_t tensors);
Graph residual_net(size_t tensors);
// Layers of a block read all earlier ones of it.
Graph dense_net(size_t tensors);
// Each level of the first half is read again by the one that stands as far from the middle.
Graph long_lived(size_t tensors);
// A net of an operator table, with its blocks repeated; nothing where it is not there.
std::optional<Graph> repeated(const std::filesystem::path& table, const std::string& net,
                              size_t tensors);

// As a library sees a step from its hooks: so many saves, each asked for again.
ObservedStep observed(size_t saves, uint64_t seed);

}  // namespace tierpilot::swap
