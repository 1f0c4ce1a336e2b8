#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_HTML_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_HTML_H_

#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// A text for HTML and its attributes: the five characters as entities, control characters as
// spaces, bytes that are not UTF-8 as U+FFFD.
std::string Escaped(std::string_view text);

// The same, with "x^-0.35" as a power.
std::string EscapedFormula(std::string_view text);

// A JSON text as it may stand in a script element: no "</" and no "<!--".
std::string JsonForScript(std::string json);

// A table cell: its text is escaped.
struct Cell {
  std::string text = {};
  std::string sort = {};   // sorted by this instead; empty: by the text
  std::string title = {};  // shown under a pointer
  bool number = false;     // right-aligned
  bool code = false;       // of one width
  std::string html = {};   // in place of the text; not escaped
};

// A table with a caption and a row of headings; `sortable` ones can be sorted by a click or a key.
std::string Table(const std::string& caption, const std::vector<Cell>& headings,
                  const std::vector<std::vector<Cell>>& rows, bool sortable);

// What holds the body, between the head with the policy and the style and the script at the end.
std::string Page(const std::string& title, const std::string& body, const std::string& json);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_HTML_H_
