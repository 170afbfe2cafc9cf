// What a node reads from jobs, from clients of DAMON's keeper and from file names.
#include <cmath>

#include "daemon/agent/job_channel/job_message.h"
#include "daemon/memory/damon/wire.h"
#include "daemon/memory/pool/names.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

FUZZ(job_line) {
  const auto message = agent::parse_job_line(bytes);
  if (!message) {
    const auto told = agent::job_error_line(message.error().message);
    fuzz::promise(told.find('\n') == told.size() - 1, "what was wrong is told in one line");
    return;
  }
  if (const auto* progress = std::get_if<agent::JobProgress>(&*message)) {
    fuzz::promise(progress->measures.size() <= agent::kMaxJobMeasures, "measures are few");
    fuzz::promise(!progress->loss || std::isfinite(*progress->loss), "a loss is finite");
    for (const auto& [name, value] : progress->measures)
      fuzz::promise(std::isfinite(value) && !name.empty(), "measures are finite");
  }
}

FUZZ(damon_request) {
  const auto given = std::as_bytes(std::span(bytes));
  if (const auto request = decode_request(given))
    fuzz::promise(std::ranges::equal(encode(*request), given), "a request has one form");
}

FUZZ(damon_reply) {
  const auto reply = decode_reply(std::as_bytes(std::span(bytes)));
  if (!reply) return;
  const auto again = decode_reply(encode(reply));
  fuzz::promise(reply->regions.size() > kMaxReadingRegions ||
                    (again && again->regions.size() == reply->regions.size()),
                "a reply that is read and written is the same reply");
}

FUZZ(replica_name) {
  const auto file = parse_replica_file_name(bytes);
  if (!file) return;
  fuzz::promise(bool(check_dataset_name(file->id.name)), "replicas have the names of datasets");
  fuzz::promise(parse_replica_file_name(replica_file_name(*file)) == file,
                "a name that is read and written is the same name");
}
