// Checksums of contents on the wire. Missing ones are unknown.
#pragma once

#include "base/content_digest.h"
#include "rpc/node.capnp.h"

namespace tierpilot {

inline ContentDigest read_digest(wire::Digest::Reader in) {
  return {in.getHigh(), in.getLow()};
}

inline void write_digest(wire::Digest::Builder out, const ContentDigest& digest) {
  out.setHigh(digest.high);
  out.setLow(digest.low);
}

}  // namespace tierpilot
