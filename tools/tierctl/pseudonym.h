// Names that say who is the same, but not who it is.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot::tierctl {

class Pseudonyms {
 public:
  // Without `anonymise` names stay as they are. With it they are keyed hashes (HMAC-SHA-256, 64
  // bits of it): of the bytes of the file `key_file`, at least 16, or, where it is "", of a key
  // drawn now and forgotten.
  static Result<Pseudonyms> make(bool anonymise, const std::string& key_file);

  // "user-3f2a90c1d5e77b04" for a `kind` "user"; "" stays "".
  std::string of(std::string_view kind, std::string_view name) const;
  bool anonymous() const { return !key_.empty(); }
  bool keep() const { return keep_; }  // equal names get equal pseudonyms in other exports, too

 private:
  std::string key_;
  bool keep_ = true;
};

}  // namespace tierpilot::tierctl
