#include "tests/bench/placement/board.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace tierpilot::bench {

void UnmapBoard::operator()(Board* board) const {
  ::munmap(board, sizeof(Board));
}

Result<BoardPtr> map_board(int fd) {
  void* at = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return fail_errno(errno, "mapping the board");
  return BoardPtr(static_cast<Board*>(at));
}

Result<UniqueFd> make_board() {
  UniqueFd fd(::memfd_create("placement-board", 0));
  if (!fd || ::ftruncate(fd.get(), sizeof(Board)) != 0) return fail_errno(errno, "memfd_create");
  auto board = map_board(fd.get());
  if (!board) return tl::unexpected(board.error());
  new (board->get()) Board;
  return fd;
}

}  // namespace tierpilot::bench
