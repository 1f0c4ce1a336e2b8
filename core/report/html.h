#ifndef ELASTOR_CORE_REPORT_HTML_H_
#define ELASTOR_CORE_REPORT_HTML_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/report/chart_table.h"

namespace elastor {

// Pages of results: one HTML file each, that needs no other file and asks the network for nothing,
// follows the viewer's light or dark scheme, and may be printed.

// Returns a text for HTML and its attributes: the five characters as entities, control characters
// as spaces, bytes that are not UTF-8 as U+FFFD.
std::string Escaped(std::string_view text);

// Does the same and shows "x^-0.35" as a power.
std::string EscapedFormula(std::string_view text);

// Returns a JSON text in a form that may stand in a script element: no "</" and no "<!--".
std::string JsonForScript(std::string json);

// A table cell: its text is escaped.
struct Cell {
  std::string text = {};
  std::string sort = {};   // sort key; empty: the text is the key
  std::string title = {};  // shown under a pointer
  bool number = false;     // right-aligned
  bool code = false;       // in a fixed-width font
  std::string html = {};   // replaces the text; not escaped
};

// A heading above a column.
Cell Heading(const std::string& text, bool number = false, const std::string& title = "");
// Returns a cell that shows a number as `text` and sorts by its value; a number that is not finite
// has no place in the order.
Cell NumberCell(const std::string& text, double value);

// A table with a caption and a row of headings; `sortable` ones can be sorted by a click or a key.
std::string Table(const std::string& caption, const std::vector<Cell>& headings,
                  const std::vector<std::vector<Cell>>& rows, bool sortable);

// A paragraph of plain text.
std::string Paragraph(const std::string& text);
// An entry of a <dl>.
std::string Definition(const std::string& name, const std::string& value);

// A picture on a page, which is also a file of its own.
struct Figure {
  std::string name;  // name of the file, without its extension: "logloss_by_dense_parameters"
  std::string svg;
  ChartTable table = {};  // what it shows
};
template <typename Chart>
Figure MakeFigure(std::string name, const Chart& chart) {
  return {std::move(name), ToSvg(chart), TableOf(chart)};
}

// Figures under one heading.
struct FigureGroup {
  std::string heading;
  std::string caption;  // describes what all figures show, and the bars' meaning
  std::vector<Figure> figures;
  bool folded = false;  // shown on demand
  bool wide = false;    // below each other, as wide as they are; else side by side
};
// Returns the HTML of a group; empty if it has no figures.
std::string FiguresHtml(const FigureGroup& group);

// Returns a page: the head with the policy and the style, the body, and the script at the end.
std::string Page(const std::string& title, const std::string& body, const std::string& json);

}  // namespace elastor

#endif  // ELASTOR_CORE_REPORT_HTML_H_
