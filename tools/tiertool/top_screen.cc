#include "tools/tiertool/top_screen.h"

#define NCURSES_NOMACROS  // they take names such as erase and timeout
#include <ncurses.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace tierpilot::tiertool {
namespace {

volatile sig_atomic_t asked_to_end = 0;

void ask_to_end(int /*signal*/) {
  asked_to_end = 1;
}

Screen::Key key_of(int code) {
  switch (code) {
    case 'q':
    case 'Q':
    case 27:  // Esc
      return Screen::Key::kQuit;
    case ' ':
    case 'p':
      return Screen::Key::kPause;
    case 's':
    case 'o':
      return Screen::Key::kOrder;
    case KEY_UP:
    case 'k':
      return Screen::Key::kUp;
    case KEY_DOWN:
    case 'j':
      return Screen::Key::kDown;
    case KEY_PPAGE:
      return Screen::Key::kPageUp;
    case KEY_NPAGE:
      return Screen::Key::kPageDown;
    case KEY_RESIZE:
      return Screen::Key::kResized;
    default:
      return Screen::Key::kNone;
  }
}

}  // namespace

bool have_screen() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO) && terminal && *terminal &&
         std::string_view(terminal) != "dumb";
}

Screen::Screen() {
  std::setlocale(LC_CTYPE, "");
  asked_to_end = 0;
  ::initscr();
  ::cbreak();
  ::noecho();
  ::keypad(stdscr, TRUE);
  ::set_escdelay(50);
  ::curs_set(0);
  // Without SA_RESTART, so that getch() returns.
  struct sigaction action {};
  action.sa_handler = ask_to_end;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

Screen::~Screen() {
  ::endwin();
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
}

size_t Screen::text_rows() const {
  return static_cast<size_t>(std::max(LINES - 2, 1));
}

void Screen::draw(const std::string& status, const std::string& text, size_t first_line) {
  ::erase();
  ::attron(A_REVERSE);
  std::string head = status;
  head.resize(std::max(head.size(), static_cast<size_t>(std::max(COLS, 1))), ' ');
  ::mvaddnstr(0, 0, head.c_str(), COLS);
  ::attroff(A_REVERSE);
  std::istringstream lines(text);
  std::string line;
  const int rows = static_cast<int>(text_rows());
  for (int at = -static_cast<int>(first_line); at < rows && std::getline(lines, line); ++at)
    if (at >= 0) ::mvaddnstr(at + 2, 0, line.c_str(), COLS);
  ::refresh();
}

Screen::Key Screen::wait(int64_t ns) {
  if (asked_to_end) return Key::kQuit;
  ::timeout(static_cast<int>(std::clamp<int64_t>(ns / 1'000'000, 0, 100'000)));
  const int code = ::getch();
  return asked_to_end ? Key::kQuit : key_of(code);
}

}  // namespace tierpilot::tiertool
