#pragma once

namespace tierpilot {

// Lets the calling thread compute on itself alone: torch's pool is per thread, and a decision or a
// training step must not take more than the core it runs on. Call once at the start of a thread.
void use_one_torch_thread();

}  // namespace tierpilot
