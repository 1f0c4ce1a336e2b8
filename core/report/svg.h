#ifndef ELASTOR_CORE_REPORT_SVG_H_
#define ELASTOR_CORE_REPORT_SVG_H_

#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// A place on the page: pixels from the left and the top.
struct SvgPoint {
  double x = 0;
  double y = 0;
};

enum class TextAnchor { kStart, kMiddle, kEnd };

// Builds the text of one SVG file. Coordinates are written to a tenth of a pixel. The classes that
// elements may have:
//   text: title, subtitle, label (of ticks and rows), strong, name (stands out of lines)
//   lines: axis, grid, ghost (dashed)
//   c0 .. c5: the palette, with line, area, marker, whisker, run (a faint dot), raw (a faint thin
//   line), hollow (a marker),
//   beyond (a dashed line); front: a line that is no series'
//   cell: of a heat map
class SvgWriter {
 public:
  static constexpr int kColors = 6;

  // height in pixels; title and description are for readers who do not see the picture.
  SvgWriter(double width, double height, const std::string& title, const std::string& description);

  void Text(SvgPoint at, TextAnchor anchor, std::string_view css_class, std::string_view text,
            double rotation_degrees = 0);
  void Line(SvgPoint from, SvgPoint to, std::string_view css_class);
  void Polyline(const std::vector<SvgPoint>& points, std::string_view css_class);
  void Polygon(const std::vector<SvgPoint>& points, std::string_view css_class);
  // Draws a marker. `shape` selects circle, square, diamond or one of two triangles, and repeats.
  void Marker(SvgPoint at, int shape, std::string_view css_class);

  void Dot(SvgPoint at, std::string_view css_class);
  // Draws a filled rectangle; opacity in [0, 1], written to a hundredth.
  void Cell(SvgPoint corner, double width, double height, double opacity);
  // Begins a group: everything drawn until EndGroup shows the text `tip` under a pointer.
  void BeginGroup(std::string_view tip);
  void EndGroup();

  std::string Finish() &&;

 private:
  void Path(const std::vector<SvgPoint>& points, std::string_view css_class, bool closed);

  std::string text_;
};

// Returns the classes of an element of this kind (line, area, marker, ...) that has a series'
// color.
std::string ColorClass(size_t series, const char* kind);

// Returns an estimate of a text's width in pixels at a font size, rather too large than too small.
double TextWidth(std::string_view text, double font_size);

// Returns `text` as lines of at most `width` pixels, broken at spaces, and
// within words that are longer than a line.
std::vector<std::string> WrapText(std::string_view text, double font_size, double width);

}  // namespace elastor

#endif  // ELASTOR_CORE_REPORT_SVG_H_
