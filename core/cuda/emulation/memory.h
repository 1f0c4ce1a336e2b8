#ifndef ELASTOR_CORE_CUDA_EMULATION_MEMORY_H_
#define ELASTOR_CORE_CUDA_EMULATION_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace elastor::cuda::emulation {

// Memory that the device can reach. Every allocation ends at a page that faults, is filled with
// 0xff bytes (a float: NaN), and once freed faults forever. Thread-safe.

inline constexpr int64_t kDeviceBytes = int64_t{16} << 30;
// The bytes of a page of memory: 4,096, on some Arm systems 65,536.
size_t PageBytes();

enum class MemoryKind { kDevice, kPinned, kPageable };

// Returns memory aligned to 256 bytes; nullptr if the device would be full.
void* AllocateMemory(MemoryKind kind, size_t bytes);
// Frees an allocation. Program error for any other address, and if bytes behind the end were
// written.
void FreeMemory(MemoryKind kind, void* memory);

// Returns the kind of the memory [address, address + bytes). Program error if it begins in an
// allocation and ends outside, or was freed.
MemoryKind KindOf(const void* address, size_t bytes);
// Returns whether `address` lies in an allocation or just behind one.
bool Reachable(const void* address);
int64_t FreeDeviceBytes();

// The place where an access faulted. Found without locks, for signal handlers.
enum class Place { kUnknown, kBehindEnd, kFreed, kClosed };
Place PlaceOf(const void* address);

// Sets whether code may touch device memory, for schedules that guard it. It is open at first.
// After reopening, each allocation faults once more at its first touch, and the handler opens it by
// OpenTouched, since most work touches few of the allocations.
void OpenDeviceMemory(bool open);

// These serve handlers of a fault at `address`. They return false and do nothing if it is not in
// device memory.
// Opens the allocation. Returns false also while device memory is closed.
bool OpenTouched(const void* address);
// Opens the page, for reading or for both.
bool OpenPage(const void* address, bool write);

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_MEMORY_H_
