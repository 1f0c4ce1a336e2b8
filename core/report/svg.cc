#include "core/report/svg.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "core/base/text.h"
#include "core/report/chart.h"
#include "core/report/html.h"

namespace elastor {
namespace {

// The dark scheme is for screens alone: paper keeps the light one.
constexpr char kChartStyle[] =
    "<style>\n"
    "text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
    "fill:#1f2328}\n"
    ".title{font-size:17px;font-weight:600}\n"
    ".strong{font-weight:600}\n"
    ".subtitle,.label{fill:#59636e}\n"
    ".label{font-size:12px}\n"
    ".name{paint-order:stroke;stroke:#ffffff;stroke-width:3;stroke-linejoin:round}\n"
    ".page{fill:#ffffff}\n"
    ".axis,.grid,.ghost,.line,.raw,.whisker{fill:none}\n"
    ".axis{stroke:#818b98}\n"
    ".grid{stroke:#e3e7ec}\n"
    ".ghost{stroke:#818b98;stroke-dasharray:3 3}\n"
    ".line{stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
    ".whisker{stroke-width:1.5}\n"
    ".area{stroke:none;fill-opacity:.18}\n"
    ".marker{stroke:#ffffff;stroke-width:1}\n"
    ".run{stroke:none;fill-opacity:.4}\n"
    ".raw{stroke-width:1;stroke-opacity:.35}\n"
    ".hollow{fill:#ffffff;stroke-width:1.8}\n"
    ".beyond{stroke-dasharray:6 4}\n"
    ".front{fill:none;stroke:#818b98;stroke-width:1.5}\n"
    ".cell{fill:#0068a8}\n"
    ".c0{stroke:#0068a8}.c0.area,.c0.marker,.c0.run{fill:#0068a8}\n"
    ".c1{stroke:#c8500a}.c1.area,.c1.marker,.c1.run{fill:#c8500a}\n"
    ".c2{stroke:#007a5a}.c2.area,.c2.marker,.c2.run{fill:#007a5a}\n"
    ".c3{stroke:#a63a8c}.c3.area,.c3.marker,.c3.run{fill:#a63a8c}\n"
    ".c4{stroke:#8a6a00}.c4.area,.c4.marker,.c4.run{fill:#8a6a00}\n"
    ".c5{stroke:#59636e}.c5.area,.c5.marker,.c5.run{fill:#59636e}\n"
    ".area,.run{stroke:none}.marker{stroke:#ffffff}\n"
    "@media screen and (prefers-color-scheme:dark){\n"
    "text{fill:#e6edf3}.subtitle,.label{fill:#9aa5b1}.page{fill:#0d1117}.name{stroke:#0d1117}\n"
    ".axis,.ghost{stroke:#7d8590}.grid{stroke:#262d36}.area{fill-opacity:.28}\n"
    ".cell{fill:#58b6f0}\n"
    ".c0{stroke:#58b6f0}.c0.area,.c0.marker,.c0.run{fill:#58b6f0}\n"
    ".c1{stroke:#ff9a52}.c1.area,.c1.marker,.c1.run{fill:#ff9a52}\n"
    ".c2{stroke:#3ecf9f}.c2.area,.c2.marker,.c2.run{fill:#3ecf9f}\n"
    ".c3{stroke:#e892d2}.c3.area,.c3.marker,.c3.run{fill:#e892d2}\n"
    ".c4{stroke:#e3c044}.c4.area,.c4.marker,.c4.run{fill:#e3c044}\n"
    ".c5{stroke:#9aa5b1}.c5.area,.c5.marker,.c5.run{fill:#9aa5b1}\n"
    ".area,.run{stroke:none}.marker{stroke:#0d1117}.hollow{fill:#0d1117}.front{stroke:#7d8590}\n"
    "}\n"
    "</style>\n";

// To a tenth: "12", "12.5", "-0.3".
std::string Number(double value) {
  const int64_t tenths = std::llround(value * 10);
  std::string text = tenths < 0 ? "-" : "";
  text += std::to_string(std::llabs(tenths) / 10);
  if (tenths % 10 != 0) StrAppend(&text, ".", std::llabs(tenths) % 10);
  return text;
}
std::string Pair(SvgPoint p) { return Number(p.x) + " " + Number(p.y); }

std::string Attribute(std::string_view name, std::string_view value) {
  return StrCat(" ", name, "=\"", value, "\"");
}

}  // namespace

std::string_view ChartStyle() { return kChartStyle; }

SvgWriter::SvgWriter(double width, double height, const std::string& title,
                     const std::string& description) {
  const std::string w = Number(width), h = Number(height);
  text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"" + Attribute("width", w) +
          Attribute("height", h) + Attribute("viewBox", "0 0 " + w + " " + h) + ">\n<title>" +
          Escaped(title) + "</title>\n<desc>" + Escaped(description) + "</desc>\n" + kChartStyle +
          "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
}

void SvgWriter::Text(SvgPoint at, TextAnchor anchor, std::string_view css_class,
                     std::string_view text, double rotation_degrees) {
  text_ += "<text" + Attribute("x", Number(at.x)) + Attribute("y", Number(at.y));
  if (!css_class.empty()) text_ += Attribute("class", css_class);
  if (anchor != TextAnchor::kStart) {
    text_ += Attribute("text-anchor", anchor == TextAnchor::kMiddle ? "middle" : "end");
  }
  if (rotation_degrees != 0) {
    text_ += Attribute("transform", "rotate(" + Number(rotation_degrees) + " " + Pair(at) + ")");
  }
  text_ += ">" + Escaped(text) + "</text>\n";
}

void SvgWriter::Line(SvgPoint from, SvgPoint to, std::string_view css_class) {
  Path({from, to}, css_class, /*closed=*/false);
}
void SvgWriter::Polyline(const std::vector<SvgPoint>& points, std::string_view css_class) {
  Path(points, css_class, /*closed=*/false);
}
void SvgWriter::Polygon(const std::vector<SvgPoint>& points, std::string_view css_class) {
  Path(points, css_class, /*closed=*/true);
}

void SvgWriter::Path(const std::vector<SvgPoint>& points, std::string_view css_class, bool closed) {
  text_ += "<path" + Attribute("class", css_class) + " d=\"M";
  for (size_t i = 0; i < points.size(); ++i) text_ += (i == 0 ? "" : " ") + Pair(points[i]);
  text_ += closed ? "Z\"/>\n" : "\"/>\n";
}

void SvgWriter::Marker(SvgPoint at, int shape, std::string_view css_class) {
  const auto [x, y] = at;
  switch (shape % 5) {
    case 0:
      text_ += "<circle" + Attribute("class", css_class) + Attribute("cx", Number(x)) +
               Attribute("cy", Number(y)) + " r=\"4.5\"/>\n";
      return;
    case 1:
      return Polygon({{x - 4, y - 4}, {x + 4, y - 4}, {x + 4, y + 4}, {x - 4, y + 4}}, css_class);
    case 2:
      return Polygon({{x, y - 5.5}, {x + 5.5, y}, {x, y + 5.5}, {x - 5.5, y}}, css_class);
    case 3:
      return Polygon({{x, y - 5}, {x + 5, y + 4}, {x - 5, y + 4}}, css_class);
    default:
      return Polygon({{x, y + 5}, {x + 5, y - 4}, {x - 5, y - 4}}, css_class);
  }
}

void SvgWriter::Dot(SvgPoint at, std::string_view css_class) {
  text_ += "<circle" + Attribute("class", css_class) + Attribute("cx", Number(at.x)) +
           Attribute("cy", Number(at.y)) + " r=\"2.2\"/>\n";
}

void SvgWriter::Cell(SvgPoint corner, double width, double height, double opacity) {
  const auto hundredths = static_cast<int>(std::lround(100 * opacity));
  if (hundredths == 0) return;
  const std::string digits = std::to_string(100 + hundredths % 100).substr(1);
  text_ += "<rect class=\"cell\"" + Attribute("x", Number(corner.x)) +
           Attribute("y", Number(corner.y)) + Attribute("width", Number(width)) +
           Attribute("height", Number(height)) +
           Attribute("fill-opacity", hundredths == 100 ? "1" : "." + digits) + "/>\n";
}

void SvgWriter::BeginGroup(std::string_view tip) {
  text_ += "<g><title>" + Escaped(tip) + "</title>\n";
}
void SvgWriter::EndGroup() { text_ += "</g>\n"; }

std::string SvgWriter::Finish() && { return std::move(text_) + "</svg>\n"; }

std::string ColorClass(size_t series, const char* kind) {
  return StrCat("c", series % SvgWriter::kColors, " ", kind);
}

double TextWidth(std::string_view text, double font_size) {
  double ems = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 && byte < 0xc0) continue;  // the rest of a character
    const bool narrow = c == ' ' || c == '.' || c == ',' || c == 'i' || c == 'l' || c == 't' ||
                        c == ':' || c == '(' || c == ')' || c == '|';
    const bool wide = c == 'm' || c == 'w' || c == 'M' || c == 'W' || c == '%';
    ems += narrow ? 0.36 : wide ? 0.92 : 0.61;
  }
  return ems * font_size;
}

std::vector<std::string> WrapText(std::string_view text, double font_size, double width) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    std::string word(text.substr(begin, end - begin));
    begin = end + 1;
    while (TextWidth(word, font_size) > width && word.size() > 1) {
      size_t fits = word.size();
      do {
        --fits;
      } while (fits > 1 && ((static_cast<unsigned char>(word[fits]) & 0xc0) == 0x80 ||
                            TextWidth(word.substr(0, fits), font_size) > width));
      lines.push_back(word.substr(0, fits));
      word.erase(0, fits);
    }
    if (!lines.empty() && TextWidth(lines.back() + " " + word, font_size) <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

}  // namespace elastor
