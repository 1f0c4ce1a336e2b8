#include "trainer/prepare/guess/name_hints.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "core/base/text.h"

namespace elastor {
namespace {

using Words = std::span<const std::string_view>;

// Names of labels, whatever values they have.
constexpr std::string_view kLabels[] = {
    "label",     "target",    "y",         "click",     "clicks",     "clicked",    "clk",
    "convert",   "converted", "conv",      "convs",     "conversion", "attributed", "purchase",
    "purchased", "bought",    "buy",       "install",   "installed",  "outcome",    "survived",
    "churn",     "churned",   "exited",    "fraud",     "subscribed", "booked",     "booking",
    "canceled",  "cancelled", "attrition", "defaulted", "responded"};
// Names of labels that are names of inputs as well.
constexpr std::string_view kTwoValuedLabels[] = {
    "class",     "response", "default",  "income",   "revenue",    "deposit", "like",
    "liked",     "finish",   "follow",   "share",    "order",      "ordered", "readmitted",
    "diagnosis", "approved", "success",  "spam",     "died",       "event",   "downloaded",
    "opened",    "result",   "engaged",  "forward",  "forwarded",  "comment", "commented",
    "hate",      "favorite", "returned", "refunded", "attribution"};
// Words around a label's name that add nothing.
constexpr std::string_view kFillers[] = {"is",    "has",  "was", "did", "flag",   "ind",
                                         "on",    "ad",   "ads", "the", "binary", "bool",
                                         "label", "user", "or",  "y"};
constexpr std::string_view kRatings[] = {"rating", "ratings", "stars",  "score", "rate",
                                         "user",   "overall", "review", "label"};
constexpr std::string_view kTimes[] = {
    "time",    "times",   "timestamp", "ts",       "date",  "datetime", "day",      "dt",
    "created", "updated", "at",        "when",     "start", "end",      "since",    "expires",
    "seen",    "signup",  "birth",     "birthday", "dob",   "epoch",    "unixtime", "hour"};
constexpr std::string_view kBirths[] = {"birth", "birthday", "birthdate", "dob", "born"};
constexpr std::string_view kQuantities[] = {
    "age",     "price",      "count",     "counts", "cnt",         "num",      "number", "amount",
    "amt",     "qty",        "quantity",  "total",  "sum",         "days",     "hours",  "minutes",
    "seconds", "duration",   "length",    "len",    "size",        "width",    "height", "weight",
    "score",   "rate",       "ratio",     "year",   "years",       "income",   "salary", "balance",
    "views",   "visits",     "sales",     "clicks", "impressions", "distance", "area",   "temp",
    "pct",     "percent",    "avg",       "mean",   "max",         "min",      "volume", "cost",
    "revenue", "budget",     "value",     "paid",   "bid",         "fee",      "tax",    "level",
    "rank",    "position",   "depth",     "speed",  "gain",        "loss",     "delay",  "points",
    "hits",    "horsepower", "followers", "pages",  "tenure",      "mileage",  "sqft",   "median",
    "spend",   "spent"};
// Before the name of a thing these make a quantity.
constexpr std::string_view kMeasures[] = {"num", "n",   "count", "cnt", "number", "total",
                                          "avg", "max", "min",   "sum", "mean"};
constexpr std::string_view kThings[] = {
    "id",       "ids",     "user",     "item",      "code",     "zip",      "zipcode", "postcode",
    "key",      "cat",     "category", "brand",     "ad",       "campaign", "site",    "app",
    "device",   "ip",      "channel",  "os",        "type",     "group",    "store",   "shop",
    "seller",   "product", "sku",      "city",      "region",   "country",  "state",   "hour",
    "weekday",  "month",   "model",    "publisher", "customer", "member",   "session", "advertiser",
    "creative", "page",    "isbn",     "ean",       "upc",      "phone",    "hash",    "uid",
    "pid",      "cid",     "day",      "dow",       "week",     "movie",    "book",    "song",
    "video",    "author",  "segment"};
constexpr std::string_view kPlaces[] = {"country", "countries", "nation", "iso", "geo", "locale"};
constexpr std::string_view kLists[] = {"genres", "tags",        "keywords", "skills",    "topics",
                                       "items",  "ingredients", "toppings", "materials", "colors",
                                       "ids",    "categories",  "themes",   "labels",    "bag"};
constexpr std::string_view kSeries[] = {"list", "seq",     "sequence", "hist",  "history",
                                        "past", "recent",  "last",     "prev",  "viewed",
                                        "seen", "visited", "watched",  "trail", "behaviors"};

template <typename List>
bool Has(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::end(list);
}

// The words of a name in small letters: of "isClick_7d" is, click, 7, d.
std::vector<std::string> WordsOf(std::string_view name) {
  enum Kind { kOther, kLower, kUpper, kDigit };
  std::vector<std::string> words;
  Kind before = kOther;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const Kind kind = std::isupper(byte)                   ? kUpper
                      : std::islower(byte) || byte >= 0x80 ? kLower
                      : std::isdigit(byte)                 ? kDigit
                                                           : kOther;
    const bool capital_first = before == kUpper && kind == kLower;
    if (kind != kOther && kind != before && !capital_first) words.emplace_back();
    if (kind != kOther) words.back() += static_cast<char>(std::tolower(byte));
    before = kind;
  }
  return words;
}

bool AnyWord(std::string_view name, Words list) {
  const std::vector<std::string> words = WordsOf(name);
  return std::ranges::any_of(words, [&](const std::string& word) { return Has(list, word); });
}

// The words of a name without fillers; all of them when nothing else is left.
std::vector<std::string> LabelWords(std::string_view name) {
  std::vector<std::string> words = WordsOf(name), rest;
  for (const std::string& word : words) {
    if (!Has(kFillers, word)) rest.push_back(word);
  }
  return rest.empty() ? words : rest;
}

}  // namespace

LabelName LabelNameOf(std::string_view name) {
  const std::vector<std::string> words = LabelWords(name);
  const bool whole = !words.empty() && std::ranges::all_of(words, [](const std::string& word) {
    return Has(kLabels, word) || Has(kTwoValuedLabels, word) || Has(kFillers, word);
  });
  const bool named = std::ranges::any_of(words, [](const std::string& word) {
    return Has(kLabels, word) || Has(kTwoValuedLabels, word);
  });
  if (whole && named) return LabelName::kYes;
  return AnyWord(name, kLabels) || Has(kTwoValuedLabels, words.empty() ? "" : words[0])
             ? LabelName::kPartly
             : LabelName::kNo;
}

bool IsLabelNameAlone(std::string_view name) {
  const std::vector<std::string> words = LabelWords(name);
  return LabelNameOf(name) == LabelName::kYes &&
         std::ranges::none_of(words, [](const auto& word) { return Has(kTwoValuedLabels, word); });
}

bool IsRatingName(std::string_view name) {
  const std::vector<std::string> words = WordsOf(name);
  return !words.empty() && words.back() != "user" && words.back() != "label" &&
         std::ranges::all_of(words, [](const std::string& word) { return Has(kRatings, word); });
}

bool IsTimeName(std::string_view name) { return AnyWord(name, kTimes); }

bool IsBirthName(std::string_view name) { return AnyWord(name, kBirths); }

bool IsQuantityName(std::string_view name) {
  const std::vector<std::string> words = WordsOf(name);
  const bool numbered =
      words.size() == 2 && (words[0] == "i" || words[0] == "n" || words[0] == "num");
  return numbered || (words.size() > 1 && words[0] == "n") || AnyWord(name, kQuantities);
}

// The words of a quantity decide where they stand: user_age is none, and so are num_users and
// hours_per_week; age_group is one.
bool IsThingName(std::string_view name) {
  const std::vector<std::string> words = WordsOf(name);
  if (words.empty() || Has(kMeasures, words[0]) || Has(words, "per")) return false;
  const bool numbered = words.size() == 2 && (words[0] == "c" || words[0] == "cat");
  const std::string& last = words.back();
  if (Has(kQuantities, last)) return false;
  if (numbered || last.ends_with("id")) return true;
  return Has(kThings, last) || (AnyWord(name, kThings) && !AnyWord(name, kQuantities));
}

bool IsPlaceName(std::string_view name) { return AnyWord(name, kPlaces); }

bool IsListName(std::string_view name) { return AnyWord(name, kLists) || IsSeriesName(name); }

bool IsSeriesName(std::string_view name) { return AnyWord(name, kSeries); }

}  // namespace elastor
