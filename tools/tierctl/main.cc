#include "base/descriptors.h"
#include "tools/tierctl/tierctl.h"

int main(int argc, char** argv) {
  tierpilot::occupy_standard_streams();
  return tierpilot::tierctl::run(argc, argv, {});
}
