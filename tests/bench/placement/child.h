// The measured process, for as long as it lives.
#pragma once

#include <sys/types.h>

#include <memory>

#include "tests/bench/placement/board.h"
#include "tests/bench/placement/program.h"

namespace tierpilot::bench {

// This program again, as "work": memory that a child inherits cannot be moved, so it is executed.
class Child {
 public:
  // Returns when the data is in memory.
  static Result<std::unique_ptr<Child>> start(const ProgramOptions& options);
  ~Child();
  Child(const Child&) = delete;

  pid_t pid() const { return pid_; }
  Board& board() { return *board_; }
  // kIo when it has ended, which it does not by itself.
  Status alive() const;

 private:
  Child(pid_t pid, BoardPtr board) : pid_(pid), board_(std::move(board)) {}
  const pid_t pid_;
  BoardPtr board_;
};

}  // namespace tierpilot::bench
