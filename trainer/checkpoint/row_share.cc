#include "trainer/checkpoint/row_share.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "embedding/key_space.h"
#include "trainer/checkpoint/digest_records.h"
#include "xxhash.h"

namespace elastor {
namespace {

// Partitions with rows that are copied together: their rows of one key / 4096 lie side by side in
// the table.
constexpr int kBlockPartitions = 64;

constexpr int64_t kColumnAlignment = 64;  // bytes, of a copied column
int64_t Align(int64_t bytes) {
  return (bytes + kColumnAlignment - 1) / kColumnAlignment * kColumnAlignment;
}

int64_t ElementsOf(const std::vector<Column>& columns) {
  int64_t elements = 0;
  for (const Column& column : columns) elements += column.width;
  return elements;
}

}  // namespace

RowShare::RowShare(const StateView& state, Contents contents, const MarkedRows<float>* marked,
                   RowFormat format)
    : embedding_(state.embedding), marked_(marked), format_(format) {
  const OptimizerKind kind = embedding_->optimizer_kind();
  for (int t = 0; t < static_cast<int>(state.tables->size()); ++t) {
    const TableSpec& table = (*state.tables)[t];
    if (contents == Contents::kWeights && table.counts()) continue;
    tables_.push_back({table.name, table.keys(), ColumnsOf(table, kind, contents), table.counts()});
    tables_.back().columns[0] = WeightsColumn(format, table.width);
    sources_.push_back({t, false, table.width});
    if (marked == nullptr || !table.keyed) continue;
    tables_.push_back({table.name + kDeletedSuffix, table.keys(), {}});
    sources_.push_back({t, true, 0});
  }
  rows_.resize(tables_.size());
  for (size_t t = 0; t < rows_.size(); ++t) {
    const int table = sources_[t].table;
    std::vector<int64_t>& first = rows_[t].first;
    first = sources_[t].gone    ? marked->CountGoneKeys(table)
            : marked != nullptr ? marked->CountMarkedRows(table)
                                : embedding_->CountRows(table);
    first.push_back(0);
    int64_t sum = 0;
    for (int64_t& count : first) sum += std::exchange(count, sum);
    bytes_ += sum * RowBytes(static_cast<int>(t));
    CutPieces(static_cast<int>(t));
  }
}

int64_t RowShare::RowBytes(int table) const {
  return static_cast<int64_t>(sizeof(int64_t) + ElementsOf(tables_[table].columns) * sizeof(float));
}

void RowShare::CutPieces(int table) {
  const std::vector<int64_t>& first = rows_[table].first;
  const int64_t least = (kMinPieceBytes - 1) / RowBytes(table) + 1;
  const int64_t most = std::max(int64_t{1}, kMaxPieceBytes / RowBytes(table));
  std::vector<RowPiece>& pieces = rows_[table].pieces;
  for (int64_t p = 0; p < kPartitions; ++p) {
    if (first[p] == first[p + 1]) continue;
    const bool joins = !pieces.empty() && pieces.back().rows.size() < least;
    if (joins && first[p + 1] - pieces.back().rows.begin <= most) {
      pieces.back().partitions.end = p + 1;
      pieces.back().rows.end = first[p + 1];
      continue;
    }
    for (int64_t row = first[p]; row < first[p + 1]; row += most) {
      pieces.push_back({{p, p + 1}, {row, std::min(row + most, first[p + 1])}, {}});
    }
  }
}

template <typename Fn>
void RowShare::ForEachRowOf(int table, const Range& partitions, const Fn& fn) const {
  const std::vector<int64_t>& first = rows_[table].first;
  std::vector<int64_t> next(first.begin() + partitions.begin, first.begin() + partitions.end);
  const auto visit = [&](std::span<const int64_t> keys, const float* const* rows) {
    for (size_t i = 0; i < keys.size(); ++i) {
      const int64_t p = tables_[table].keys.PartitionOf(keys[i]) - partitions.begin;
      fn(next[p]++, keys[i], rows[i]);
    }
  };
  const int of = sources_[table].table;
  if (sources_[table].gone) {
    const float* const none = nullptr;
    marked_->ForEachGoneKeyOf(of, partitions, [&](int64_t key) { visit({&key, 1}, &none); });
  } else if (marked_ != nullptr) {
    marked_->ForEachMarkedRowOf(of, partitions, visit);
  } else {
    embedding_->ForEachRowOf(of, partitions, visit);
  }
}

// ---- Copying

std::vector<RowShare::Block> RowShare::CutBlocks() const {
  std::vector<Block> blocks;
  for (size_t t = 0; t < rows_.size(); ++t) {
    const std::vector<int64_t>& first = rows_[t].first;
    int filled = kBlockPartitions;
    for (int64_t p = 0; p < kPartitions; ++p) {
      if (first[p] == first[p + 1]) continue;
      if (filled == kBlockPartitions) {
        blocks.push_back({static_cast<int>(t), {p, p + 1}});
        filled = 0;
      }
      blocks.back().partitions.end = p + 1;
      ++filled;
    }
  }
  return blocks;
}

void RowShare::CopyBlock(const Block& block) {
  const std::vector<Column>& columns = tables_[block.table].columns;
  const Rows& to = rows_[block.table];
  ForEachRowOf(block.table, block.partitions, [&](int64_t row, int64_t key, const float* values) {
    to.keys[row] = key;
    if (format_ != RowFormat::kFloat32 && !columns.empty()) {
      const bool encoded = EncodeRow(format_, values, sources_[block.table].width,
                                     to.columns[0] + row * columns[0].width);
      CHECK(encoded) << "key " << key << ": WeightsDigest has looked";
      return;
    }
    for (size_t c = 0; c < columns.size(); ++c) {
      const int64_t width = columns[c].width;
      std::copy_n(values, width, to.columns[c] + row * width);
      values += width;
    }
  });
}

void RowShare::TakeMemory(StagingMemory* staging) {
  int64_t bytes = 0;
  const auto take = [&bytes](int64_t size) { return std::exchange(bytes, bytes + Align(size)); };
  std::vector<std::vector<int64_t>> offsets;  // of keys, then columns
  for (size_t t = 0; t < rows_.size(); ++t) {
    const int64_t rows = rows_[t].first.back();
    offsets.push_back({take(rows * sizeof(int64_t))});
    for (const Column& column : tables_[t].columns) {
      offsets[t].push_back(take(rows * column.width * sizeof(float)));
    }
  }
  if (bytes > staging->bytes) {
    staging->pages = ZeroPages();  // first, lest both are there
    staging->bytes = bytes + bytes / 4;
    staging->pages = ZeroPages(staging->bytes, "the copy of embedding rows for a checkpoint");
  }
  char* const data = static_cast<char*>(staging->pages.data());
  for (size_t t = 0; t < rows_.size(); ++t) {
    rows_[t].keys = reinterpret_cast<int64_t*>(data + offsets[t][0]);
    for (size_t c = 1; c < offsets[t].size(); ++c) {
      rows_[t].columns.push_back(reinterpret_cast<float*>(data + offsets[t][c]));
    }
  }
}

void RowShare::Copy(StagingMemory* staging) {
  TakeMemory(staging);
  const std::vector<Block> blocks = CutBlocks();
  std::atomic<size_t> next = 0;
  embedding_->pool()->Run([&](int) {
    for (size_t b = next++; b < blocks.size(); b = next++) CopyBlock(blocks[b]);
  });
  copied_ = true;
}

// ---- Gathering

Status RowShare::Gather(StagingMemory* own, StagingMemory* whole, Communicator& communicator) {
  Copy(own);
  const int ranks = communicator.size();
  if (ranks == 1) return OkStatus();
  const bool root = communicator.rank() == 0;
  const size_t tables = rows_.size();
  std::vector<int64_t> counts;  // of all ranks, by table and partition
  for (const Rows& rows : rows_) {
    for (int64_t p = 0; p < kPartitions; ++p) counts.push_back(rows.first[p + 1] - rows.first[p]);
  }
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kSetup, counts));

  const std::vector<Rows> shares = std::exchange(rows_, std::vector<Rows>(tables));
  bytes_ = 0;
  for (size_t t = 0; t < tables; ++t) {
    std::vector<int64_t>& first = rows_[t].first;
    first.assign(kPartitions + 1, 0);
    for (int64_t p = 0; p < kPartitions && root; ++p) {
      first[p + 1] = first[p] + counts[t * kPartitions + p];
    }
    bytes_ += first.back() * RowBytes(static_cast<int>(t));
    CutPieces(static_cast<int>(t));
  }
  TakeMemory(whole);

  // What has arrived of a few partitions, in order of ranks; a partition's rows are all of one
  // rank, in order.
  std::vector<int64_t> keys, places;
  std::vector<float> values;
  for (size_t t = 0; t < tables; ++t) {
    const int64_t* const rows_of = counts.data() + t * kPartitions;  // by partition
    const int64_t most = std::max(int64_t{1}, kMaxPieceBytes / RowBytes(static_cast<int>(t)));
    for (Range part = {0, 0}; part.begin < kPartitions; part.begin = part.end) {
      int64_t total = 0;
      while (part.end < kPartitions && (total == 0 || total + rows_of[part.end] <= most)) {
        total += rows_of[part.end++];
      }
      if (total == 0) continue;
      const Range own_rows = {shares[t].first[part.begin], shares[t].first[part.end]};
      std::vector<int64_t> arriving(ranks, 0);  // rows
      arriving[communicator.rank()] = own_rows.size();
      ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kSetup, arriving));
      if (!root) total = 0;
      const auto collect = [&](const auto* from, int64_t width, auto* to) {
        const int64_t row_bytes = width * static_cast<int64_t>(sizeof(*from));
        std::vector<int64_t> send(ranks, 0), receive(ranks, 0);
        send[0] = own_rows.size() * row_bytes;
        for (int r = 0; r < ranks && root; ++r) receive[r] = arriving[r] * row_bytes;
        to->resize(total * width);
        return communicator.AllToAllV(Phase::kSetup, from + own_rows.begin * width, send,
                                      to->data(), receive);
      };
      ELASTOR_RETURN_IF_ERROR(collect(shares[t].keys, 1, &keys));
      places.resize(total);
      std::vector<int64_t> next(rows_[t].first.begin() + part.begin,
                                rows_[t].first.begin() + part.end);
      for (int64_t i = 0; i < total; ++i) {
        places[i] = next[tables_[t].keys.PartitionOf(keys[i]) - part.begin]++;
        rows_[t].keys[places[i]] = keys[i];
      }
      for (size_t c = 0; c < tables_[t].columns.size(); ++c) {
        const int64_t width = tables_[t].columns[c].width;
        ELASTOR_RETURN_IF_ERROR(collect(shares[t].columns[c], width, &values));
        for (int64_t i = 0; i < total; ++i) {
          std::copy_n(values.data() + i * width, width, rows_[t].columns[c] + places[i] * width);
        }
      }
    }
  }
  *own = StagingMemory();
  return OkStatus();
}

// ---- Writing

std::span<const int64_t> RowShare::Keys(int table, const RowPiece& piece) {
  const size_t size = piece.rows.size();
  if (copied_) return {rows_[table].keys + piece.rows.begin, size};
  piece_keys_.resize(size);
  ForEachRowOf(table, piece.partitions, [&](int64_t row, int64_t key, const float*) {
    if (row >= piece.rows.begin && row < piece.rows.end) piece_keys_[row - piece.rows.begin] = key;
  });
  return piece_keys_;
}

std::span<const float> RowShare::Values(int table, size_t column, const RowPiece& piece) {
  const std::vector<Column>& columns = tables_[table].columns;
  const int64_t width = columns[column].width;
  const size_t size = piece.rows.size() * width;
  if (copied_) return {rows_[table].columns[column] + piece.rows.begin * width, size};
  CHECK(format_ == RowFormat::kFloat32);
  const int64_t offset = ElementsOf({columns.begin(), columns.begin() + column});
  piece_values_.resize(size);
  ForEachRowOf(table, piece.partitions, [&](int64_t row, int64_t, const float* values) {
    if (row < piece.rows.begin || row >= piece.rows.end) return;
    std::copy_n(values + offset, width, piece_values_.data() + (row - piece.rows.begin) * width);
  });
  return piece_values_;
}

StatusOr<EmbeddingFile> RowShare::Write(const std::string& directory, const std::string& name) {
  std::vector<TensorSpec> tensors;
  for (size_t t = 0; t < rows_.size(); ++t) {
    tensors.push_back(KeysTensor(tables_[t].name, rows_[t].first.back()));
  }
  for (size_t t = 0; t < rows_.size(); ++t) {
    for (const Column& column : tables_[t].columns) {
      tensors.push_back(ColumnTensor(tables_[t].name, column, rows_[t].first.back()));
    }
  }
  ELASTOR_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                           SafetensorsWriter::Open(directory + "/" + name, tensors));
  const auto append = [&writer](auto values, RowPiece* piece) {
    piece->hashes.push_back(XXH3_64bits(values.data(), values.size_bytes()));
    return writer.Append(values);
  };
  const int tables = static_cast<int>(rows_.size());
  for (int t = 0; t < tables; ++t) {
    for (RowPiece& piece : rows_[t].pieces) {
      ELASTOR_RETURN_IF_ERROR(append(Keys(t, piece), &piece));
    }
  }
  for (int t = 0; t < tables; ++t) {
    for (size_t c = 0; c < tables_[t].columns.size(); ++c) {
      for (RowPiece& piece : rows_[t].pieces) {
        ELASTOR_RETURN_IF_ERROR(append(Values(t, c, piece), &piece));
      }
    }
  }
  EmbeddingFile file = {name, {}, {}};
  ELASTOR_ASSIGN_OR_RETURN(file.facts, writer.Commit());
  for (const Rows& rows : rows_) file.pieces.push_back(rows.pieces);
  return file;
}

void RowShare::AddToDigest(TouchedRows<float>* keeper, Digest* digest) const {
  CHECK(copied_);
  for (size_t t = 0; t < rows_.size(); ++t) {
    if (sources_[t].gone) continue;
    const std::vector<Column>& columns = tables_[t].columns;
    const uint64_t seed = RowSeed(tables_[t].name);
    std::vector<float> record(ElementsOf(columns));
    for (int64_t row = 0; row < rows_[t].first.back(); ++row) {
      float* to = record.data();
      for (size_t c = 0; c < columns.size(); ++c) {
        to = std::copy_n(rows_[t].columns[c] + row * columns[c].width, columns[c].width, to);
      }
      const int64_t key = rows_[t].keys[row];
      const Digest of_row = Digest::OfRecord(seed, static_cast<uint64_t>(key), record.data(),
                                             record.size() * sizeof(float));
      if (keeper != nullptr) keeper->KeepRecord(sources_[t].table, key, of_row);
      digest->Merge(of_row);
    }
  }
}

}  // namespace elastor
