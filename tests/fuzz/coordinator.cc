// What nodes and users have a coordinator write down. What it wrote it has to read again, or it
// cannot start.
#include <capnp/message.h>

#include <cstring>

#include "coordinator/core/queue/admission.h"
#include "coordinator/job_point.h"
#include "coordinator/model_json.h"
#include "coordinator/service/wire.h"
#include "rpc/stream/frame.h"
#include "rpc/task_wire.h"
#include "tests/fuzz/harness.h"
#include "tools/tierctl/submission/submission_file.h"

using namespace tierpilot;

namespace {

template <class Message, class Read>
void read_by(std::string_view bytes, const Read& read) {
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  std::memcpy(words.asBytes().begin(), bytes.data(), words.asBytes().size());
  auto frame = open_frame(kj::mv(words), {});
  // What cannot be read ends the call, and nothing else.
  if (frame) kj::runCatchingExceptions([&] { read((*frame)->template getRoot<Message>()); });
}

// `parse` and `text_of` are each other's inverse on what is written.
template <class Value, class Parse, class TextOf>
void written(const Value& value, const Parse& parse, const TextOf& text_of) {
  const std::string text = text_of(value);
  const auto again = parse(text);
  fuzz::promise(bool(again), "what was written can be read");
  fuzz::promise(text_of(*again) == text, "what was read is what was written");
}

}  // namespace

FUZZ(exit_message) {
  read_by<wire::Exit>(bytes, [](auto in) { written(read_exit(in), parse_exit, exit_text); });
}

FUZZ(served_message) {
  read_by<wire::ServedData>(bytes,
                            [](auto in) { written(read_served(in), parse_served, served_text); });
}

FUZZ(job_report) {
  read_by<wire::JobReport>(bytes, [](auto in) {
    written(std::vector{read_job_report(in)}, parse_job_points, job_points_text);
  });
}

FUZZ(node_facts) {
  read_by<wire::NodeInfo>(bytes, [](auto in) { (void)read_facts(in); });
}

FUZZ(spec_stored) {
  read_by<wire::TaskSpec>(bytes, [](auto in) {
    const auto spec = read_spec(in);
    if (spec && admit({*spec}, Catalog(), Registry())) written(*spec, parse_spec, spec_text);
  });
}

FUZZ(submission_file) {
  const auto tasks = tierctl::parse_submission(bytes, "input");
  if (!tasks) return;
  if (!admit(*tasks, Catalog(), Registry())) return;
  for (const auto& task : *tasks) written(task, parse_spec, spec_text);
}
