#!/bin/sh
tiertool tier show -j --timeout 100 >/out/tiers.json &&
  tiertool probe eviction -j --timeout 100 >/out/eviction.json
