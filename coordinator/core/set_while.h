// A flag that is set as long as this lives, also where an exception ends it.
#pragma once

namespace tierpilot {

class SetWhile {
 public:
  explicit SetWhile(bool& flag) : flag_(flag) { flag_ = true; }
  ~SetWhile() { flag_ = false; }
  SetWhile(const SetWhile&) = delete;
  SetWhile& operator=(const SetWhile&) = delete;

 private:
  bool& flag_;
};

}  // namespace tierpilot
