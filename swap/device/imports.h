// What a library that is loaded calls by name, as its table of imports has it.
#pragma once

#include <span>
#include <string_view>

namespace tierpilot::swap {

struct Import {
  const char* name;
  void* instead;
};

// From now on libraries whose file's name begins with `library` call the given functions instead,
// each library all of them or, where it does not import one or its table cannot be written, none.
// How many do. They are written in the order given, and other threads may call in between: what
// gives comes before what takes. Calls by which the functions were had before stay what they were.
int redirect(std::string_view library, std::span<const Import> imports);

}  // namespace tierpilot::swap
