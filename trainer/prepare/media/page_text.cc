#include "trainer/prepare/media/page_text.h"

#include <iconv.h>
#include <libxml/HTMLparser.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "trainer/data/file_kind.h"

namespace elastor {
namespace {

constexpr size_t kMostPageBytes = 1 << 30;
constexpr size_t kHeadBytes = 4096;              // where a page declares its encoding
constexpr char kReplacement[] = "\xef\xbf\xbd";  // U+FFFD

// The text of a page as it grows.
class PageText {
 public:
  // Pages may be nested deeper than a stack allows.
  void Visit(const xmlNode* node) {
    std::vector<const xmlNode*> open;
    while (true) {
      for (; node != nullptr; node = IsSeen(node) ? node->children : nullptr) {
        Enter(node);
        open.push_back(node);
      }
      if (open.empty()) return;
      if (IsBlock(open.back())) gap_ = '\n';
      node = open.back()->next;
      open.pop_back();
    }
  }
  std::string Take() && {
    if (!text_.empty()) text_ += '\n';
    return std::move(text_);
  }

 private:
  // Whether the element's children are a part of what is seen.
  static bool IsSeen(const xmlNode* node) {
    if (node->type != XML_ELEMENT_NODE) return false;
    const std::string_view name = reinterpret_cast<const char*>(node->name);
    return name != "script" && name != "style";
  }
  static bool IsBlock(const xmlNode* node) {
    if (!IsSeen(node)) return false;
    const std::string_view name = reinterpret_cast<const char*>(node->name);
    if (name == "wbr") return false;  // where a word may break; libxml2 does not know it
    const htmlElemDesc* const element = htmlTagLookup(node->name);
    return element == nullptr || !element->isinline || name == "br";
  }
  void Enter(const xmlNode* node) {
    if (node->type == XML_TEXT_NODE) Append(reinterpret_cast<const char*>(node->content));
    if (IsBlock(node)) gap_ = '\n';
  }
  void Append(std::string_view piece) {
    for (const char c : piece) {
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        if (gap_ == 0) gap_ = ' ';
        continue;
      }
      if (gap_ != 0 && !text_.empty()) text_ += gap_;
      gap_ = 0;
      text_ += c;
    }
  }

  std::string text_;
  char gap_ = 0;  // what stands before the next character; 0: nothing
};

// The encoding that the page names in a <meta> or in <?xml, in small letters; empty: it names none.
std::string DeclaredEncoding(std::string_view page) {
  const std::string head = LowerCase(page.substr(0, kHeadBytes));
  for (const std::string_view word : {"charset", "encoding"}) {
    for (size_t at = head.find(word); at != head.npos; at = head.find(word, at + 1)) {
      const size_t tag = head.rfind('<', at);
      if (tag == head.npos) continue;
      const std::string_view opened = std::string_view(head).substr(tag, at - tag);
      if (!opened.starts_with("<meta") && !opened.starts_with("<?xml")) continue;
      const size_t begin = head.find_first_not_of(" \t\r\n=\"'", at + word.size());
      if (begin == head.npos) continue;
      return head.substr(begin, head.find_first_of(" \t\r\n\"'/;?>", begin) - begin);
    }
  }
  return "";
}

// UTF-8 as it is, and U+FFFD for each byte that is none.
std::string FromUtf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const int size = Utf8Bytes(bytes);
    text += size > 0 ? bytes.substr(0, size) : kReplacement;
    bytes.remove_prefix(std::max(size, 1));
  }
  return text;
}

std::string FromLatin1(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const unsigned char byte = c;
    if (byte >= 0x80) text += static_cast<char>(0xc0 | byte >> 6);
    text += static_cast<char>(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte);
  }
  return text;
}

// Whether more characters beyond ASCII are UTF-8 than bytes are none.
bool IsMostlyUtf8(std::string_view bytes) {
  int64_t characters = 0, others = 0;
  while (!bytes.empty()) {
    const int size = Utf8Bytes(bytes);
    characters += size > 1;
    others += size == 0;
    bytes.remove_prefix(std::max(size, 1));
  }
  return characters > others;
}

StatusOr<std::string> FromEncoding(const std::string& name, std::string bytes) {
  const iconv_t converter = iconv_open("UTF-8", name.c_str());
  if (converter == iconv_t(-1)) {
    return UserError(StrCat("the page declares the encoding '", name,
                            "'; expected one that this machine's iconv knows"));
  }
  std::string text, piece(1 << 16, '\0');
  char* from = bytes.data();
  for (size_t left = bytes.size(); left > 0;) {
    char* to = piece.data();
    size_t room = piece.size();
    const size_t failed = iconv(converter, &from, &left, &to, &room);
    text.append(piece, 0, piece.size() - room);
    if (failed != static_cast<size_t>(-1) || room < piece.size() || left == 0) continue;
    text += kReplacement;
    ++from;
    --left;
  }
  iconv_close(converter);
  return text;
}

StatusOr<std::string> InUtf8(std::string_view page) {
  if (page.starts_with(kByteOrderMark)) return FromUtf8(page.substr(kByteOrderMark.size()));
  const std::string name = DeclaredEncoding(page);
  // Who could read the name reads no UTF-16.
  const bool utf8 = name.starts_with("utf-8") || name == "utf8" || name.starts_with("utf-16");
  if (name == "iso-8859-1" || name == "latin1") return FromLatin1(page);
  if (!name.empty() && !utf8) return FromEncoding(name, std::string(page));
  return utf8 || IsMostlyUtf8(page) ? FromUtf8(page) : FromLatin1(page);
}

}  // namespace

StatusOr<std::string> TextOfPage(const std::string& page) {
  ELASTOR_ASSIGN_OR_RETURN(std::string utf8, InUtf8(page));
  std::erase(utf8, '\0');  // they would end the page
  if (std::max(page.size(), utf8.size()) > kMostPageBytes) {
    return UserError(StrCat("a page of ", utf8.size(), " bytes; expected 2^30 at most"));
  }
  // Mistakes of pages are mended, nothing is fetched.
  constexpr int kOptions = HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                           HTML_PARSE_NONET | HTML_PARSE_COMPACT | HTML_PARSE_IGNORE_ENC |
                           XML_PARSE_HUGE;
  const std::unique_ptr<htmlParserCtxt, decltype(&htmlFreeParserCtxt)> parser(htmlNewParserCtxt(),
                                                                              &htmlFreeParserCtxt);
  if (parser == nullptr) return MachineError("no memory to read a page");
  const std::unique_ptr<xmlDoc, decltype(&xmlFreeDoc)> document(
      htmlCtxtReadMemory(parser.get(), utf8.data(), static_cast<int>(utf8.size()), nullptr, "UTF-8",
                         kOptions),
      &xmlFreeDoc);
  if (document == nullptr || parser->disableSAX != 0) {
    const xmlError* const error = xmlCtxtGetLastError(parser.get());
    std::string what = error != nullptr && error->message != nullptr ? error->message : "no page";
    if (what.ends_with('\n')) what.pop_back();
    return UserError(StrCat("libxml2 does not read the page to its end (", what, ")"));
  }
  PageText text;
  text.Visit(document->children);
  return std::move(text).Take();
}

}  // namespace elastor
