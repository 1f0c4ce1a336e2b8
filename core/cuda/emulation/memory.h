#ifndef ELASTOR_CORE_CUDA_EMULATION_MEMORY_H_
#define ELASTOR_CORE_CUDA_EMULATION_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace elastor::cuda::emulation {

// Memory that the device can reach. Every allocation ends at a page that faults, is filled with
// 0xff bytes (a float: NaN), and once freed faults forever. Thread-safe.

inline constexpr int64_t kDeviceBytes = int64_t{16} << 30;
inline constexpr size_t kPage = 4096;

enum class MemoryKind { kDevice, kPinned, kPageable };

// 256-byte aligned. nullptr when the device would be full.
void* AllocateMemory(MemoryKind kind, size_t bytes);
// Program error for another address, and when bytes behind the end were written.
void FreeMemory(MemoryKind kind, void* memory);

// Which memory [address, address + bytes) is. Program error when it begins in an allocation and
// ends outside, or was freed.
MemoryKind KindOf(const void* address, size_t bytes);
// Whether `address` lies in an allocation or just behind one.
bool Reachable(const void* address);
int64_t FreeDeviceBytes();

// Where an access faulted. Without locks, for signal handlers.
enum class Place { kUnknown, kBehindEnd, kFreed, kClosed };
Place PlaceOf(const void* address);

// Whether code may touch device memory, for schedules that guard it. Open at first. What is opened
// after it was closed faults once more at its first touch, and the handler opens it by OpenTouched:
// most work touches few of the allocations.
void OpenDeviceMemory(bool open);

// For handlers of a fault at `address`. False where it is not in device memory, which these leave
// alone.
// Opens the allocation; false also while device memory is closed.
bool OpenTouched(const void* address);
// Opens the page, for reading or for both.
bool OpenPage(const void* address, bool write);

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_MEMORY_H_
