#include "trainer/prepare/synthetic/planted_log.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <unordered_set>
#include <vector>

#include "core/base/text.h"
#include "trainer/prepare/synthetic/planted_random.h"
#include "trainer/prepare/synthetic/synthetic.h"

namespace elastor {
namespace {

using namespace planted;
namespace fs = std::filesystem;

constexpr int64_t kFirstLogTime = 1'500'000'000;  // 14 July 2017
constexpr int64_t kSpan = 400 * 86400;            // of all rows, in seconds
constexpr double kFromInterests = 0.6;            // TAOBAO: items of an interest that the user has
constexpr int kNegatives = 4;
constexpr int kRetries = 100;

// What the random numbers of a row or an item are for.
enum Purpose : uint32_t { kShown, kLabel, kDetails, kNegative, kQuality };

constexpr const char* kGenres[] = {"Action",   "Adventure",   "Animation", "Children", "Comedy",
                                   "Crime",    "Documentary", "Drama",     "Fantasy",  "Film-Noir",
                                   "Horror",   "Musical",     "Mystery",   "Romance",  "Sci-Fi",
                                   "Thriller", "War",         "Western"};

struct User {
  std::deque<int64_t> liked;          // the last items of positive rows
  std::unordered_set<int64_t> taken;  // TAOBAO: all of them
};

struct LogRow {
  int64_t user = 0, item = 0, time = 0;
  bool positive = true;
  PhiloxBlock details = {};
};

class LogWorld {
 public:
  explicit LogWorld(const Synthetic& plan)
      : plan_(plan), chosen_(plan.log() == Synthetic::TAOBAO), users_(plan.users()) {}

  LogRow Next();
  PlantedLogReport Report() const {
    return {plan_.rows(), ExactAuc(scores_, labels_), ExactGauc(scores_, labels_, groups_)};
  }
  int64_t InterestOf(int64_t item) const { return item % plan_.interests(); }
  PhiloxBlock Bits(Purpose purpose, int64_t row, uint32_t number) const {
    return RowBits(plan_, row, kHistoryItem + 2 + purpose, number);
  }

 private:
  // An item of an interest, or of any, by its popularity.
  int64_t ItemOf(int64_t interest, const PhiloxBlock& bits) const;
  int64_t Shown(const User& user) const;
  // Share of the user's last items that have the interest of `item`.
  double Share(const User& user, int64_t item) const;
  // Of TAOBAO a ratio of likelihoods, else a logit.
  double ScoreOf(const User& user, int64_t item) const;
  void Note(const LogRow& row, double score, float label);

  const Synthetic& plan_;
  const bool chosen_;  // every row is an item that the user took
  std::vector<User> users_;
  int64_t row_ = 0;
  std::vector<double> scores_;
  std::vector<float> labels_;
  std::vector<uint64_t> groups_;
};

int64_t LogWorld::ItemOf(int64_t interest, const PhiloxBlock& bits) const {
  if (interest < 0) interest = bits[2] % plan_.interests();
  const int64_t items = (plan_.ids_per_field() - 1 - interest) / plan_.interests() + 1;
  return interest +
         plan_.interests() * HeavyTailed(Uniform53(bits[0], bits[1]), items, ZipfExponentOf(plan_));
}

int64_t LogWorld::Shown(const User& user) const {
  int64_t item = 0;
  for (int retry = 0; retry < kRetries; ++retry) {
    const PhiloxBlock bits = Bits(kShown, row_, 2 * retry);
    const PhiloxBlock choice = Bits(kShown, row_, 2 * retry + 1);
    const bool known =
        !user.liked.empty() && Uniform53(choice[0], choice[1]) < (chosen_ ? kFromInterests : 0.5);
    item = ItemOf(known ? InterestOf(user.liked[choice[2] % user.liked.size()]) : -1, bits);
    if (!user.taken.contains(item)) break;
  }
  return item;
}

double LogWorld::Share(const User& user, int64_t item) const {
  if (user.liked.empty()) return 0;
  const auto same = std::ranges::count_if(
      user.liked, [&](int64_t other) { return InterestOf(other) == InterestOf(item); });
  return static_cast<double>(same) / static_cast<double>(user.liked.size());
}

double LogWorld::ScoreOf(const User& user, int64_t item) const {
  const double share = Share(user, item);
  if (chosen_) {
    if (user.liked.empty()) return 1;
    return 1 - kFromInterests + kFromInterests * static_cast<double>(plan_.interests()) * share;
  }
  const PhiloxBlock bits = Bits(kQuality, item, 0);
  const double quality = NormalFromBits(bits[0], bits[1]).first;
  const double rate = plan_.has_base_rate() ? plan_.base_rate() : kDefaultBaseRate;
  return CanonicalLog(rate / (1 - rate)) + SignalOf(plan_) * (2 * share - 0.5 + quality / 2);
}

void LogWorld::Note(const LogRow& row, double score, float label) {
  scores_.push_back(score);
  labels_.push_back(label);
  groups_.push_back(static_cast<uint64_t>(row.user));
}

LogRow LogWorld::Next() {
  LogRow row;
  row.user = row_ % plan_.users();
  row.time = kFirstLogTime + static_cast<int64_t>(static_cast<double>(row_) * kSpan /
                                                  static_cast<double>(plan_.rows()));
  row.details = Bits(kDetails, row_, 0);
  User& user = users_[row.user];
  row.item = Shown(user);
  const double score = ScoreOf(user, row.item);
  const PhiloxBlock bits = Bits(kLabel, row_, 0);
  row.positive = chosen_ || Uniform53(bits[0], bits[1]) < Sigmoid(score);
  if (row_ >= plan_.rows() - plan_.rows() / 10) {
    Note(row, score, row.positive ? 1.0f : 0.0f);
    if (chosen_) user.taken.insert(row.item);
    for (uint32_t i = 0, drawn = 0; chosen_ && drawn < kNegatives && i < kRetries; ++i) {
      const int64_t item = ItemOf(-1, Bits(kNegative, row_, i));
      if (user.taken.contains(item)) continue;
      Note(row, ScoreOf(user, item), 0);
      ++drawn;
    }
  }
  if (row.positive) {
    user.liked.push_back(row.item);
    if (std::ssize(user.liked) > plan_.history_length()) user.liked.pop_front();
  }
  if (chosen_) user.taken.insert(row.item);
  ++row_;
  return row;
}

std::string GenreName(int64_t interest) {
  if (interest < std::ssize(kGenres)) return kGenres[interest];
  return StrCat("Genre ", interest + 1);
}

// A row's line; users and items are counted from 1.
std::string LineOf(const LogWorld& world, Synthetic::Log log, const LogRow& row) {
  const int64_t user = row.user + 1, item = row.item + 1;
  const auto& bits = row.details;
  if (log == Synthetic::TAOBAO) {
    constexpr const char* kBehaviours[] = {"buy", "cart", "fav"};
    const uint32_t kind = bits[0] % 20;
    return StrCat(user, ",", item, ",", world.InterestOf(row.item) + 1, ",",
                  kind < 3 ? kBehaviours[kind] : "pv", ",", row.time, "\n");
  }
  if (log == Synthetic::KUAIVIDEO) {
    const int64_t duration = 5 + bits[1] % 50;
    const int64_t playing = row.positive ? 1 + bits[2] % duration : 0;
    return StrCat(user, "\t", item, "\t", row.positive ? 1 : 0, "\t",
                  row.positive && bits[3] % 20 == 0 ? 1 : 0, "\t0\t", row.time, "\t", playing, "\t",
                  duration, "\n");
  }
  if (log == Synthetic::MOVIELENS_1M) {
    const uint32_t stars = row.positive ? 4 + bits[0] % 2 : 1 + bits[0] % 3;
    return StrCat(user, "::", item, "::", stars, "::", row.time, "\n");
  }
  const uint32_t halves = row.positive ? 8 + bits[0] % 3 : 1 + bits[0] % 7;
  return StrCat(user, ",", item, ",", halves / 2, halves % 2 == 0 ? ".0," : ".5,", row.time, "\n");
}

std::string MovieLine(const LogWorld& world, bool as_csv, int64_t item) {
  const PhiloxBlock bits = world.Bits(kDetails, item, 1);
  const uint32_t year = 1950 + bits[0] % 70;
  const bool comma = bits[1] % 4 == 0;
  std::string title = StrCat(comma ? "Film, The " : "Film ", item + 1, " (", year, ")");
  if (as_csv && comma) title = "\"" + title + "\"";
  const char* between = as_csv ? "," : "::";
  return StrCat(item + 1, between, title, between, GenreName(world.InterestOf(item)), "\n");
}

std::string UserLine(const LogWorld& world, int64_t user) {
  constexpr int kAges[] = {1, 18, 25, 35, 45, 50, 56};
  const PhiloxBlock bits = world.Bits(kDetails, user, 2);
  return StrCat(user + 1, "::", bits[0] % 2 == 0 ? "F" : "M", "::", kAges[bits[1] % 7],
                "::", bits[2] % 21, "::", 10000 + bits[3] % 90000, "\n");
}

Status WriteLines(const std::string& path, const std::string& header, int64_t lines,
                  const auto& line) {
  std::ofstream file(path, std::ios::binary);
  file << header;
  for (int64_t i = 0; i < lines && file; ++i) file << line(i);
  file.flush();
  return file ? OkStatus() : MachineError(path + ": cannot be written; is the disk full?");
}

Status WriteFiles(const Synthetic& plan, const std::string& folder, LogWorld* world) {
  const Synthetic::Log log = plan.log();
  const bool csv = log == Synthetic::MOVIELENS;
  if (csv || log == Synthetic::MOVIELENS_1M) {
    ELASTOR_RETURN_IF_ERROR(WriteLines(folder + (csv ? "/movies.csv" : "/movies.dat"),
                                       csv ? "movieId,title,genres\n" : "", plan.ids_per_field(),
                                       [&](int64_t item) { return MovieLine(*world, csv, item); }));
  }
  if (log == Synthetic::MOVIELENS_1M) {
    ELASTOR_RETURN_IF_ERROR(WriteLines(folder + "/users.dat", "", plan.users(),
                                       [&](int64_t user) { return UserLine(*world, user); }));
  }
  const char* name = csv                              ? "/ratings.csv"
                     : log == Synthetic::MOVIELENS_1M ? "/ratings.dat"
                     : log == Synthetic::TAOBAO       ? "/UserBehavior.csv"
                                                      : "/train_interaction.txt";
  return WriteLines(folder + name, csv ? "userId,movieId,rating,timestamp\n" : "", plan.rows(),
                    [&](int64_t) { return LineOf(*world, log, world->Next()); });
}

}  // namespace

StatusOr<PlantedLogReport> WritePlantedLog(const Synthetic& plan, const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error)) {
    return UserError(folder + ": exists; expected the name of a new folder");
  }
  fs::create_directories(folder, error);
  if (error) return MachineError(folder + ": " + error.message());
  LogWorld world(plan);
  const Status status = WriteFiles(plan, folder, &world);
  if (status.ok()) return world.Report();
  fs::remove_all(folder, error);
  return status;
}

}  // namespace elastor
