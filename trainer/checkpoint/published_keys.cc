#include "trainer/checkpoint/published_keys.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "core/base/text.h"
#include "trainer/checkpoint/publication.h"
#include "trainer/checkpoint/stored_checkpoint.h"

namespace elastor {
namespace {

constexpr int kEnd = -1;  // in the place of a table

// What rank 0 sends before keys.
struct Header {
  int64_t table;
  int64_t have_rows;
  int64_t keys;
};

// Sends keys to all ranks and takes those that are sent, until kEnd.
class Keys {
 public:
  Keys(Communicator& communicator, const TakeKeys& take)
      : communicator_(communicator), take_(take) {}

  // On rank 0.
  Status Send(int table, std::span<const int64_t> keys, bool have_rows) {
    Header header = {table, have_rows ? 1 : 0, std::ssize(keys)};
    keys_.assign(keys.begin(), keys.end());
    return Pass(&header);
  }
  // On the other ranks.
  Status ReceiveAll() {
    for (Header header = {}; header.table != kEnd;) ELASTOR_RETURN_IF_ERROR(Pass(&header));
    return OkStatus();
  }

 private:
  Status Pass(Header* header) {
    ELASTOR_RETURN_IF_ERROR(communicator_.Broadcast(Phase::kSetup, header, sizeof(Header), 0));
    if (header->table == kEnd) return OkStatus();
    keys_.resize(header->keys);
    ELASTOR_RETURN_IF_ERROR(
        communicator_.Broadcast(Phase::kSetup, keys_.data(), keys_.size() * sizeof(int64_t), 0));
    take_(static_cast<int>(header->table), keys_, header->have_rows != 0);
    return OkStatus();
  }

  Communicator& communicator_;
  const TakeKeys& take_;
  std::vector<int64_t> keys_;
};

// Returns the state's table whose rows or deletions are stored; kEnd: none, or an array.
int TableOf(const StoredTable& stored, const StateView& state) {
  const std::string name =
      stored.holds_deletions()
          ? stored.name.substr(0, stored.name.size() - std::string_view(kDeletedSuffix).size())
          : stored.name;
  const auto found = std::ranges::find(*state.tables, name, &TableSpec::name);
  if (found == state.tables->end() || !found->keyed) return kEnd;
  return static_cast<int>(found - state.tables->begin());
}

Status SendFolder(const StoredCheckpoint& stored, const StateView& state, Keys* keys) {
  const Manifest& manifest = stored.manifest();
  for (size_t f = 0; f < manifest.embedding.size(); ++f) {
    ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile file, stored.OpenEmbedding(f));
    for (size_t t = 0; t < manifest.tables.size(); ++t) {
      const int table = TableOf(manifest.tables[t], state);
      if (table == kEnd) continue;
      for (const RowPiece& piece : manifest.embedding[f].pieces[t]) {
        ELASTOR_ASSIGN_OR_RETURN(const StoredCheckpoint::Rows rows,
                                 stored.ReadPiece(file, f, t, piece, /*columns=*/0));
        ELASTOR_RETURN_IF_ERROR(
            keys->Send(table, rows.keys, !manifest.tables[t].holds_deletions()));
      }
    }
    ELASTOR_RETURN_IF_ERROR(file.CheckReadable());
  }
  return OkStatus();
}

Status SendAll(const std::string& folder, int64_t number, const std::string& result,
               const StateView& state, Keys* keys) {
  ELASTOR_ASSIGN_OR_RETURN(const Published published, FindPublished(folder));
  const auto behind = published.bases.upper_bound(number);
  if (behind == published.bases.begin()) {
    return UserError(StrCat(folder, ": has no base up to number ", number));
  }
  const int64_t base = *std::prev(behind);
  const std::unique_ptr<Communicator> self = MakeSelfCommunicator();
  std::string last;
  for (int64_t n = base; n <= number; ++n) {
    ELASTOR_ASSIGN_OR_RETURN(
        const StoredCheckpoint stored,
        n == base ? StoredCheckpoint::Open(folder + "/" + PublishedBaseName(n), *self,
                                           StoredCheckpoint::SmallRows::kTaken)
                  : StoredCheckpoint::OpenPublishedDelta(folder + "/" + PublishedDeltaName(n)));
    const auto& publication = stored.manifest().metadata.publication;
    if (!publication || publication->number != n || (n > base && publication->follows != last)) {
      return UserError(stored.manifest_path() + ": not the publication of this number");
    }
    last = publication->result;
    ELASTOR_RETURN_IF_ERROR(SendFolder(stored, state, keys));
  }
  if (last == result) return OkStatus();
  return UserError(
      StrCat(folder, ": number ", number, " has the result ", last, "; expected ", result));
}

}  // namespace

bool PublishesKeyedTables(const StateView& state) {
  return std::ranges::any_of(*state.tables,
                             [](const TableSpec& table) { return table.keyed && !table.counts(); });
}

Status ReadPublishedKeys(const std::string& folder, int64_t number, const std::string& result,
                         const StateView& state, Communicator& communicator, const TakeKeys& take) {
  Keys keys(communicator, take);
  if (communicator.rank() != 0) {
    ELASTOR_RETURN_IF_ERROR(keys.ReceiveAll());
    return AgreeOnStatus(communicator, OkStatus());
  }
  const Status sent = SendAll(folder, number, result, state, &keys);
  ELASTOR_RETURN_IF_ERROR(keys.Send(kEnd, {}, false));
  return AgreeOnStatus(communicator, sent);
}

}  // namespace elastor
