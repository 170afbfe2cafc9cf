// A terminal that is drawn again and again, by ncurses.
#pragma once

#include <cstdint>
#include <string>

namespace tierpilot::tiertool {

// Standard input and output are a terminal that can be drawn on.
bool have_screen();

// One at a time; the terminal is as before when it is gone.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;

  // `status` stands in the first line; `text` below, from line `first_line` on, cut where the
  // screen ends.
  void draw(const std::string& status, const std::string& text, size_t first_line);
  size_t text_rows() const;

  enum class Key { kNone, kQuit, kPause, kOrder, kUp, kDown, kPageUp, kPageDown, kResized };
  // Waits at most `ns`; SIGINT and SIGTERM are kQuit.
  Key wait(int64_t ns);
};

}  // namespace tierpilot::tiertool
