// The part of the QNN C interface that we use, in our own words: sizes,
// offsets, numbers and orders are facts of the interface (core API 2.32, HTP
// API 5.43; run against 2.40 / 5.51). No text of the vendor's headers is here.
// Used inside backend/htp only. Structs are plain data; pointers belong to the
// caller unless said otherwise.
//
// LP64, natural alignment, enums are 32 bits, handles are pointers. Every
// function returns 64 bits: 0, or an error code in the low 16.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>

namespace hexllm::htp::abi {

// Checks what the interface fixes: the bytes of a struct and where a field is.
#define HX_ABI_SIZE(type, bytes) static_assert(sizeof(type) == (bytes))
#define HX_ABI_AT(type, field, at) static_assert(offsetof(type, field) == (at))

using Handle = void*;
using Result = uint64_t;

// "Not set", in enums that have no such value.
inline constexpr uint32_t kUndefined = 0x7FFFFFFF;
inline constexpr uint32_t kBackendHtp = 6;
inline constexpr const char* kPackage = "qti.aisw";

inline constexpr Result kOk = 0;
inline constexpr Result kErrorUnsupported = 1000;

// Key of property_has_capability: tensors in registered memory. 0 is yes; the
// simulator says no.
inline constexpr uint32_t kTensorMemoryHandles = 502;

struct Version {
  uint32_t major, minor, patch;
};
HX_ABI_SIZE(Version, 12);

struct ApiVersion {
  Version core, backend;
};
HX_ABI_SIZE(ApiVersion, 24);

// High byte: class. Low byte: bits, written as if decimal.
enum class DataType : uint32_t {
  kInt8 = 0x008,
  kInt16 = 0x016,
  kInt32 = 0x032,
  kInt64 = 0x064,
  kUint8 = 0x108,
  kUint16 = 0x116,
  kUint32 = 0x132,
  kUint64 = 0x164,
  kFloat16 = 0x216,
  kFloat32 = 0x232,
  kSfixed8 = 0x308,
  kSfixed16 = 0x316,
  kSfixed32 = 0x332,
  kUfixed8 = 0x408,
  kUfixed16 = 0x416,
  kUfixed32 = 0x432,
  kBool8 = 0x508,
  kString = 0x608,
};

// ---- Numbers: scalars and quantization. value = scale * (stored + offset).

struct Scalar {
  DataType type;
  union {
    float f32;
    uint64_t u64;
    uint32_t u32;
    int32_t i32;
    uint8_t boolean;
    const char* string;
  };
};
HX_ABI_SIZE(Scalar, 16);
HX_ABI_AT(Scalar, string, 8);

struct ScaleOffset {
  float scale;
  int32_t offset;
};
HX_ABI_SIZE(ScaleOffset, 8);

// One scale per index of an axis.
struct AxisScales {
  int32_t axis;
  uint32_t count;
  const ScaleOffset* values;
};
HX_ABI_SIZE(AxisScales, 16);

// One scale, codes of fewer bits than the type.
struct NarrowScale {
  uint32_t bits;
  float scale;
  int32_t offset;
};
HX_ABI_SIZE(NarrowScale, 12);

// Both of the above. `offsets` may not be null.
struct NarrowAxisScales {
  uint32_t bits;
  int32_t axis;
  uint32_t count;
  const float* scales;
  const int32_t* offsets;
};
HX_ABI_SIZE(NarrowAxisScales, 32);
HX_ABI_AT(NarrowAxisScales, scales, 16);

// LPBQ: a scale per index of `axis` and an integer factor per block of the
// other one.
struct BlockExpansion {
  int32_t axis;
  const ScaleOffset* scales;  // [indices of axis], offset 0
  uint32_t blocks;            // per index
  uint32_t factor_bits;       // 4
  uint32_t storage;           // 0: factors are bytes
  const uint8_t* factors;     // [indices of axis, blocks]
};
HX_ABI_SIZE(BlockExpansion, 40);
HX_ABI_AT(BlockExpansion, blocks, 16);
HX_ABI_AT(BlockExpansion, factors, 32);

enum class Encoding : uint32_t {
  kScaleOffset = 0,
  kAxis = 1,
  kNarrow = 2,
  kNarrowAxis = 3,
  kBlockExpansion = 5,
  kNone = kUndefined,
};

inline constexpr uint32_t kDefined = 1;

struct Quantization {
  uint32_t definition;  // kDefined or kUndefined
  Encoding encoding;
  union {
    ScaleOffset scale_offset;
    AxisScales axis;
    NarrowScale narrow;
    NarrowAxisScales narrow_axis;
    const BlockExpansion* blocks;
  };
};
HX_ABI_SIZE(Quantization, 40);
HX_ABI_AT(Quantization, narrow_axis, 8);

// ---- Tensors and nodes.

enum class TensorType : uint32_t {
  kAppWrite = 0,  // graph input
  kAppRead = 1,   // graph output
  kNative = 3,    // between nodes
  kStatic = 4,    // constant
};

struct ClientBuffer {
  void* data;
  uint32_t bytes;
};
HX_ABI_SIZE(ClientBuffer, 16);

struct TensorV1 {
  uint32_t id;  // filled by tensorCreateGraphTensor
  const char* name;
  TensorType type;
  uint32_t format;  // 0: dense
  DataType data_type;
  Quantization quantization;
  uint32_t rank;
  const uint32_t* dims;
  uint32_t memory;  // 0: `buffer`, kMemoryHandle: `memory_handle`
  union {
    ClientBuffer buffer;
    Handle memory_handle;
  };
};
HX_ABI_SIZE(TensorV1, 112);
HX_ABI_AT(TensorV1, name, 8);
HX_ABI_AT(TensorV1, data_type, 24);
HX_ABI_AT(TensorV1, quantization, 32);
HX_ABI_AT(TensorV1, dims, 80);
HX_ABI_AT(TensorV1, buffer, 96);

inline constexpr uint32_t kMemoryHandle = 1;

// Version 2 starts as version 1 does; we write version 1 and read both.
struct Tensor {
  uint32_t version;  // 1 or 2
  TensorV1 v1;
  uint8_t rest_of_v2[24];
};
HX_ABI_SIZE(Tensor, 144);
HX_ABI_AT(Tensor, v1, 8);

enum class ParamKind : uint32_t { kScalar = 0, kTensor = 1 };

struct Param {
  ParamKind kind;
  const char* name;
  union {
    Scalar scalar;
    Tensor tensor;  // constant that has been created in the graph
  };
};
HX_ABI_SIZE(Param, 160);
HX_ABI_AT(Param, tensor, 16);

// Passed by value.
struct OpConfig {
  uint32_t version;  // 1
  const char* name;
  const char* package;
  const char* op;
  uint32_t param_count;
  Param* params;
  uint32_t input_count;
  Tensor* inputs;
  uint32_t output_count;
  Tensor* outputs;
};
HX_ABI_SIZE(OpConfig, 80);
HX_ABI_AT(OpConfig, name, 8);
HX_ABI_AT(OpConfig, param_count, 32);
HX_ABI_AT(OpConfig, outputs, 72);

struct OperationName {
  const char* package;
  const char* name;
  const char* target;
};
HX_ABI_SIZE(OperationName, 24);

// ---- Configurations: null-terminated arrays of pointers to Config.

// Backend, context, graph and device configurations have the same form; we use
// the option 0 of each, a pointer to one of the HTP's own structs below.
struct Config {
  uint32_t option = 0;  // custom
  const void* custom = nullptr;
};
HX_ABI_SIZE(Config, 16);

// The HTP's device option. The value stands behind the option (SDK 2.43) or
// four bytes later (2.51): writing it twice serves both.
struct HtpDeviceConfig {
  uint32_t option = 0;  // SoC
  uint32_t soc = 0;
  uint32_t soc_again = 0;
  uint32_t reserved[5] = {};
};
HX_ABI_SIZE(HtpDeviceConfig, 32);

enum class HtpContextOption : uint32_t {
  kWeightSharing = 1,   // boolean
  kSpillFillGroup = 2,  // group
  kFileReadBudget = 3,  // MiB of the binary that are read at a time
};

// Contexts with one spill-fill buffer; their graphs must not run at the same
// time.
struct SpillFillGroup {
  Handle first;    // the group's first context; null in the first itself
  uint64_t bytes;  // the most that a graph of the group needs, > 0
};
HX_ABI_SIZE(SpillFillGroup, 16);

struct HtpContextConfig {
  HtpContextOption option;
  union {
    uint8_t boolean;
    SpillFillGroup group;
    uint64_t mib;
  };
};
HX_ABI_SIZE(HtpContextConfig, 24);
HX_ABI_AT(HtpContextConfig, boolean, 8);

enum class HtpGraphOption : uint32_t {
  kOptimization = 1,
  kPrecision = 2,  // of f32 tensors: 0 f32, 1 f16
  kVtcmMb = 3,
  kFinalizeKey = 7,
};

inline constexpr uint32_t kOptimizationFlag = 3;

struct HtpGraphConfig {
  HtpGraphOption option;
  union {
    struct {
      uint32_t type;
      float value;
    } optimization;
    uint32_t u32;
    struct {
      const char* key;
      Scalar value;
    } finalize_key;
    uint64_t reserved[6];
  };
};
HX_ABI_SIZE(HtpGraphConfig, 56);
HX_ABI_AT(HtpGraphConfig, finalize_key, 8);

// ---- Functions.

using LogCallback = void (*)(const char* format, uint32_t level, uint64_t time,
                             va_list arguments);
enum class LogLevel : uint32_t { kError = 1, kWarning = 2 };

struct MemoryDescriptor;  // qnn_device_abi.h
struct HtpInfrastructure;

// The library's function table, by slot; only what we call has a type. Slots
// are only ever added behind.
struct Functions {
  Result (*property_has_capability)(uint32_t key);
  Result (*backend_create)(Handle log, const Config** configs, Handle* out);
  Handle backend_set_config;
  Result (*backend_get_api_version)(ApiVersion* out);
  Result (*backend_get_build_id)(const char** out);
  Handle backend_register_op_package;
  Result (*backend_get_supported_operations)(Handle backend, uint32_t* count,
                                             const OperationName** list);
  Result (*backend_validate_op_config)(Handle backend, OpConfig op);
  Result (*backend_free)(Handle backend);
  Result (*context_create)(Handle backend, Handle device,
                           const Config** configs, Handle* out);
  Handle context_set_config;
  Result (*context_get_binary_size)(Handle context, uint64_t* bytes);
  Result (*context_get_binary)(Handle context, void* buffer, uint64_t capacity,
                               uint64_t* written);
  Result (*context_create_from_binary)(Handle backend, Handle device,
                                       const Config** configs,
                                       const void* binary, uint64_t bytes,
                                       Handle* out, Handle profile);
  Result (*context_free)(Handle context, Handle profile);
  Result (*graph_create)(Handle context, const char* name,
                         const Config** configs, Handle* out);
  Handle graph_create_subgraph;
  Handle graph_set_config;
  Result (*graph_add_node)(Handle graph, OpConfig op);
  Result (*graph_finalize)(Handle graph, Handle profile, Handle signal);
  Result (*graph_retrieve)(Handle context, const char* name, Handle* out);
  Result (*graph_execute)(Handle graph, const Tensor* inputs,
                          uint32_t input_count, Tensor* outputs,
                          uint32_t output_count, Handle profile, Handle signal);
  Handle graph_execute_async;
  Handle tensor_create_context_tensor;
  Result (*tensor_create_graph_tensor)(Handle graph, Tensor* tensor);
  Result (*log_create)(LogCallback callback, LogLevel level, Handle* out);
  Handle log_set_level;
  Result (*log_free)(Handle log);
  Handle profile_functions[7];
  // On x86 always kErrorUnsupported.
  Result (*memory_register)(Handle context, const MemoryDescriptor* memory,
                            uint32_t count, Handle* out);
  Result (*memory_deregister)(const Handle* handles, uint32_t count);
  Handle device_info_functions[2];
  Result (*device_get_infrastructure)(const HtpInfrastructure** out);
  Result (*device_create)(Handle log, const Config** configs, Handle* out);
  Handle device_set_config;
  Handle device_get_info;
  Result (*device_free)(Handle device);
  Handle signal_functions[4];
  Result (*error_get_message)(Result error, const char** out);
};
HX_ABI_AT(Functions, context_create, 9 * 8);
HX_ABI_AT(Functions, graph_create, 15 * 8);
HX_ABI_AT(Functions, graph_execute, 21 * 8);
HX_ABI_AT(Functions, log_create, 25 * 8);
HX_ABI_AT(Functions, memory_register, 35 * 8);
HX_ABI_AT(Functions, device_get_infrastructure, 39 * 8);
HX_ABI_AT(Functions, device_create, 40 * 8);
HX_ABI_AT(Functions, error_get_message, 48 * 8);

// What QnnInterface_getProviders lists.
struct Provider {
  uint32_t backend;  // kBackendHtp
  const char* name;
  Version core_version;
  Version backend_version;
  Functions functions;  // of core_version's length
};
HX_ABI_AT(Provider, core_version, 16);
HX_ABI_AT(Provider, functions, 40);

using GetProviders = Result (*)(const Provider*** list, uint32_t* count);

// ---- The system library: what is in a context binary.

struct BinaryGraphV3 {
  const char* name;
  uint32_t input_count;
  const Tensor* inputs;
  uint32_t output_count;
  const Tensor* outputs;
  // Version 1 ends here.
  uint32_t updateable_count;
  const Tensor* updateables;
  // Version 2 ends here.
  uint32_t blob_bytes;
  const void* blob;  // HtpGraphBlob
  uint32_t first_op, last_op;
};
HX_ABI_SIZE(BinaryGraphV3, 80);
HX_ABI_AT(BinaryGraphV3, blob, 64);

struct BinaryGraph {
  uint32_t version;  // 1, 2 or 3
  BinaryGraphV3 graph;
};
HX_ABI_SIZE(BinaryGraph, 88);

// The start of the HTP's blob of a graph.
struct HtpGraphBlob {
  uint32_t version;  // 1
  uint64_t spill_fill_bytes;
  uint32_t vtcm_bytes;
  uint32_t optimization;
};
HX_ABI_AT(HtpGraphBlob, vtcm_bytes, 16);

// The HTP's blob of a context.
struct HtpContextBlob {
  uint32_t version;  // 1
  uint32_t arch;     // 79
};
HX_ABI_SIZE(HtpContextBlob, 8);

// Version 3, as written since 2.43.
struct BinaryInfoV3 {
  uint32_t backend;
  const char* build_id;
  Version core_version;
  Version backend_version;
  const char* soc_version;
  Version blob_version;
  uint64_t blob_bytes;
  uint32_t tensor_count;
  const Tensor* tensors;
  uint32_t graph_count;
  const BinaryGraph* graphs;
  const void* platform;
  uint32_t metadata_bytes;
  const void* metadata;  // HtpContextBlob
  uint32_t soc;
};
HX_ABI_SIZE(BinaryInfoV3, 136);
HX_ABI_AT(BinaryInfoV3, graphs, 96);
HX_ABI_AT(BinaryInfoV3, soc, 128);

struct BinaryInfo {
  uint32_t version;  // 3
  BinaryInfoV3 v3;
};
HX_ABI_SIZE(BinaryInfo, 144);

struct SystemFunctions {
  Result (*context_create)(Handle* out);
  Handle context_get_binary_info;
  // The info lives as long as the handle.
  Result (*context_get_metadata)(Handle system, const void* binary,
                                 uint64_t bytes, const BinaryInfo** out);
  Result (*context_free)(Handle system);
  Handle tensor_get_memory_footprint;
  Result (*log_create)(LogCallback callback, LogLevel level, Handle* out);
  Handle log_set_level;
  Result (*log_free)(Handle log);
};
HX_ABI_AT(SystemFunctions, log_free, 7 * 8);

struct SystemProvider {
  uint32_t backend;
  const char* name;
  Version version;
  SystemFunctions functions;
};
HX_ABI_AT(SystemProvider, version, 16);
HX_ABI_AT(SystemProvider, functions, 32);

using GetSystemProviders = Result (*)(const SystemProvider*** list,
                                      uint32_t* count);

#undef HX_ABI_SIZE
#undef HX_ABI_AT

}  // namespace hexllm::htp::abi
