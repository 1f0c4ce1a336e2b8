#include "core/report/html.h"

#include <algorithm>
#include <cstdint>

#include "core/base/status.h"
#include "core/base/text.h"
#include "core/report/chart.h"
#include "core/report/csv.h"

namespace elastor {
namespace {

constexpr char kPageStyle[] = R"(<style>
:root{--ink:#1f2328;--dim:#59636e;--page:#fff;--soft:#f5f7f9;--line:#d8dee4;--accent:#0068a8;
--good:#007a5a;--warn:#a04100;--edge:rgba(31,35,40,.2)}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9aa5b1;--page:#0d1117;
--soft:#151b23;--line:#30363d;--accent:#58b6f0;--good:#3ecf9f;--warn:#ff9a52;--edge:rgba(230,237,243,.25)}}
:root{color-scheme:light dark}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
main{max-width:1160px;margin:0 auto;padding:40px 24px 64px}
h1{font-size:30px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:21px;line-height:1.3;margin:52px 0 10px;padding-top:14px;border-top:1px solid var(--line)}
h3{font-size:17px;line-height:1.35;margin:30px 0 4px}
p,ul{margin:8px 0;max-width:74ch}
ul{padding-left:1.2em}
li{margin:6px 0}
a{color:var(--accent)}
.kicker,.state,.note,figcaption{color:var(--dim)}
.kicker{font-size:13px;margin:0 0 4px}
.note,figcaption{font-size:14px;line-height:1.5}
figcaption{max-width:84ch;margin:2px 0 0}
.lead{font-size:18px;line-height:1.5;margin:20px 0 10px}
.answer{border-left:3px solid var(--accent);padding:2px 0 2px 18px;margin:20px 0}
.yes{color:var(--good);font-weight:600}
.no{color:var(--warn);font-weight:600}
nav{font-size:14px;margin:18px 0 0}
nav a{margin-right:16px;white-space:nowrap}
figure{margin:6px 0 26px}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:14px 24px}
.pair svg{width:100%;height:auto;display:block;max-width:560px}
.wide svg{display:block}
.wide{overflow-x:auto;margin:12px 0 20px;background:linear-gradient(90deg,var(--page) 30%,transparent) 0/30px 100%,
linear-gradient(-90deg,var(--page) 30%,transparent) 100%/30px 100%,linear-gradient(90deg,var(--edge),transparent) 0/12px 100%,
linear-gradient(-90deg,var(--edge),transparent) 100%/12px 100%;background-repeat:no-repeat;background-attachment:local,local,scroll,scroll}
.wide:focus-visible,th:focus-visible,summary:focus-visible,a:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
table{border-collapse:collapse;font-size:13.5px;line-height:1.4;font-variant-numeric:tabular-nums}
.cap{color:var(--dim);font-size:14px;line-height:1.4;margin:14px 0 0;max-width:84ch}
.cap+.wide{margin-top:6px}
th,td{padding:5px 14px 5px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th{font-weight:600;vertical-align:bottom;border-bottom:1.5px solid var(--dim)}
.n{text-align:right}
th:last-child,td:last-child{padding-right:0}
td:first-child{min-width:min(9em,36vw)}td.n:first-child{min-width:0}
td.n{white-space:nowrap}
th[aria-sort]{cursor:pointer}
th[aria-sort]::after{content:'\2195';color:var(--dim);margin-left:4px;font-weight:400}
th[aria-sort=ascending]::after{content:'\2191';color:var(--ink)}
th[aria-sort=descending]::after{content:'\2193';color:var(--ink)}
code,pre,td.k{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:.92em}
td.k{font-size:12.5px;white-space:nowrap}
pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:12px 14px;margin:10px 0;
overflow-x:auto;font-size:12.5px;line-height:1.5}
dl{display:grid;grid-template-columns:minmax(150px,max-content) 1fr;gap:4px 20px;margin:12px 0;font-size:14px}
dt{color:var(--dim)}
dd{margin:0;overflow-wrap:anywhere}
details{margin:10px 0}
summary{cursor:pointer;color:var(--accent)}
td svg{display:block;margin:-3px 0}
sup{font-size:.75em;line-height:0}
td details{margin:0}td details[open]{min-width:34ch}td summary{white-space:nowrap}
.word{display:inline-block;max-width:100%;overflow-wrap:anywhere;vertical-align:top}
@media (max-width:640px){
body{font-size:15px}main{padding:24px 14px 48px}h1{font-size:25px}h2{font-size:19px;margin-top:40px}
.lead{font-size:16.5px}.answer{padding-left:13px}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:8px}}
@media print{
body{font-size:10.5pt}main{max-width:none;padding:0}nav,th[aria-sort]::after{display:none}
figure,tr,svg{break-inside:avoid}h2,h3{break-after:avoid}.wide{overflow:visible;background:none}
table{font-size:8pt;width:100%}th,td{padding:3px 6px 3px 0}td.k{white-space:normal;overflow-wrap:anywhere;min-width:15ch;font-size:7pt}
td.n{white-space:normal}td details[open]{min-width:24ch}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:7.5pt}
.pair{grid-template-columns:1fr 1fr}a{color:inherit;text-decoration:none}}
</style>
)";

// Its hash is in the policy: printf %s "$script" | openssl dgst -sha256 -binary | base64.
constexpr char kScript[] = R"(
for (const table of document.querySelectorAll('table[data-sortable]')) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const key = (row, i) => row.cells[i].dataset.sort ?? row.cells[i].textContent;
  const sort = i => {
    const down = heads[i].getAttribute('aria-sort') === 'ascending';
    heads.forEach(h => h.setAttribute('aria-sort', 'none'));
    heads[i].setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const order = (a, b) => {
      const x = key(a, i), y = key(b, i);
      return x === '' || y === '' ? (x === '') - (y === '') :
        (down ? -1 : 1) * (x - y || String(x).localeCompare(y, 'en', {numeric: true}));
    };
    body.append(...[...body.rows].sort(order));
  };
  heads.forEach((head, i) => {
    head.tabIndex = 0;
    head.setAttribute('aria-sort', 'none');
    head.addEventListener('click', () => sort(i));
    head.addEventListener('keydown', e => {
      if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); sort(i); }
    });
  });
}
)";
constexpr char kScriptHash[] = "sha256-7nIbPeK+DeCmx9yqpUoClNglkPknSo+v6OFDuP64SEo=";

// Bytes of the UTF-8 character that begins at `at`; 0: none does.
size_t CharacterBytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const size_t bytes = first < 0x80                    ? 1
                       : first >= 0xc2 && first < 0xe0 ? 2
                       : first >= 0xe0 && first < 0xf0 ? 3
                       : first >= 0xf0 && first < 0xf5 ? 4
                                                       : 0;
  if (bytes == 0 || at + bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if (byte(at + i) < 0x80 || byte(at + i) >= 0xc0) return 0;
  }
  const bool overlong =
      (first == 0xe0 && byte(at + 1) < 0xa0) || (first == 0xf0 && byte(at + 1) < 0x90);
  const bool surrogate = first == 0xed && byte(at + 1) >= 0xa0;
  const bool beyond = first == 0xf4 && byte(at + 1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : bytes;
}

std::string Attribute(const char* name, const std::string& value) {
  return value.empty() ? "" : StrCat(" ", name, "=\"", Escaped(value), "\"");
}

// The picture without the style, which the page has once.
std::string Embedded(const Figure& figure) {
  std::string svg = figure.svg;
  const size_t style = svg.find(ChartStyle());
  if (style != svg.npos) svg.erase(style, ChartStyle().size());
  return svg;
}

std::string CellClass(const Cell& cell) {
  return cell.number ? " class=\"n\"" : cell.code ? " class=\"k\"" : "";
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterBytes(text, at);
    const char c = text[at];
    if (bytes == 0) {
      escaped += "\ufffd";
      ++at;
      continue;
    }
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else if (c == '\'') {
      escaped += "&#39;";
    } else if (bytes == 1 && c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) {
      escaped += ' ';
    } else if (bytes > 1) {
      escaped += WithoutControls(std::string(text.substr(at, bytes)));
    } else {
      escaped += c;
    }
    at += bytes;
  }
  return escaped;
}

std::string EscapedFormula(std::string_view text) {
  std::string html = Escaped(text);
  constexpr std::string_view kMinus = "\u2212";
  for (size_t at = html.find('^'); at != html.npos; at = html.find('^', at + 1)) {
    size_t end = at + 1;
    if (html.compare(end, kMinus.size(), kMinus) != 0) continue;
    end = html.find_first_not_of("0123456789.", end + kMinus.size());
    html.insert(std::min(end, html.size()), "</sup>");
    html.replace(at, 1, "<sup>");
  }
  return html;
}

std::string JsonForScript(std::string json) {
  // Outside of strings JSON has no '<', and in them it may be written so.
  for (size_t at = json.find('<'); at != json.npos; at = json.find('<', at)) {
    json.replace(at, 1, "\\u003c");
  }
  return json;
}

Cell Heading(const std::string& text, bool number, const std::string& title) {
  return {.text = text, .title = title, .number = number};
}

Cell NumberCell(const std::string& text, double value) {
  return {.text = text, .sort = CsvNumber(value), .number = true};
}

std::string Table(const std::string& caption, const std::vector<Cell>& headings,
                  const std::vector<std::vector<Cell>>& rows, bool sortable) {
  // Outside of what scrolls, so that a narrow window shows all of the caption.
  std::string text = "<p class=\"cap\">" + Escaped(caption) +
                     "</p>\n<div class=\"wide\" tabindex=\"0\" role=\"region\"" +
                     Attribute("aria-label", caption) + "><table" +
                     (sortable ? " data-sortable" : "") + ">\n<thead><tr>";
  for (const Cell& cell : headings) {
    text += "<th scope=\"col\"" + CellClass(cell) + Attribute("title", cell.title) + ">" +
            Escaped(cell.text) + "</th>";
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Cell>& row : rows) {
    text += "<tr>";
    for (const Cell& cell : row) {
      text += "<td" + CellClass(cell) + Attribute("data-sort", cell.sort) +
              Attribute("title", cell.title) + ">" +
              (cell.html.empty() ? Escaped(cell.text) : cell.html) + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string Paragraph(const std::string& text) { return "<p>" + Escaped(text) + "</p>\n"; }

std::string Definition(const std::string& name, const std::string& value) {
  return "<dt>" + Escaped(name) + "</dt><dd>" + Escaped(value) + "</dd>\n";
}

std::string FiguresHtml(const FigureGroup& group) {
  if (group.figures.empty()) return "";
  std::string figures = group.wide ? "<div class=\"wide\" tabindex=\"0\" role=\"region\"" +
                                         Attribute("aria-label", group.heading) + ">\n"
                                   : "<div class=\"pair\">\n";
  for (const Figure& figure : group.figures) figures += Embedded(figure);
  figures += "</div>\n";
  const std::string caption = "<figcaption>" + Escaped(group.caption) + "</figcaption>\n";
  if (group.folded) {
    return "<details><summary>" + Escaped(group.heading) + "</summary>\n<figure>" + figures +
           caption + "</figure></details>\n";
  }
  const std::string heading =
      group.heading.empty() ? "" : "<h3>" + Escaped(group.heading) + "</h3>\n";
  return heading + "<figure>" + figures + caption + "</figure>\n";
}

std::string Page(const std::string& title, const std::string& body, const std::string& json) {
  return StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src '",
      kScriptHash,
      "'\">\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
      Escaped(title), "</title>\n", kPageStyle, ChartStyle(), "</head>\n<body>\n<main>\n", body,
      "</main>\n<script type=\"application/json\" id=\"data\">", JsonForScript(json),
      "</script>\n<script>", kScript, "</script>\n</body>\n</html>\n");
}

}  // namespace elastor
