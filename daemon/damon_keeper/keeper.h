// Lets others use DAMON without being root: serves connections, each of which watches one process
// (daemon/memory/damon/wire.h), and gives DAMON back when none watches.
//
// One thread, as the kernel takes one command for all of DAMON at a time. A client that sends
// nonsense, or takes no reply, is disconnected. What is asked is bounded (check() of DamonAttrs),
// more tightly of clients without CAP_SYS_PTRACE (check_plain()): they can take only a part
// of what there is, and each user only a part of that.
#pragma once

#include <memory>
#include <vector>

#include "base/sysroot.h"
#include "base/unique_fd.h"
#include "daemon/damon_keeper/credentials.h"
#include "daemon/memory/damon/files.h"
#include "daemon/memory/damon/wire.h"

namespace tierpilot {

struct KeeperOptions {
  int idle_ms = 60'000;  // without a connection it ends after this
  size_t max_connections = 32;
  // Of peers without CAP_SYS_PTRACE: all together, and those of one user.
  size_t max_plain_connections = 16;
  size_t max_plain_watches = 4;
  size_t max_user_connections = 8;
  size_t max_user_watches = 2;
  DamonFilesOptions files{};
};

class Keeper {
 public:
  // `listener` is a listening socket; `stop` becomes readable when the keeper shall end. Turns off
  // what a killed predecessor left.
  Keeper(const Sysroot& sysroot, UniqueFd listener, int stop, KeeperOptions options = {});
  ~Keeper();

  // Until it is stopped or idle. Nothing of it is left in the kernel then.
  Status run();

 private:
  struct Connection;

  void accept_one();
  bool serve(Connection& connection);  // false: it is over
  Result<DamonReading> answer(Connection& connection, const KeeperRequest& request);
  Status watch(Connection& connection, const KeeperRequest& request);
  Status set_intervals(Connection& connection, const DamonAttrs& attrs);
  Result<DamonReading> read(Connection& connection);
  // Whether a peer may have one connection, or one watch, more.
  bool has_room(const Credentials& peer, bool watching) const;

  const Sysroot& sysroot_;
  const UniqueFd listener_;
  const int stop_;
  const KeeperOptions options_;
  DamonFiles files_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace tierpilot
