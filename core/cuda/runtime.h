#ifndef ELASTOR_CORE_CUDA_RUNTIME_H_
#define ELASTOR_CORE_CUDA_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"

// The device as the rest of the system sees it: streams, events, graphs and memory, without CUDA's
// own headers. Two implementations: CUDA's runtime, and an emulation on the host that unit tests
// and machines without CUDA use (README.md).
//
// Work is enqueued on streams and runs later, in the order of its stream; streams are ordered
// against each other by events only. Memory that work uses must stay and keep its contents until
// the work is done. A device error is sticky and ends the process: one line, exit code 3.

namespace elastor::cuda {

struct DeviceInfo {
  int index = 0;
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  std::string capability;  // "9.0"
  std::string libraries;   // the bits depend on them, too: "cuda-13.0 cublas-13.0.2"
  bool emulated = false;
};

// Returns the number of devices that this process sees; 0 without a driver.
int DeviceCount();
// Makes device `index` this process's device. Call it once, before anything else of this header.
// User error, in one line, when there is no such device or it is too old for this build (compute
// capability 8.0).
StatusOr<DeviceInfo> OpenDevice(int index);

// Ends the process with a line that names the device and `what`, exit code 3. Use it for errors
// after which the device cannot be used.
[[noreturn]] void DieOfDevice(const std::string& what);

class Stream;

class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Records the event, which happens when everything enqueued on `stream` so far is done.
  void Record(Stream& stream);
  // An event that was never recorded is done.
  bool Done() const;
  void Synchronize() const;
  // Returns the device's milliseconds from `start` to this event; 0 in the emulation. REQUIRES:
  // both are done.
  double MillisecondsSince(const Event& start) const;

  struct State;
  State* state() const { return state_.get(); }

 private:
  std::unique_ptr<State> state_;
};

// The priority by which the device starts blocks when work of several streams is ready.
enum class StreamPriority { kNormal, kHigh };

class Stream {
 public:
  explicit Stream(StreamPriority priority = StreamPriority::kNormal);
  ~Stream();  // waits for its work
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Makes later work of this stream wait for the event as recorded last.
  void Wait(const Event& event);
  void Synchronize();

  struct State;
  State* state() const { return state_.get(); }
  // Returns the cudaStream_t, and makes its device the calling thread's current device; null in the
  // emulation.
  void* handle() const;

 private:
  std::unique_ptr<State> state_;
};

// Work captured once and launched many times. Captured calls see the pointers and sizes they were
// given; values that change from launch to launch must lie in device memory.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Work enqueued on `stream` between the calls, and on streams that wait for its events meanwhile,
  // is captured instead of run. REQUIRES: no Synchronize and no allocation in between.
  void BeginCapture(Stream& stream);
  void EndCapture(Stream& stream);
  bool captured() const;
  void Launch(Stream& stream);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

namespace internal {
// Allocates and frees in the stream's order: work enqueued on it between the two may use the
// memory, which is aligned to 256 bytes.
void* AllocateDevice(Stream& stream, size_t bytes);
void FreeDevice(Stream& stream, void* memory);
// Allocates page-locked host memory, which the device reads and writes at the same address.
void* AllocatePinned(size_t bytes);
void FreePinned(void* memory);
void CopyBytes(Stream& stream, void* to, const void* from, size_t bytes);
void Copy2DBytes(Stream& stream, void* to, size_t to_pitch, const void* from, size_t from_pitch,
                 size_t row_bytes, size_t rows);
void FillBytes(Stream& stream, void* to, int byte, size_t bytes);
}  // namespace internal

// Device memory from the stream-ordered pool, for work of `stream`; other streams may use it where
// events order them against that stream. It only grows, and growing loses the contents.
template <typename T>
class Buffer {
 public:
  explicit Buffer(Stream* stream) : stream_(stream) {}
  Buffer(Stream* stream, int64_t size) : stream_(stream) { Resize(size); }
  ~Buffer() { Release(); }
  Buffer(Buffer&& other) noexcept
      : stream_(other.stream_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&&) = delete;

  // The contents are arbitrary afterwards when the memory grew.
  T* Resize(int64_t size) {
    if (size > capacity_) {
      Release();
      capacity_ = size + (size_ > 0 ? size / 4 : 0);
      data_ = static_cast<T*>(internal::AllocateDevice(*stream_, capacity_ * sizeof(T)));
    }
    size_ = size;
    return data_;
  }
  T* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  void Release() {
    if (data_ != nullptr) internal::FreeDevice(*stream_, data_);
    data_ = nullptr;
    capacity_ = 0;
  }

  Stream* stream_;
  T* data_ = nullptr;
  int64_t size_ = 0;
  int64_t capacity_ = 0;
};

// Page-locked host memory: copies from and to it run beside computation. It only grows; the caller
// must know that no work uses the old memory when it does.
template <typename T>
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(int64_t size) { Resize(size); }
  ~PinnedBuffer() {
    if (data_ != nullptr) internal::FreePinned(data_);
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  T* Resize(int64_t size) {
    if (size > capacity_) {
      if (data_ != nullptr) internal::FreePinned(data_);
      capacity_ = size + (size_ > 0 ? size / 4 : 0);
      data_ = static_cast<T*>(internal::AllocatePinned(capacity_ * sizeof(T)));
    }
    size_ = size;
    return data_;
  }
  T* data() const { return data_; }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
  int64_t capacity_ = 0;
};

// Copies between host and device, either way, or on the device. Host memory that is not page-locked
// is read or written before the call returns.
template <typename T>
void Copy(Stream& stream, T* to, const T* from, int64_t count) {
  if (count > 0) internal::CopyBytes(stream, to, from, count * sizeof(T));
}
// Copies `rows` runs of `columns` elements, which begin a stride apart.
template <typename T>
void Copy2D(Stream& stream, T* to, int64_t to_stride, const T* from, int64_t from_stride,
            int64_t columns, int64_t rows) {
  if (columns == 0 || rows == 0) return;
  internal::Copy2DBytes(stream, to, to_stride * sizeof(T), from, from_stride * sizeof(T),
                        columns * sizeof(T), rows);
}
// Resizes *to to the length of `from` and copies the contents.
template <typename T>
void Upload(Stream& stream, const std::vector<T>& from, Buffer<T>* to) {
  const int64_t count = static_cast<int64_t>(from.size());
  Copy(stream, to->Resize(count), from.data(), count);
}
template <typename T>
void FillZero(Stream& stream, T* to, int64_t count) {
  if (count > 0) internal::FillBytes(stream, to, 0, count * sizeof(T));
}

}  // namespace elastor::cuda

#endif  // ELASTOR_CORE_CUDA_RUNTIME_H_
