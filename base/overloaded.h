// One lambda for each alternative of a variant: std::visit(Overloaded{...}, variant).
#pragma once

namespace tierpilot {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>  // clang 14 needs it
Overloaded(Handlers...)->Overloaded<Handlers...>;

}  // namespace tierpilot
