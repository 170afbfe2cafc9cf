#include "base/dataset_env.h"

namespace tierpilot {

std::string dataset_env_name(std::string_view dataset) {
  std::string name(kDatasetEnvPrefix);
  // Not toupper(): it follows the locale.
  for (const char c : dataset) {
    if (c >= 'a' && c <= 'z')
      name += static_cast<char>(c - 'a' + 'A');
    else if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
      name += c;
    else
      name += '_';
  }
  return name;
}

}  // namespace tierpilot
