// The elements of an SVG picture as text, in one style.
#pragma once

#include <string>
#include <string_view>

namespace tierpilot::sim::plot {

// For text and attributes: markup escaped; what XML cannot hold (control characters, bytes that are
// not UTF-8) as U+FFFD.
std::string escape_xml(std::string_view text);

// About how wide a text is, in pixels; fonts differ.
double text_width(std::string_view text, double size_px);
// The text, cut to the width and with "…" where it is longer.
std::string fit_text(std::string_view text, double size_px, double width_px);

enum class Anchor { kStart, kMiddle, kEnd };

struct TextStyle {
  double size_px = 12;
  Anchor anchor = Anchor::kStart;
  bool bold = false;
  double turn_degrees = 0;  // around its anchor
};

class Svg {
 public:
  void text(double x, double y, std::string_view text, const TextStyle& style);
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void rect(double x, double y, double width, double height, std::string_view colour);
  // `path` in SVG's path language; `dash` as of stroke-dasharray, "" for a solid line.
  void curve(std::string_view path, std::string_view colour, std::string_view dash);
  void area(std::string_view path, std::string_view colour);
  void begin_group(double x, double y);
  void end_group();

  // The whole document.
  std::string document(double width, double height, std::string_view title) const;

 private:
  std::string body_;
};

}  // namespace tierpilot::sim::plot
