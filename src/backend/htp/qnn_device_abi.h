// The part of the QNN C interface, and of libcdsprpc.so, that only devices
// have: shared memory and clocks. Like qnn_abi.h in all else: facts in our own
// words, with the interface's sizes and offsets; numbers are those of HTP
// API 5.43. x86 has none of it, and none of it has run on a device yet; what we
// send is tested against tests/support/fake_qnn.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/htp/qnn_abi.h"

namespace hexllm::htp::abi {

// ---- Memory that host and HTP share.

// Where a tensor lies in an allocation of libcdsprpc.so.
struct HtpMemory {
  uint32_t type;   // kSharedBuffer
  uint64_t bytes;  // of the whole allocation
  int32_t fd;
  uint64_t offset;
};
static_assert(sizeof(HtpMemory) == 32);
static_assert(offsetof(HtpMemory, fd) == 16);
static_assert(offsetof(HtpMemory, offset) == 24);

inline constexpr uint32_t kSharedBuffer = 1;

struct MemoryDescriptor {
  uint32_t rank;
  const uint32_t* dims;
  const char* shape_config;  // null
  DataType data_type;
  uint32_t type;  // kCustomMemory
  const HtpMemory* custom;
  uint64_t rest_of_union;
};
static_assert(sizeof(MemoryDescriptor) == 48);
static_assert(offsetof(MemoryDescriptor, data_type) == 24);
static_assert(offsetof(MemoryDescriptor, custom) == 32);

inline constexpr uint32_t kCustomMemory = 2;

// Functions of libcdsprpc.so; the newer of the two that allocate may be absent.
inline constexpr const char* kRpcLibrary = "libcdsprpc.so";
inline constexpr int kRpcSystemHeap = 25;
inline constexpr uint32_t kRpcDefaultFlags = 1;  // cached
using RpcAlloc = void* (*)(int heap, uint32_t flags, int bytes);
using RpcAlloc2 = void* (*)(int heap, uint32_t flags, size_t bytes);
using RpcFree = void (*)(void* memory);
using RpcToFd = int (*)(void* memory);

// ---- Clocks.

enum class Corner : uint32_t {  // of voltage, and so of clocks
  kDisable = 0x10,              // no vote
  kSvs2 = 0x30,
  kSvs = 0x40,
  kSvsPlus = 0x50,
  kNom = 0x60,
  kNomPlus = 0x70,
  kTurbo = 0x80,
  kMax = 0xA0,
};

enum class PowerMode : uint32_t { kSaver = 0x4, kPerformance = 0x10 };

struct Corners {
  uint32_t set;
  Corner min, target, max;
};

// Dynamic scaling of clocks and voltage, version 3. set_*: whether the field
// after it counts.
struct Dcvs {
  uint32_t id;  // the power configuration's
  uint32_t set_enable, enable;
  PowerMode mode;                             // counts while enabled
  uint32_t set_sleep_latency, sleep_latency;  // us
  uint32_t set_sleep_disable, sleep_disable;
  Corners bus, core;
};
static_assert(sizeof(Dcvs) == 64);
static_assert(offsetof(Dcvs, mode) == 12);
static_assert(offsetof(Dcvs, bus) == 32);
static_assert(offsetof(Dcvs, core) == 48);

enum class PowerOption : uint32_t {
  kDcvs = 1,
  kRpcLatency = 2,  // us
  kRpcPolling = 3,  // us, at most 9999; v69 and later, of the whole process
};

struct PowerConfig {
  PowerOption option;
  union {
    Dcvs dcvs;
    uint32_t us;
  };
};
static_assert(sizeof(PowerConfig) == 68);
static_assert(offsetof(PowerConfig, dcvs) == 4);

struct HtpInfrastructure {
  uint32_t type;  // 0: the functions below
  Result (*create_power_config_id)(uint32_t device, uint32_t core,
                                   uint32_t* out);
  Result (*destroy_power_config_id)(uint32_t id);
  // `configs` ends with null.
  Result (*set_power_config)(uint32_t id, const PowerConfig** configs);
  Handle set_memory_config;
};
static_assert(sizeof(HtpInfrastructure) == 40);
static_assert(offsetof(HtpInfrastructure, create_power_config_id) == 8);

}  // namespace hexllm::htp::abi
