#include "tests/trainer/prepare/guess/people_files.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <random>
#include <set>

#include "core/base/text.h"

namespace elastor {
namespace {

using Texts = std::vector<std::string>;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// What people call columns. Some columns get a name that says nothing.
const Texts kCategoryNames = {
    "job",      "marital",     "education",   "contact",  "sex",      "color",      "brand",
    "browser",  "site_domain", "carrier",     "origin",   "dest",     "plan",       "tier",
    "language", "currency",    "workclass",   "embarked", "payment",  "department", "weather",
    "country",  "city",        "device type", "os",       "referrer", "Category",   "material",
    "season",   "quality",     "housing",     "Contract", "fuel",     "model",      "shop_name"};
const Texts kIdNames = {"user_id",   "itemID",   "zip",        "ad_id",       "campaignId",
                        "publisher", "C14",      "store_nbr",  "merchant_id", "movieId",
                        "channel",   "app",      "product_id", "adgroup_id",  "cust_id",
                        "deviceId",  "seller",   "postcode",   "ProductCode", "region_code",
                        "site",      "video_id", "customer",   "sku"};
const Texts kNumberNames = {
    "price",       "fare",     "balance",        "bmi",       "glucose",  "temperature", "humidity",
    "alcohol",     "pH",       "MonthlyCharges", "distance",  "rate",     "score_norm",  "budget",
    "sqft_living", "amount",   "avg_spend",      "ratio",     "lat",      "lon",         "discount",
    "speed",       "duration", "weight_kg",      "Revenue_k", "loudness", "interest",    "oldpeak"};
const Texts kCountNames = {"page_views",  "num_reviews", "clicks_7d",  "visits",     "capital_gain",
                           "followers",   "n_orders",    "total_time", "I5",         "word_count",
                           "likes_count", "stock_qty",   "pageCount",  "impressions"};
const Texts kAgeNames = {"age",       "Age",       "tenure",           "hours_per_week",
                         "user_age",  "height_cm", "years_experience", "year",
                         "speed_kmh", "points"};
const Texts kSmallNames = {"children",    "rooms",       "hour",      "weekday",
                           "stars_hotel", "doors",       "pos",       "siblings",
                           "num_pets",    "grade_level", "cylinders", "floor"};
const Texts kListNames = {"genres",   "tags",    "hist_items", "materials", "keywords", "skills",
                          "toppings", "history", "item_seq",   "viewed",    "topics",   "colors"};
const Texts kTimeNames = {"timestamp",  "ts",       "date",       "created_at", "event_time",
                          "time_stamp", "dt",       "click_time", "order_date", "pickup_datetime",
                          "Date",       "lastSeen", "start_time", "unixtime",   "visit_date"};
const Texts kFlagNames = {"is_weekend", "promo", "has_app", "member",  "smoker",
                          "wifi",       "new",   "male",    "partner", "auto_renew"};
const Texts kLabelNames = {
    "click",    "clicked", "is_click",  "isClick",     "Clicked on Ad", "label",     "target",
    "TARGET",   "y",       "converted", "conversion",  "is_attributed", "Purchased", "purchase",
    "Survived", "churn",   "Exited",    "clk",         "click_bool",    "installed", "isFraud",
    "bought",   "Outcome", "Churned",   "label_click", "has_purchased", "conv_flag"};
const Texts kCountryNames = {"country", "country_code", "Country", "iso"};
const Texts kAfterNames = {"conversion", "is_purchase", "buy"};
const Texts kCopyNames = {"nonclk", "inverse", "not_it"};
const Texts kRatingNames = {"rating", "stars", "score", "user_rating", "Rating"};
const Texts kOpaqueNames = {"var", "x", "f", "attr_", "COL", "feature_", "V", "k", "Unnamed: "};
const Texts kWords = {"wood",  "iron",   "cement", "brick", "glass",   "steel", "paper", "linen",
                      "amber", "violet", "cobalt", "ochre", "saffron", "ivory", "teal",  "umber",
                      "drama", "comedy", "horror", "war",   "crime",   "music", "sport", "travel",
                      "lemon", "garlic", "basil",  "thyme", "pepper",  "salt",  "honey", "ginger"};
const Texts kPhrases = {"New York",
                        "Los Angeles",
                        "San Francisco",
                        "S\xc3\xa3o Paulo",
                        "Z\xc3\xbcrich",
                        "Paris",
                        "Rio de Janeiro",
                        "Self-emp-not-inc",
                        "Never-married",
                        "HS-grad",
                        "Prof-school",
                        "18-24",
                        "25-34",
                        "65+",
                        "Fiber optic",
                        "Month-to-month",
                        "Electronic check",
                        "Mailed check",
                        "Very Good",
                        "Ideal",
                        "Premium",
                        "Cape Town",
                        "Hong Kong",
                        "Some-college"};
const Texts kOddPhrases = {"a, b and c", "O'Neil",      "5\" pipe",
                           "say \"hi\"", "semi; colon", "x|y plain"};

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}
  PeopleFile Make();

 private:
  int Int(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  double Real() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  bool Chance(double share) { return Real() < share; }
  const std::string& Any(const Texts& texts) { return texts[Int(0, texts.size() - 1)]; }

  std::string Name(const Texts& names);
  TrueColumn Column(TrueColumn::Kind kind, const Texts& names);
  void ChooseDialect();
  void AddLabel();
  void AddAfterLabel();
  void AddColumn();
  TrueColumn Category();
  TrueColumn Ids();
  TrueColumn Number();
  TrueColumn Count();
  TrueColumn Age();
  TrueColumn Small();
  TrueColumn List();
  TrueColumn Time();
  TrueColumn Written();
  TrueColumn Unique();
  TrueColumn Constant();
  // Takes values away, and writes them as missing.
  void Thin(TrueColumn* column);
  void SetTexts(TrueColumn* column);  // what is written, without what means missing
  std::string Quoted(const std::string& value, bool number);
  std::string Line(const Texts& values, const std::vector<bool>& numbers);
  bool Usable(const std::string& value) const;
  std::string Write();

  std::mt19937_64 random_;
  PeopleFile file_;
  std::string delimiter_;
  enum { kNone, kMinimal, kTexts, kAll } quotes_ = kNone;
  bool header_ = true;
  bool decimal_comma_ = false;
  std::string null_;
  std::set<std::string> names_;
};

std::string Maker::Name(const Texts& names) {
  for (int tries = 0;; ++tries) {
    std::string name = Any(names);
    const bool label = &names == &kLabelNames || &names == &kRatingNames ||
                       &names == &kAfterNames || &names == &kCopyNames;
    const bool opaque = !label && (tries > 20 || Chance(0.05));
    if (opaque) name = Any(kOpaqueNames) + std::to_string(Int(0, 99));
    if (!label && Chance(0.05)) {
      for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    if (tries > 20) name += "_" + std::to_string(tries);
    if (Usable(name) && names_.insert(name).second) return name;
  }
}

TrueColumn Maker::Column(TrueColumn::Kind kind, const Texts& names) {
  TrueColumn column;
  column.kind = kind;
  column.name = Name(names);
  return column;
}

void Maker::ChooseDialect() {
  const double kind = Real();
  delimiter_ = kind < 0.5    ? ","
               : kind < 0.7  ? "\t"
               : kind < 0.85 ? ";"
               : kind < 0.91 ? "|"
               : kind < 0.95 ? "::"
               : kind < 0.97 ? ", "
               : kind < 0.99 ? " "
                             : "\x01";
  const double quotes = Real();
  quotes_ = quotes < 0.5 ? kNone : quotes < 0.75 ? kMinimal : quotes < 0.9 ? kTexts : kAll;
  if (delimiter_ == "::" || delimiter_ == ", " || delimiter_ == "\x01") quotes_ = kNone;
  header_ = Chance(0.9);
  decimal_comma_ = delimiter_ != "," && delimiter_ != ", " && Chance(0.05);
  const Texts nulls = {"", "", "", "", "NA", "NULL", "\\N", "None", "nan", "NaN", "?", "-", "N/A"};
  null_ = delimiter_ == " " ? "NA" : Any(nulls);
  file_.rows = static_cast<int64_t>(60 * std::exp(Real() * 3));
  file_.dialect = StrCat("'", delimiter_, "' quotes ", static_cast<int>(quotes_), " header ",
                         header_ ? 1 : 0, " null '", null_, "'");
}

void Maker::AddLabel() {
  TrueColumn column = Column(TrueColumn::kLabel, kLabelNames);
  const bool opaque = Chance(0.04);
  if (opaque) column.name = Name(kFlagNames);
  static const std::vector<Texts> kForms = {{"0", "1"},        {"0", "1"},
                                            {"0", "1"},        {"0", "1"},
                                            {"0", "1"},        {"0", "1"},
                                            {"0", "1"},        {"0", "1"},
                                            {"0", "1"},        {"0", "1"},
                                            {"0", "1"},        {"0", "1"},
                                            {"0", "1"},        {"-1", "1"},
                                            {"0.0", "1.0"},    {"no", "yes"},
                                            {"No", "Yes"},     {"n", "y"},
                                            {"False", "True"}, {"false", "true"},
                                            {"<=50K", ">50K"}, {"good", "bad"},
                                            {"1", "2"},        {"not_clicked", "clicked"},
                                            {"F", "T"},        {"1", "2", "3", "4", "5"}};
  const Texts& form = kForms[Int(0, kForms.size() - 1)];
  if (form.size() > 2) column.name = Name(kRatingNames);
  const double rate = 0.03 + 0.5 * Real() * Real();
  const bool holes = Chance(0.06) && form.size() == 2;
  for (int64_t i = 0; i < file_.rows; ++i) {
    const bool positive = i == 0 || (i > 1 && Chance(rate));
    std::string text = form[positive ? 1 : 0];
    double number = positive;
    if (form.size() > 2) {
      const int stars = positive ? Int(4, 5) : Int(1, 3);
      text = std::to_string(stars);
    }
    const bool missing = holes && i > 1 && Chance(0.02);
    file_.has_label.push_back(!missing);
    column.numbers.push_back(missing ? kMissing : number);
    column.written.push_back(missing ? null_ : text);
  }
  file_.columns.push_back(column);
  if (!opaque && Chance(0.06)) AddAfterLabel();
}

// A second label, or the first one turned round.
void Maker::AddAfterLabel() {
  const std::vector<double> label = file_.columns[0].numbers;
  const bool copy = Chance(0.4);
  TrueColumn column =
      copy ? Column(TrueColumn::kCopy, kCopyNames) : Column(TrueColumn::kAfterLabel, kAfterNames);
  for (const double number : label) {
    const bool after = number == 1 && Chance(0.5);
    column.written.push_back(std::isnan(number) ? "0"
                             : copy             ? (number == 1 ? "0" : "1")
                                                : (after ? "1" : "0"));
  }
  file_.columns.push_back(column);
}

TrueColumn Maker::Category() {
  TrueColumn column = Column(TrueColumn::kCategory, kCategoryNames);
  Texts values;
  const int kind = Int(0, 7);
  const int count = Int(2, 24);
  const bool countries = kind == 4 && count > 10 && null_ != "NA" && Chance(0.1);
  if (countries) column.name = Name(kCountryNames);
  for (int i = 0; i < count; ++i) {
    if (kind < 2) {
      values.push_back(kWords[(i * 7 + count) % kWords.size()]);
    } else if (kind < 4) {
      values.push_back(kPhrases[(i * 5 + count) % kPhrases.size()]);
    } else if (kind == 4) {
      values.push_back(countries && i == 0 ? "NA"
                                           : std::string(1, 'A' + i) + char('A' + i * 3 % 26));
    } else if (kind == 5) {
      values.push_back(Format("%08x", static_cast<unsigned>((i + 1) * 2654435761u)));
    } else if (kind == 6) {
      values.push_back("www.site" + std::to_string(i) + ".com/a-b");
    } else {
      values.push_back(i == 3 && Chance(0.5) ? Any(kOddPhrases) : kPhrases[i % kPhrases.size()]);
    }
  }
  if (Chance(0.15)) values = {"M", "F"};
  if (Chance(0.1)) {
    column.name = Name(kFlagNames);
    values = {"0", "1"};
  }
  std::erase_if(values, [&](const std::string& value) { return !Usable(value); });
  if (values.size() < 2) values = {"left", "right"};
  for (int64_t i = 0; i < file_.rows; ++i) {
    column.texts.push_back(i < 2 ? values[i] : values[Int(0, Int(0, values.size() - 1))]);
  }
  column.written = column.texts;
  Thin(&column);
  return column;
}

TrueColumn Maker::Ids() {
  TrueColumn column = Column(TrueColumn::kNames, kIdNames);
  const int ids = Int(25, 2000);
  const int step = Chance(0.5) ? 1 : Int(2, 5000);
  const int base = Chance(0.1) ? 1000000000 : Int(0, 1) * Int(1, 1000);
  for (int64_t i = 0; i < file_.rows; ++i) {
    const int drawn = Int(0, Int(0, ids - 1));
    const int64_t id = base + int64_t{step} * (drawn * int64_t{7919} % ids);
    column.texts.push_back(std::to_string(id));
  }
  column.written = column.texts;
  Thin(&column);
  return column;
}

TrueColumn Maker::Number() {
  TrueColumn column = Column(TrueColumn::kNumber, kNumberNames);
  const int kind = Int(0, 3), digits = Int(1, 4);
  for (int64_t i = 0; i < file_.rows; ++i) {
    double value = kind == 0   ? Real()
                   : kind == 1 ? std::exp(4 * Real() * Real()) - 1
                   : kind == 2 ? (Real() - 0.5) * 200
                               : 1000 * Real() * Real() * Real();
    std::string text = Format("%.*f", digits, value);
    if (i == 1) text = "0." + std::string(digits, '3');
    column.numbers.push_back(std::strtod(text.c_str(), nullptr));
    if (decimal_comma_) text[text.find('.')] = ',';
    column.written.push_back(text);
  }
  if (decimal_comma_) column.kind = TrueColumn::kUnreadable;
  Thin(&column);
  return column;
}

TrueColumn Maker::Count() {
  TrueColumn column = Column(TrueColumn::kNumber, kCountNames);
  const double scale = 3 + 5 * Real();
  for (int64_t i = 0; i < file_.rows; ++i) {
    column.numbers.push_back(std::floor(std::exp(scale * Real() * Real()) - 1));
    column.written.push_back(Format("%.0f", column.numbers.back()));
  }
  Thin(&column);
  const std::set<std::string> distinct(column.written.begin(), column.written.end());
  if (distinct.size() <= 22) {
    column.kind = TrueColumn::kSmallCounts;
    SetTexts(&column);
  }
  return column;
}

TrueColumn Maker::Age() {
  TrueColumn column = Column(TrueColumn::kNumber, kAgeNames);
  const int base = Chance(0.2) ? 1950 : Int(0, 20);
  for (int64_t i = 0; i < file_.rows; ++i) {
    column.numbers.push_back(base + Int(0, 40) + Int(0, 40));
    column.written.push_back(Format("%.0f", column.numbers.back()));
  }
  Thin(&column);
  return column;
}

TrueColumn Maker::Small() {
  TrueColumn column = Column(TrueColumn::kSmallCounts, kSmallNames);
  const int most = Int(2, 12);
  for (int64_t i = 0; i < file_.rows; ++i) {
    column.numbers.push_back(Int(0, most));
    column.written.push_back(Format("%.0f", column.numbers.back()));
  }
  Thin(&column);
  SetTexts(&column);
  return column;
}

void Maker::SetTexts(TrueColumn* column) {
  column->texts = column->written;
  std::ranges::replace(column->texts, null_, "");
}

TrueColumn Maker::List() {
  TrueColumn column = Column(TrueColumn::kList, kListNames);
  Texts separators = {"|", "|", "^", ";", ",", " ", "/"};
  std::erase_if(separators, [&](const std::string& separator) {
    return quotes_ == kNone && delimiter_.find(separator) != std::string::npos;
  });
  if (delimiter_ == " ") separators = {"|"};
  const std::string separator = Any(separators);
  const int items = Int(5, 200), longest = Int(2, 12);
  const bool ids = Chance(0.5);
  for (int64_t i = 0; i < file_.rows; ++i) {
    Texts row;
    const int count = Int(1, longest);
    for (int k = 0; k < count; ++k) {
      const int item = Int(0, items - 1);
      row.push_back(ids ? "i" + std::to_string(item)
                        : kWords[item % kWords.size()] +
                              (item < static_cast<int>(kWords.size())
                                   ? ""
                                   : std::to_string(item / kWords.size())));
    }
    column.items.push_back(row);
    column.written.push_back(Join(row, separator));
  }
  return column;
}

// Returns a day and a time of the day as printf's `format` writes them.
std::string TimeText(int64_t seconds, const char* format) {
  const std::time_t time = seconds;
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof(text), format, &parts)};
}

TrueColumn Maker::Time() {
  TrueColumn column = Column(TrueColumn::kTime, kTimeNames);
  const int kind = Int(0, 4);
  const int64_t first = 820454400 + int64_t{Int(0, 800000)} * 1000;  // from 1996 on
  const int64_t range = int64_t{Int(1, 900)} * 86400;
  for (int64_t i = 0; i < file_.rows; ++i) {
    int64_t seconds = first + static_cast<int64_t>(Real() * static_cast<double>(range));
    if (kind == 2) seconds -= seconds % 86400;
    if (kind == 4) seconds -= seconds % 3600;
    const char* format = kind == 0   ? "%Y-%m-%d %H:%M:%S"
                         : kind == 1 ? "%Y-%m-%dT%H:%M:%S"
                         : kind == 2 ? "%Y-%m-%d"
                                     : "%y%m%d%H";
    if (kind == 0 && delimiter_ == " ") format = "%Y-%m-%dT%H:%M:%S";
    const bool number = kind == 3 || (kind == 4 && first < 946684800);
    column.numbers.push_back(static_cast<double>(seconds));
    column.written.push_back(number ? std::to_string(seconds) : TimeText(seconds, format));
  }
  if (Chance(0.2)) Thin(&column);
  return column;
}

// Numbers, times and lists as people write them.
TrueColumn Maker::Written() {
  const int kind = Int(0, 11);
  const bool time = kind >= 4 && kind < 9;
  TrueColumn column = Column(kind < 4 ? TrueColumn::kUnreadable
                             : time   ? TrueColumn::kTime
                                      : TrueColumn::kList,
                             kind < 4 ? kNumberNames
                             : time   ? kTimeNames
                                      : kListNames);
  if (time) column.name = Name({"time", "date", "event_ts", "created"});
  for (int64_t i = 0; i < file_.rows; ++i) {
    const double value = 5000 * Real();
    int64_t seconds = 1262304000 + int64_t{Int(0, 400000)} * 1000;
    seconds -= seconds % (kind == 5 || kind == 7 ? 86400 : kind == 6 ? 60 : 1);
    Texts row;
    for (int k = Int(1, 4); k > 0; --k) row.push_back(Any(kWords));
    const Texts forms = {Format("%.1f%%", value / 50),
                         Format("$%.2f", value),
                         value < 1000 ? Format("%.2f", value)
                                      : Format("%d,%03d.50", static_cast<int>(value) / 1000,
                                               static_cast<int>(value) % 1000),
                         Format("EUR %.0f", value),
                         TimeText(seconds, "%Y-%m-%dT%H:%M:%SZ"),
                         TimeText(seconds, "%d.%m.%Y"),
                         TimeText(seconds, "%m/%d/%Y %H:%M"),
                         TimeText(seconds, "%Y%m%d"),
                         std::to_string(seconds * 1000 + Int(0, 999)),
                         "['" + Join(row, "', '") + "']",
                         Join(row, " | "),
                         Join(row, ", ")};
    column.written.push_back(forms[kind]);
    if (time) column.numbers.push_back(static_cast<double>(seconds));
    if (kind >= 9) column.items.push_back(row);
  }
  const bool fits = std::ranges::all_of(column.written, [&](const auto& v) { return Usable(v); });
  return fits ? column : Number();
}

TrueColumn Maker::Unique() {
  TrueColumn column = Column(TrueColumn::kUnique, {"id", "Id", "row_id", "session_id", "uuid"});
  const int kind = Int(0, 2);
  for (int64_t i = 0; i < file_.rows; ++i) {
    column.written.push_back(kind == 0   ? std::to_string(i + 1)
                             : kind == 1 ? Format("%016llx", static_cast<unsigned long long>(
                                                                 (i + 1) * 0x9e3779b97f4a7c15ull))
                                         : "S" + std::to_string(100000 + i * 37));
  }
  column.texts = column.written;
  return column;
}

TrueColumn Maker::Constant() {
  TrueColumn column = Column(TrueColumn::kConstant, {"version", "source", "country_code"});
  column.written.assign(file_.rows, Chance(0.5) ? "1" : "web");
  return column;
}

void Maker::AddColumn() {
  const double kind = Real();
  file_.columns.push_back(kind < 0.30   ? Category()
                          : kind < 0.42 ? Ids()
                          : kind < 0.58 ? Number()
                          : kind < 0.67 ? Count()
                          : kind < 0.73 ? Age()
                          : kind < 0.81 ? Small()
                          : kind < 0.88 ? List()
                          : kind < 0.93 ? Time()
                          : kind < 0.95 ? Written()
                          : kind < 0.98 ? Unique()
                                        : Constant());
}

void Maker::Thin(TrueColumn* column) {
  if (!Chance(0.25)) return;
  const double share = 0.3 * Real();
  for (int64_t i = 2; i < file_.rows; ++i) {
    if (!Chance(share)) continue;
    column->written[i] = null_;
    if (!column->texts.empty()) column->texts[i] = "";
    if (!column->numbers.empty()) column->numbers[i] = kMissing;
  }
}

// Whether a value can stand in this file.
bool Maker::Usable(const std::string& value) const {
  if (quotes_ != kNone) return true;
  const std::string_view first = std::string_view(delimiter_).substr(0, 1);
  return value.find(first) == value.npos && value.find_first_of("\"\n") == value.npos;
}

std::string Maker::Quoted(const std::string& value, bool number) {
  const bool needed = value.find(delimiter_) != value.npos || value.find('"') != value.npos ||
                      value.find('\n') != value.npos;
  const bool quoted = quotes_ == kAll || (quotes_ == kTexts && !number) ||
                      (quotes_ == kMinimal && needed) || (quotes_ == kTexts && needed);
  if (!quoted || (value.empty() && quotes_ != kAll)) return value;
  std::string text = "\"";
  for (const char c : value) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

std::string Maker::Line(const Texts& values, const std::vector<bool>& numbers) {
  Texts quoted;
  for (size_t i = 0; i < values.size(); ++i) quoted.push_back(Quoted(values[i], numbers[i]));
  return Join(quoted, delimiter_);
}

std::string Maker::Write() {
  const std::string end = Chance(0.25) ? "\r\n" : "\n";
  std::string text = Chance(0.1) ? "\xef\xbb\xbf" : "";
  if (Chance(0.04)) text += "# exported by a program" + end;
  std::vector<bool> numbers;
  Texts names;
  const bool row_names = header_ && Chance(0.04);
  if (row_names) {
    names.push_back("");
    numbers.push_back(true);
  }
  for (const TrueColumn& column : file_.columns) {
    names.push_back(column.name);
    numbers.push_back(!column.numbers.empty() && column.kind != TrueColumn::kUnreadable);
  }
  if (header_) {
    // R's write.table gives the names of rows no name at all.
    const bool short_header = row_names && Chance(0.4);
    const Texts written(names.begin() + short_header, names.end());
    text += Line(written, std::vector<bool>(written.size())) + end;
  }
  for (int64_t i = 0; i < file_.rows; ++i) {
    Texts values;
    if (row_names) values.push_back(std::to_string(i + 1));
    for (const TrueColumn& column : file_.columns) values.push_back(column.written[i]);
    text += Line(values, numbers) + end;
  }
  if (Chance(0.1)) text.resize(text.size() - end.size());
  return text;
}

PeopleFile Maker::Make() {
  ChooseDialect();
  AddLabel();
  const int more = Int(2, 14);
  for (int i = 0; i < more; ++i) AddColumn();
  // The label stands first, last or anywhere.
  const double place = Real();
  if (place < 0.4) {
    std::rotate(file_.columns.begin(), file_.columns.begin() + 1, file_.columns.end());
  } else if (place < 0.6) {
    std::shuffle(file_.columns.begin(), file_.columns.end(), random_);
  }
  if (!header_) {
    for (size_t i = 0; i < file_.columns.size(); ++i) file_.columns[i].name = StrCat("c", i + 1);
  }
  file_.text = Write();
  return file_;
}

}  // namespace

PeopleFile MakePeopleFile(uint64_t seed) { return Maker(seed).Make(); }

}  // namespace elastor
