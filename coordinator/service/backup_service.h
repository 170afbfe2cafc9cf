// Backups that clients fetch: made by a thread of their own, one at a time, and read from a file
// that has no name any more.
#pragma once

#include <filesystem>
#include <functional>
#include <thread>

#include "base/unique_fd.h"
#include "coordinator/policy_host/policy_host.h"
#include "rpc/cluster.capnp.h"
#include "rpc/event_loop.h"

namespace tierpilot {

// Event loop thread only.
class BackupMaker {
 public:
  using Done = std::function<void(Result<UniqueFd>)>;

  BackupMaker(EventLoop& loop, std::filesystem::path state_dir, PolicyHost& host)
      : loop_(loop), state_dir_(std::move(state_dir)), host_(host) {}
  ~BackupMaker() { finish(); }

  // kConflict while another is being made.
  void make(Done done);
  // Waits for the one that is being made.
  void finish();

 private:
  Result<UniqueFd> write();

  EventLoop& loop_;
  const std::filesystem::path state_dir_;
  PolicyHost& host_;
  Done done_;
  std::thread thread_;
};

class BackupReader final : public wire::Backup::Server {
 public:
  explicit BackupReader(UniqueFd fd) : fd_(std::move(fd)) {}
  kj::Promise<void> read(ReadContext context) override;

 private:
  UniqueFd fd_;
};

}  // namespace tierpilot
