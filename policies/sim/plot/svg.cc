#include "policies/sim/plot/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tierpilot::sim::plot {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";
constexpr std::string_view kEllipsis = "…";

// Bytes of the UTF-8 character that `text` begins with; 0 where it begins with none that XML may
// hold.
size_t character_size(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool beyond = first == 0xf4 && byte(1) >= 0x90;
  const bool no_character = first == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe;
  return overlong || surrogate || beyond || no_character ? 0 : size;
}

const char* anchor_name(Anchor anchor) {
  return anchor == Anchor::kStart ? "start" : anchor == Anchor::kMiddle ? "middle" : "end";
}

// Greys that can be read on white and on near black.
constexpr const char* kStyle =
    "text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#757b84}"
    ".grid{stroke:#808080;stroke-opacity:.25}"
    ".axis{stroke:#808080}"
    ".whisker{stroke:#757b84;stroke-width:1.5}";

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t size = character_size(text);
    if (size == 0)
      out += kReplacement;
    else if (text[0] == '&')
      out += "&amp;";
    else if (text[0] == '<')
      out += "&lt;";
    else if (text[0] == '>')
      out += "&gt;";
    else if (text[0] == '"')
      out += "&quot;";
    else
      out += text.substr(0, size);
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return out;
}

double text_width(std::string_view text, double size_px) {
  double width = 0;
  while (!text.empty()) {
    const size_t size = std::max<size_t>(character_size(text), 1);
    width += size > 2 ? 1.0 : 0.57;
    text.remove_prefix(size);
  }
  return width * size_px;
}

std::string fit_text(std::string_view text, double size_px, double width_px) {
  if (text_width(text, size_px) <= width_px) return std::string(text);
  size_t kept = 0;
  while (kept < text.size()) {
    const size_t next = kept + std::max<size_t>(character_size(text.substr(kept)), 1);
    if (text_width(text.substr(0, next), size_px) + size_px > width_px) break;
    kept = next;
  }
  return std::string(text.substr(0, kept)).append(kEllipsis);
}

void Svg::text(double x, double y, std::string_view text, const TextStyle& style) {
  const auto out = std::back_inserter(body_);
  fmt::format_to(out, R"(<text x="{:.1f}" y="{:.1f}" font-size="{:g}" text-anchor="{}")", x, y,
                 style.size_px, anchor_name(style.anchor));
  if (style.bold) body_ += R"( font-weight="600")";
  if (style.turn_degrees != 0)
    fmt::format_to(out, R"svg( transform="rotate({:g} {:.1f} {:.1f})")svg", style.turn_degrees, x,
                   y);
  fmt::format_to(out, ">{}</text>\n", escape_xml(text));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  fmt::format_to(std::back_inserter(body_),
                 R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)"
                 "\n",
                 css_class, x1, y1, x2, y2);
}

void Svg::rect(double x, double y, double width, double height, std::string_view colour) {
  fmt::format_to(std::back_inserter(body_),
                 R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"/>)"
                 "\n",
                 x, y, width, height, colour);
}

void Svg::curve(std::string_view path, std::string_view colour, std::string_view dash) {
  fmt::format_to(std::back_inserter(body_),
                 R"(<path d="{}" fill="none" stroke="{}" stroke-width="1.5" )"
                 R"(stroke-linejoin="round" stroke-linecap="round")",
                 path, colour);
  if (!dash.empty()) fmt::format_to(std::back_inserter(body_), R"( stroke-dasharray="{}")", dash);
  body_ += "/>\n";
}

void Svg::area(std::string_view path, std::string_view colour) {
  fmt::format_to(std::back_inserter(body_), "<path d=\"{}\" fill=\"{}\" fill-opacity=\".22\"/>\n",
                 path, colour);
}

void Svg::begin_group(double x, double y) {
  fmt::format_to(std::back_inserter(body_), "<g transform=\"translate({:g} {:g})\">\n", x, y);
}

void Svg::end_group() {
  body_ += "</g>\n";
}

std::string Svg::document(double width, double height, std::string_view title) const {
  return fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:g}" height="{1:g}" )"
                     R"(viewBox="0 0 {0:g} {1:g}" role="img">)"
                     "\n<title>{2}</title>\n<style>{3}</style>\n{4}</svg>\n",
                     width, height, escape_xml(title), kStyle, body_);
}

}  // namespace tierpilot::sim::plot
