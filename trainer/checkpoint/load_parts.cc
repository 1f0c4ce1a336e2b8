#include "trainer/checkpoint/load_parts.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/base/digest.h"
#include "core/base/text.h"
#include "core/base/thread_pool.h"
#include "embedding/key_space.h"
#include "trainer/checkpoint/dense_copy.h"
#include "trainer/checkpoint/state_digest.h"

namespace elastor {
namespace {

// A piece of a file that may hold rows of this rank.
struct WantedPiece {
  size_t table;  // of the manifest
  const RowPiece* piece;
};

std::vector<WantedPiece> WantedPieces(const EmbeddingFile& file, std::span<const int> places,
                                      const EmbeddingState<float>& embedding) {
  std::vector<WantedPiece> wanted;
  for (size_t t = 0; t < places.size(); ++t) {
    if (places[t] == kNoTable) continue;
    for (const RowPiece& piece : file.pieces[t]) {
      for (int64_t p = piece.partitions.begin; p < piece.partitions.end; ++p) {
        if (!embedding.Owns(places[t], p)) continue;
        wanted.push_back({t, &piece});
        break;
      }
    }
  }
  return wanted;
}

void SetRows(const StoredCheckpoint::Rows& rows, const StoredTable& table, int place,
             EmbeddingState<float>* embedding) {
  if (table.holds_deletions()) {
    for (const int64_t key : rows.keys) embedding->RemoveRow(place, key);
    return;
  }
  const std::vector<Column>& columns = table.columns;
  std::vector<float> slots;
  for (size_t i = 0; i < rows.keys.size(); ++i) {
    if (!embedding->Owns(place, table.keys.PartitionOf(rows.keys[i]))) continue;
    slots.clear();
    for (size_t c = 1; c < rows.columns.size(); ++c) {
      const float* const slot = rows.columns[c].data() + i * columns[c].width;
      slots.insert(slots.end(), slot, slot + columns[c].width);
    }
    embedding->SetRow(place, rows.keys[i], rows.columns[0].data() + i * columns[0].width,
                      slots.empty() ? nullptr : slots.data());
  }
}

// Threads take pieces in turn. The error is that of the first piece that has one.
Status LoadPieces(const StoredCheckpoint& stored, size_t file_index,
                  std::span<const WantedPiece> wanted, std::span<const int> places,
                  Contents contents, EmbeddingState<float>* embedding) {
  ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile file, stored.OpenEmbedding(file_index));
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t failed = wanted.size();
  Status failure;
  embedding->pool()->Run([&](int) {
    for (size_t i = next++; i < wanted.size(); i = next++) {
      const StoredTable& table = stored.manifest().tables[wanted[i].table];
      const size_t read = contents == Contents::kState ? table.columns.size() : 1;
      const StatusOr<StoredCheckpoint::Rows> rows =
          stored.ReadPiece(file, file_index, wanted[i].table, *wanted[i].piece, read);
      if (rows.ok()) {
        SetRows(*rows, table, places[wanted[i].table], embedding);
        continue;
      }
      const std::lock_guard lock(mutex);
      if (i < failed) failure = rows.status();
      failed = std::min(failed, i);
    }
  });
  return failure.ok() ? file.CheckReadable() : failure;
}

// The rows of one folder.
Status LoadFolder(const StoredCheckpoint& stored, std::span<const int> places, Contents contents,
                  const StateView& state, const Communicator& communicator) {
  const std::vector<EmbeddingFile>& files = stored.manifest().embedding;
  for (size_t f = 0; f < files.size(); ++f) {
    const std::vector<WantedPiece> wanted = WantedPieces(files[f], places, *state.embedding);
    const bool watched = static_cast<int>(f % communicator.size()) == communicator.rank();
    if (wanted.empty() && !watched) continue;
    ELASTOR_RETURN_IF_ERROR(LoadPieces(stored, f, wanted, places, contents, state.embedding));
  }
  return OkStatus();
}

// What is stored, on this rank.
Status LoadOwn(const StoredCheckpoint& stored, Contents contents, const StateView& state,
               const Communicator& communicator) {
  state.embedding->ForgetRows();
  state.optimizer->ResetSlots();
  ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile dense, stored.OpenDense());
  for (const ParameterInfo& p : state.layout->parameters()) {
    ELASTOR_RETURN_IF_ERROR(LoadParameter(stored, dense, p, contents, state, communicator));
  }
  std::vector<int> places;
  for (const StoredTable& table : stored.manifest().tables) {
    if (table.holds_deletions()) {
      places.push_back(places.back());
      continue;
    }
    if (contents == Contents::kWeights && table.counts) {
      places.push_back(kNoTable);
      continue;
    }
    const auto found = std::find_if(state.tables->begin(), state.tables->end(),
                                    [&](const TableSpec& t) { return t.name == table.name; });
    places.push_back(static_cast<int>(found - state.tables->begin()));
  }
  return LoadRows(stored, places, contents, state, communicator);
}

}  // namespace

Status LoadContents(const StoredCheckpoint& stored, Contents contents, const StateView& state,
                    Communicator& communicator) {
  ELASTOR_RETURN_IF_ERROR(
      AgreeOnStatus(communicator, LoadOwn(stored, contents, state, communicator)));
  if (contents == Contents::kWeights) return OkStatus();
  const CheckpointMetadata& metadata = stored.manifest().metadata;
  ELASTOR_ASSIGN_OR_RETURN(const std::string digest,
                           StateDigest(metadata.control, state, communicator));
  if (digest == metadata.state_digest) return OkStatus();
  return AgreeOnStatus(
      communicator, UserError(stored.manifest_path() + ": state_digest " + metadata.state_digest +
                              "; the state that was loaded has " + digest));
}

Status LoadRows(const StoredCheckpoint& stored, std::span<const int> places, Contents contents,
                const StateView& state, const Communicator& communicator) {
  const std::vector<StoredTable>& tables = stored.manifest().tables;
  std::vector<int> full_places;
  for (size_t t = 0; t < tables.size(); ++t) {
    if (!tables[t].holds_deletions()) full_places.push_back(places[t]);
  }
  const StoredCheckpoint& full = stored.base() != nullptr ? *stored.base() : stored;
  ELASTOR_RETURN_IF_ERROR(LoadFolder(full, full_places, contents, state, communicator));
  // Weights alone are no state that a delta could count from.
  if (TouchedRows<float>* touched = state.embedding->touched();
      touched != nullptr && contents == Contents::kState) {
    touched->Forget();
    Digest unused;
    touched->KeepRecords(&unused);
  }
  if (stored.base() == nullptr) return OkStatus();
  return LoadFolder(stored, places, contents, state, communicator);
}

std::vector<TensorSpec> TensorsOf(const ParameterInfo& parameter,
                                  std::span<const std::string> slots) {
  std::vector<TensorSpec> tensors = {{parameter.name, TensorType::kF32, parameter.shape}};
  for (const std::string& slot : slots) {
    tensors.push_back({parameter.name + "/" + slot, TensorType::kF32, parameter.shape});
  }
  return tensors;
}

Status LoadParameter(const StoredCheckpoint& stored, const SafetensorsFile& dense,
                     const ParameterInfo& parameter, Contents contents, const StateView& state,
                     const Communicator& communicator) {
  std::vector<std::string> slots;
  if (contents == Contents::kState) slots = SlotNames(state.optimizer->kind());
  const std::vector<TensorSpec> tensors = TensorsOf(parameter, slots);
  for (size_t i = 0; i < tensors.size(); ++i) {
    ELASTOR_ASSIGN_OR_RETURN(const std::span<const float> values,
                             stored.ReadDense(dense, tensors[i]));
    if (i == 0) {
      ELASTOR_ASSIGN_OR_RETURN(float* const weights, state.weights());
      std::copy(values.begin(), values.end(), weights + parameter.offset);
    } else {
      SetDenseSlot(state, parameter, static_cast<int64_t>(i) - 1, values, communicator);
    }
  }
  return dense.CheckReadable();
}

std::string ColumnsText(std::span<const Column> columns) {
  std::string text;
  for (const Column& column : columns) {
    text += StrCat(text.empty() ? "" : ", ", column.name, " ", column.width);
  }
  return text;
}

}  // namespace elastor
