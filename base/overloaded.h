// One lambda for each alternative of a variant: std::visit(Overloaded{...}, variant).
#pragma once

namespace tierpilot {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace tierpilot
