#include "tools/tierctl/tierctl.h"

int main(int argc, char** argv) {
  return tierpilot::tierctl::run(argc, argv, {});
}
