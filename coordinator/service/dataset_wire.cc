// Datasets, their copies and who needs them, in messages.
#include "coordinator/service/wire.h"
#include "rpc/digest.h"

namespace tierpilot {
void write_need(const DatasetNeed& need, wire::DatasetNeed::Builder out) {
  out.setDataset(need.dataset);
  out.setVersion(need.version);
  out.setBytes(need.bytes);
  out.setWrite(need.write);
  write_texts(need.sources, out.initSources(count(need.sources)));
  write_digest(out.initDigest(), need.digest);
  out.setCheckpoint(need.is_checkpoint);
}

void write_dataset(const Catalog::Entry& entry, wire::Dataset::Builder out) {
  const auto dataset = entry.told();
  out.setName(dataset.name);
  out.setBytes(dataset.bytes);
  out.setVersion(dataset.version);
  out.setHome(dataset.home);
  out.setOrigin(dataset.origin);
  out.setReads(dataset.reads);
  out.setWrites(dataset.writes);
  out.setDigest(to_string(dataset.digest));
  out.setReplicasWanted(dataset.replicas);
  auto replicas = out.initReplicas(count(entry.told_replicas()));
  unsigned i = 0;
  for (const auto& [node, replica] : entry.told_replicas()) {
    replicas[i].setNode(node);
    replicas[i].setVersion(replica.version);
    replicas[i].setInFast(replica.in_fast);
    replicas[i].setInSlow(replica.in_slow);
    replicas[i].setKept(replica.home);
    ++i;
  }
}

size_t wire_size(const Catalog::Entry& entry) {
  size_t bytes = 256 + entry.dataset.name.size() + entry.dataset.origin.size();
  for (const auto& [node, replica] : entry.told_replicas()) bytes += 64 + node.size();
  return bytes;
}

void write_check(const DatasetCheck& check, wire::DatasetCheck::Builder out) {
  out.setName(check.version.dataset);
  out.setVersion(check.version.version);
  out.setDigest(to_string(check.version.digest));
  auto copies = out.initCopies(count(check.nodes));
  for (unsigned i = 0; i < copies.size(); ++i) {
    const auto& node = check.nodes[i];
    copies[i].setNode(node.node);
    copies[i].setFast(node.copies.fast);
    copies[i].setSlow(node.copies.slow);
    copies[i].setError(node.error);
    copies[i].setRestored(node.restored);
  }
}

}  // namespace tierpilot
