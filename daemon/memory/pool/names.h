// Names of datasets and of the files that hold them. A name is hostile input: it becomes a path.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/content_digest.h"
#include "base/result.h"

namespace tierpilot {

// One immutable version of a dataset. Versions start at 1; UINT64_MAX is none. Two writers may have
// made different bytes under one number, so a version is told by its content: of what is held,
// asked for or read the digest is known.
struct DatasetId {
  std::string name;
  uint64_t version = 0;
  ContentDigest digest{};
  auto operator<=>(const DatasetId&) const = default;
};

// [A-Za-z0-9_.-]{1,128}, not starting with '.'; else kInvalid.
Status check_dataset_name(std::string_view name);
// Also kInvalid: no such version, or no digest.
Status check_dataset_id(const DatasetId& id);
// Who holds pins, "task-attempt": [A-Za-z0-9_.-]{1,100}, not starting with '.'; else kInvalid.
Status check_owner(std::string_view owner);

// "dataset 'genes' version 3", for messages.
std::string describe(const DatasetId& id);

// A replica's file is "<name>@<version>@<bytes>@<digest>": a restart needs no other catalogue, and
// a file of another size is known to be damaged. Older programs left the digest away: it is
// unknown. Files that are not (yet) a replica start with a dot.
struct ReplicaFile {
  DatasetId id;
  uint64_t bytes = 0;
  bool operator==(const ReplicaFile&) const = default;
};
std::string replica_file_name(const ReplicaFile& file);
std::optional<ReplicaFile> parse_replica_file_name(std::string_view file_name);

std::string draft_file_name(uint64_t serial);
std::string private_file_name(std::string_view owner, std::string_view dataset);
// Drafts and private copies: nothing that outlives the daemon that made them.
bool is_transient_file_name(std::string_view file_name);

}  // namespace tierpilot
