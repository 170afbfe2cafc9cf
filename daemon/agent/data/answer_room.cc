#include "daemon/agent/data/answer_room.h"

#include <fmt/format.h>

#include <utility>

#include "rpc/error.h"

namespace tierpilot::agent {

class AnswerRoom::Reader {
 public:
  explicit Reader(std::shared_ptr<const Unsent> unsent) : unsent(std::move(unsent)) {}

  const std::shared_ptr<const Unsent> unsent;
  size_t bytes = 0;  // that are made
  std::list<Place*> line;
};

class AnswerRoom::Share {
 public:
  Share(AnswerRoom& room, std::shared_ptr<Reader> reader, size_t bytes)
      : room_(room.weak_from_this()), reader_(std::move(reader)), bytes_(bytes) {}
  ~Share() {
    if (const auto room = room_.lock()) room->leave_later(reader_, bytes_);
  }
  KJ_DISALLOW_COPY(Share);

 private:
  const std::weak_ptr<AnswerRoom> room_;  // none at the end, when the loop may be gone, too
  const std::shared_ptr<Reader> reader_;
  const size_t bytes_;
};

class AnswerRoom::Place {
 public:
  Place(kj::PromiseFulfiller<std::shared_ptr<Share>>& fulfiller, AnswerRoom& room,
        std::shared_ptr<Reader> reader, size_t bytes)
      : fulfiller_(fulfiller),
        room_(room.weak_from_this()),
        reader_(std::move(reader)),
        bytes_(bytes) {
    if (reader_->line.empty()) room.waiting_.push_back(reader_.get());
    reader_->line.push_back(this);
  }
  ~Place() { leave_line(); }
  KJ_DISALLOW_COPY(Place);

  // Does not advance the lines.
  void grant(AnswerRoom& room) {
    leave_line();
    ++room.reads_;
    room.bytes_ += bytes_;
    reader_->bytes += bytes_;
    fulfiller_.fulfill(std::make_shared<Share>(room, reader_, bytes_));
  }

 private:
  void leave_line() {
    if (!std::exchange(waits_, false)) return;
    reader_->line.remove(this);
    const auto room = room_.lock();
    if (room && reader_->line.empty()) room->waiting_.remove(reader_.get());
  }

  kj::PromiseFulfiller<std::shared_ptr<Share>>& fulfiller_;
  const std::weak_ptr<AnswerRoom> room_;
  const std::shared_ptr<Reader> reader_;
  const size_t bytes_;
  bool waits_ = true;
};

AnswerRoom::AnswerRoom(EventLoop& loop, std::shared_ptr<Unsent> all, const Limits& limits)
    : loop_(loop), all_(std::move(all)), limits_(limits) {
  all_->on_less([this] { advance(); });
}

AnswerRoom::~AnswerRoom() {
  all_->on_less(nullptr);
}

std::shared_ptr<AnswerRoom::Reader> AnswerRoom::add(std::shared_ptr<const Unsent> unsent) {
  return std::make_shared<Reader>(std::move(unsent));
}

kj::Promise<std::shared_ptr<AnswerRoom::Share>> AnswerRoom::enter(std::shared_ptr<Reader> reader,
                                                                  size_t bytes) {
  auto entered =
      kj::newAdaptedPromise<std::shared_ptr<Share>, Place>(*this, std::move(reader), bytes);
  advance();
  const auto give_up = [patience_ms = limits_.patience_ms]() -> std::shared_ptr<Share> {
    kj::throwFatalException(to_exception(
        {ErrorCode::kExhausted,
         fmt::format("other answers have waited to be taken for {} ms", patience_ms)}));
  };
  return entered.exclusiveJoin(loop_.after_ms(limits_.patience_ms).then(give_up));
}

bool AnswerRoom::has_room() const {
  return reads_ < limits_.reads && bytes_ + all_->bytes() < limits_.all_bytes;
}

bool AnswerRoom::has_room(const Reader& reader) const {
  return reader.bytes + reader.unsent->bytes() < limits_.connection_bytes;
}

void AnswerRoom::advance() {
  for (size_t full = 0; full < waiting_.size() && has_room();) {
    Reader& first = *waiting_.front();
    waiting_.splice(waiting_.end(), waiting_, waiting_.begin());
    if (!has_room(first)) {
      ++full;
      continue;
    }
    first.line.front()->grant(*this);
    full = 0;
  }
}

// By then the answer is among the unsent bytes, so that it never seems to be gone.
void AnswerRoom::leave_later(const std::shared_ptr<Reader>& reader, size_t bytes) {
  loop_.detach(kj::evalLater([weak = weak_from_this(), reader, bytes] {
                 if (const auto room = weak.lock()) room->leave(*reader, bytes);
               }),
               "ending a read for another node");
}

void AnswerRoom::leave(Reader& reader, size_t bytes) {
  --reads_;
  bytes_ -= bytes;
  reader.bytes -= bytes;
  advance();
}

}  // namespace tierpilot::agent
