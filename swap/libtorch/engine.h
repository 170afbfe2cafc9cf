// How autograd comes to ask the keeper of a thread what to keep in a saved tensor's place.
#pragma once

namespace tierpilot::swap::libtorch {

// Puts an engine in place that asks for it. libtorch 1.13 has no other way to hooks for all saved
// tensors; Python's PyTorch takes the same one. Throws std::runtime_error where somebody else has
// taken it, or where this libtorch asks nobody.
void require_hooks();

}  // namespace tierpilot::swap::libtorch
