#include "trainer/prepare/rows/side_table.h"

#include <xxhash.h>

#include <algorithm>

#include "trainer/data/sized_text.h"
#include "trainer/prepare/rows/history_columns.h"

namespace elastor {
namespace {

// A row begins within the first kPieceBytes of a piece. A slot is the place of a row (the piece's
// number, then 20 bits within it) below 16 bits of the key's hash.
constexpr size_t kPieceBytes = 1 << 20;
constexpr int kOffsetBits = 20;
constexpr int kPlaceBits = 48;
constexpr uint64_t kEmpty = ~uint64_t{0};
constexpr int64_t kIndexBytes = 12;  // of a row: slots are two thirds full

uint64_t HashOf(std::string_view key) { return XXH3_64bits(key.data(), key.size()); }

}  // namespace

int64_t SideTable::bytes() const { return piece_bytes_ + kIndexBytes * rows_; }

void SideTable::Add(std::string_view key, const std::string_view* cells) {
  size_t bytes = SizeBytes(key.size()) + key.size();
  for (size_t i = 0; i < columns_.size(); ++i)
    bytes += SizeBytes(cells[i].size()) + cells[i].size();
  if (pieces_.empty() || pieces_.back().size() + bytes > kPieceBytes) {
    pieces_.emplace_back().reserve(std::max(bytes, kPieceBytes));
    piece_bytes_ += static_cast<int64_t>(pieces_.back().capacity());
  }
  PutText(key, &pieces_.back());
  for (size_t i = 0; i < columns_.size(); ++i) PutText(cells[i], &pieces_.back());
  ++rows_;
}

std::string_view SideTable::RowAt(uint64_t slot) const {
  const uint64_t place = slot & ((uint64_t{1} << kPlaceBits) - 1);
  return std::string_view(pieces_[place >> kOffsetBits]).substr(place & (kPieceBytes - 1));
}

size_t SideTable::SlotOf(std::string_view key, uint64_t hash) const {
  size_t at = static_cast<size_t>(static_cast<unsigned __int128>(hash) * slots_.size() >> 64);
  for (; slots_[at] != kEmpty; at = at + 1 == slots_.size() ? 0 : at + 1) {
    if (slots_[at] >> kPlaceBits != (hash & 0xffff)) continue;
    std::string_view row = RowAt(slots_[at]);
    if (TakeText(&row) == key) break;
  }
  return at;
}

std::optional<std::string> SideTable::Index() {
  slots_.assign(rows_ + rows_ / 2 + 1, kEmpty);
  for (size_t piece = 0; piece < pieces_.size(); ++piece) {
    for (std::string_view rest = pieces_[piece]; !rest.empty();) {
      const uint64_t place = piece << kOffsetBits | (pieces_[piece].size() - rest.size());
      const std::string_view key = TakeText(&rest);
      for (size_t i = 0; i < columns_.size(); ++i) TakeText(&rest);
      const uint64_t hash = HashOf(key);
      uint64_t& slot = slots_[SlotOf(key, hash)];
      if (slot != kEmpty) return std::string(key);
      slot = hash << kPlaceBits | place;
    }
  }
  return std::nullopt;
}

bool SideTable::Find(std::string_view key, std::string_view* cells) const {
  const uint64_t slot = slots_[SlotOf(key, HashOf(key))];
  if (slot == kEmpty) {
    std::fill_n(cells, columns_.size(), std::string_view());
    return false;
  }
  std::string_view row = RowAt(slot);
  TakeText(&row);
  for (size_t i = 0; i < columns_.size(); ++i) cells[i] = TakeText(&row);
  return true;
}

Schema TableSchema(const Schema& schema, const Lookup& lookup) {
  Schema table;
  table.set_delimiter(lookup.has_delimiter() ? lookup.delimiter() : schema.delimiter());
  table.set_header(lookup.has_header() ? lookup.header() : schema.header());
  table.set_quoted(lookup.has_quoted() ? lookup.quoted() : schema.quoted());
  table.set_skip_lines(lookup.has_skip_lines() ? lookup.skip_lines() : schema.skip_lines());
  *table.mutable_null() = lookup.null().empty() ? schema.null() : lookup.null();
  const auto add = [&](const std::string& column) {
    const auto reads = [&](const Field& field) {
      const bool by_name = field.column().empty() && schema.header();
      return (by_name ? field.name() : field.column()) == column;
    };
    const bool used = column == lookup.key() || std::ranges::any_of(schema.fields(), reads) ||
                      HistoriesRead(schema, column);
    Field* field = table.add_fields();
    field->set_name(column);
    field->set_type(used ? Field::CATEGORICAL : Field::IGNORED);
  };
  if (table.header()) add(lookup.key());
  for (const std::string& column : lookup.columns()) add(column);
  return table;
}

std::string LookupPlace(const std::string& file) { return "lookup " + file + ": "; }

}  // namespace elastor
